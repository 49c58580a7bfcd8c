/* attach.h - text files in messages.
 * Thread-safety: pure, apart from reading files. */
#ifndef APP_ATTACH_H
#define APP_ATTACH_H

#include "base/buf.h"
#include "base/err.h"

#include "engine/engine.h"

/* Reads a text file and adds it to text as it goes into a message, with its name
 * and between fences; label gets a line about it: name, lines, bytes and tokens
 * (m may be NULL: tokens are estimated). Fails for what is no text. */
int attach_file(const struct model *m, const char *path, struct buf *text,
                struct buf *label, struct err *err);
/* The line about a text without a name. */
void attach_label(const struct model *m, const char *name, const char *text, size_t n,
                  struct buf *label);
/* A path as typed, with ~/ replaced; malloced. */
char *path_expand(const char *path);

#endif
