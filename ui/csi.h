/* csi.h - control sequences of keys and of a terminal's answers. Inner part of
 * decode.c. */
#ifndef UI_CSI_H
#define UI_CSI_H

#include "ui/decode.h"

#include <stddef.h>

/* Parses what starts with ESC [ or ESC O at s; returns its length, 0 while it
 * is incomplete. Sequences that mean nothing here give K_NONE. */
size_t csi_parse(const char *s, size_t n, struct key *out);

#endif
