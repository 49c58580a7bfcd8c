/* pills.h - long texts that stand in an input box as one short label each. In the
 * editor's text a pill is a single code point of a private range; what is sent has
 * the long text in its place. Pills live as long as the program, since history and
 * undo may bring them back. Thread-safety: none. */
#ifndef UI_PILLS_H
#define UI_PILLS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PILL_FIRST 0x10F000u
#define PILLS_MAX  0xFFDu
#define PILL_BYTES 4  /* of the code point in UTF-8 */
#define PILL_COLS  64 /* of a label at most */

struct pill {
    char *label; /* one line, sanitised */
    struct buf text;
};
struct pills {
    struct pill *v;
    size_t n;
};

/* Adds a text and writes the code point that stands for it. False if there are too
 * many already. */
bool pills_add(struct pills *p, const char *label, const char *text, size_t n,
               char out[PILL_BYTES]);
void pills_label(struct pills *p, size_t i, const char *label);
/* The pill whose code point is at s, NULL for none. */
const struct pill *pills_at(const struct pills *p, const char *s, size_t n);
/* The text with every pill's text in place of its code point. */
void pills_expand(const struct pills *p, const char *s, size_t n, struct buf *out);
/* Whether a text has code points of the range; the same with others in their place. */
bool pills_in(const char *s, size_t n);
void pills_clean(const char *s, size_t n, struct buf *out);
void pills_release(struct pills *p);

#endif
