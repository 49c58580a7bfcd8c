/* sanitize.h - the one way for foreign text onto a terminal.
 *
 * Whatever comes from a model, file, user or driver passes here before it is
 * drawn, or printed to a terminal. The result is valid UTF-8 without any
 * control code point but newline and tab. Stored and exported text is never
 * changed. Thread-safety: pure functions. */
#ifndef BASE_SANITIZE_H
#define BASE_SANITIZE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appends text to out. Made visible: C0 (but \n and \t) and DEL as \x1b; C1 as
 * \x9b; bytes that are not UTF-8 as \xff; bidi controls, line and paragraph
 * separators, tag characters, noncharacters, other invisible format characters
 * and unassigned code points as \u{202e}. Kept: joiners and the zero-width
 * space that scripts and emoji need, variation selectors, soft hyphens.
 * A stream passes its bytes in pieces cut at utf8_complete(). */
void sanitize(struct buf *out, const char *s, size_t n);
/* The same for text that must stay on one line: newlines and tabs become
 * spaces, runs of them one. */
void sanitize_line(struct buf *out, const char *s, size_t n);
/* Whether the code point may be drawn as it is; false for \n and \t. */
bool sanitize_allows(uint32_t cp);

#endif
