/* unicode.h - what a tokenizer needs to know of code points: classes and
 * normalisation form C. Data: utf8proc's version of Unicode.
 * Thread-safety: all functions, any thread. */
#ifndef BASE_UNICODE_H
#define BASE_UNICODE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The general categories L*, M*, N*, and the property White_Space, which none
 * of them has. */
enum unicode_class {
    UNICODE_OTHER,
    UNICODE_LETTER,
    UNICODE_MARK,
    UNICODE_NUMBER,
    UNICODE_SPACE,
};

/* OTHER beyond U+10FFFF. */
enum unicode_class unicode_class(uint32_t cp);

/* True only if the text is well-formed UTF-8 and in normalisation form C; some
 * such texts (with marks or Hangul letters) give false all the same. */
bool unicode_is_nfc(const char *s, size_t n);
/* Appends the text in normalisation form C, each byte that is not part of
 * well-formed UTF-8 as U+FFFD. Time grows linearly with n. */
void unicode_nfc(const char *s, size_t n, struct buf *out);

#endif
