/* match.c - see match.h. */
#include "ui/match.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

static uint32_t fold(uint32_t cp)
{
    if (cp < 0x80)
        return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp == '\n' || cp == '\t' ? ' ' : cp;
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

/* The bytes of s that match all of words, 0: they do not. */
static size_t match_here(const char *s, size_t n, const char *words)
{
    size_t at = 0, w = 0, len = strlen(words);
    while (w < len) {
        uint32_t a, b;
        if (at >= n)
            return 0;
        at += utf8_decode(s + at, n - at, &a);
        w += utf8_decode(words + w, len - w, &b);
        if (fold(a) != fold(b))
            return 0;
    }
    return at;
}

/* Whether a match may begin with this byte: other letters may fold to a word's
 * first one, too. */
static bool may_begin(unsigned char c, unsigned char first)
{
    if (c >= 0x80)
        return (c & 0xC0) != 0x80;
    return first >= 0x80 || fold(c) == fold(first);
}

size_t match_next(const char *s, size_t n, const char *words, size_t from, size_t *bytes)
{
    for (size_t at = from; *words && at < n; at++) {
        if (!may_begin((unsigned char)s[at], (unsigned char)words[0]))
            continue;
        *bytes = match_here(s + at, n - at, words);
        if (*bytes)
            return at;
    }
    return NO_MATCH;
}

size_t match_prev(const char *s, size_t n, const char *words, size_t before,
                  size_t *bytes)
{
    for (size_t at = before < n ? before : n; *words && at-- > 0;) {
        if (!may_begin((unsigned char)s[at], (unsigned char)words[0]))
            continue;
        *bytes = match_here(s + at, n - at, words);
        if (*bytes)
            return at;
    }
    return NO_MATCH;
}
