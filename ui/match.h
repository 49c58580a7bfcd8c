/* match.h - text found in text, in any case. Thread-safety: pure. */
#ifndef UI_MATCH_H
#define UI_MATCH_H

#include <stddef.h>

#define NO_MATCH ((size_t)-1)

/* The first place at or after `from` where s[0, n) has the words; *bytes is how long
 * the match is. NO_MATCH: none. Case does not count, code point by code point; any
 * white space matches any other. */
size_t match_next(const char *s, size_t n, const char *words, size_t from, size_t *bytes);
/* The last one that begins before `before`. */
size_t match_prev(const char *s, size_t n, const char *words, size_t before,
                  size_t *bytes);

#endif
