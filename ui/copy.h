/* copy.h - what goes to the clipboard: a message, or one code block of it. */
#ifndef UI_COPY_H
#define UI_COPY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* The terminals' usual limit for a clipboard sequence, less its encoding. */
#define COPY_BYTES_MAX 74994

/* Appends the source of fenced block number `back`, counted from the end, its
 * fences left out. False where the text has no such block. */
bool copy_code(struct buf *out, const char *text, size_t n, size_t back);
/* Appends text without control characters but newline and tab. */
void copy_text(struct buf *out, const char *text, size_t n);
/* Appends the sequence (OSC 52) that hands text to the terminal's clipboard. */
void copy_sequence(struct buf *out, const char *text, size_t n);
/* The same in pieces that screen hands through. */
void copy_sequence_screen(struct buf *out, const char *text, size_t n);

#endif
