/* utf8.h - UTF-8 text as code points, graphemes, columns and words.
 *
 * Every function takes a byte range, never reads outside it and accepts any
 * bytes: a byte that starts no well-formed code point stands for U+FFFD alone.
 * Offsets are bytes and, where passed in, lie on code point boundaries.
 * Thread-safety: pure functions. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xFFFDu

/* Reads the code point at s into *cp and returns its length, 0 only if n is 0.
 * Ill-formed (overlong, surrogate, cut short): length 1, U+FFFD. A real U+FFFD
 * has length 3. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);
/* Writes 1 to 4 bytes; what is no scalar value is written as U+FFFD. */
size_t utf8_encode(uint32_t cp, char out[4]);
/* How many leading bytes hold no code point that later bytes could still
 * complete: n less 0 to 3. What a streaming reader may use now. */
size_t utf8_complete(const char *s, size_t n);
bool utf8_valid(const char *s, size_t n);

/* End of the grapheme cluster (UAX 29) that starts at `at`; n at the end. */
size_t utf8_grapheme_next(const char *s, size_t n, size_t at);
/* Start of the grapheme cluster that ends at `at`; 0 at the start. */
size_t utf8_grapheme_prev(const char *s, size_t n, size_t at);

/* Columns of one code point: 0, 1 or 2. Controls: 0. */
int utf8_cp_width(uint32_t cp);
/* Columns of one grapheme cluster. An emoji of any number of parts is 2, a
 * cluster of marks alone 0, other clusters the sum of their code points. */
int utf8_grapheme_width(const char *s, size_t n);
/* Columns of a whole string without controls. */
size_t utf8_width(const char *s, size_t n);

/* Word steps as editors have them: to the end of this or the next word, and to
 * the start of this or the previous one. Ideographs form words of their own. */
size_t utf8_word_next(const char *s, size_t n, size_t at);
size_t utf8_word_prev(const char *s, size_t n, size_t at);

#endif
