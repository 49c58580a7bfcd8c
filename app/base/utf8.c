/* utf8.c - decoding is ours (exact about ill-formed input); grapheme breaks and
 * widths come from utf8proc's tables, with the widths corrected where terminals
 * agree on something else. */
#include "base/utf8.h"

#include <utf8proc.h>

#define ZWJ  0x200Du
#define VS16 0xFE0Fu
/* Longest context that a backward step looks at. */
#define BACK_MAX 1024

/* Length that the first byte promises and the range of its second byte
 * (Unicode, table 3-7). 0: no such first byte. */
static size_t lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    *hi = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (c < 0x80)
        return 1;
    if (c < 0xC2 || c > 0xF4)
        return 0;
    return c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

/* Bytes at s that are a proper start of a code point of `want` bytes. */
static size_t well_formed(const char *s, size_t n, size_t *want)
{
    unsigned char lo, hi;
    *want = lead((unsigned char)s[0], &lo, &hi);
    if (*want == 0)
        return 0;
    size_t i = 1;
    for (; i < *want && i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < lo || c > hi)
            break;
        lo = 0x80;
        hi = 0xBF;
    }
    return i;
}

size_t utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    size_t want;
    if (n == 0)
        return 0;
    if (well_formed(s, n, &want) < want || want == 0) {
        *cp = UTF8_REPLACEMENT;
        return 1;
    }
    unsigned char c = (unsigned char)s[0];
    uint32_t v = want == 1 ? c : c & (0x7Fu >> want);
    for (size_t i = 1; i < want; i++)
        v = v << 6 | ((unsigned char)s[i] & 0x3F);
    *cp = v;
    return want;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
        cp = UTF8_REPLACEMENT;
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (cp & 0x3F));
        cp >>= 6;
    }
    out[0] = (char)(n == 1 ? cp : (0xF00u >> n & 0xFF) | cp);
    return n;
}

size_t utf8_complete(const char *s, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        size_t want, at = n - back;
        if (((unsigned char)s[at] & 0xC0) == 0x80)
            continue;
        return well_formed(s + at, back, &want) == back && back < want ? at : n;
    }
    return n;
}

bool utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(s + i, n - i, &cp);
        if (cp == UTF8_REPLACEMENT && len == 1)
            return false;
    }
    return true;
}

size_t utf8_grapheme_next(const char *s, size_t n, size_t at)
{
    uint32_t cp = 0, next;
    utf8proc_int32_t state = 0;
    if (at >= n)
        return n;
    at += utf8_decode(s + at, n - at, &cp);
    while (at < n) {
        /* Printable ASCII after ASCII never joins: the common case. */
        if (cp < 0x80 && (unsigned char)s[at] < 0x80 && s[at] != '\n')
            return at;
        size_t len = utf8_decode(s + at, n - at, &next);
        if (len == 1 && next == UTF8_REPLACEMENT)
            return at;
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)cp, (utf8proc_int32_t)next,
                                             &state))
            return at;
        at += len;
        cp = next;
    }
    return n;
}

static size_t cp_prev(const char *s, size_t at)
{
    uint32_t cp;
    for (size_t back = 2; back <= 4 && back <= at; back++)
        if (utf8_decode(s + at - back, back, &cp) == back)
            return at - back;
    return at - 1; /* ASCII, or a byte that belongs to nothing */
}

static bool ascii(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x7F;
}

size_t utf8_grapheme_prev(const char *s, size_t n, size_t at)
{
    if (at > n)
        at = n;
    if (at == 0)
        return 0;
    /* A boundary that needs no context: between two printable ASCII bytes, or
     * after a newline. From there on the clusters are walked forwards. */
    size_t from = cp_prev(s, at);
    while (from > 0 && at - from < BACK_MAX) {
        if (s[from - 1] == '\n' || (ascii(s[from]) && ascii(s[from - 1])))
            break;
        from = cp_prev(s, from);
    }
    for (;;) {
        size_t next = utf8_grapheme_next(s, at, from);
        if (next >= at)
            return from;
        from = next;
    }
}

int utf8_cp_width(uint32_t cp)
{
    if (cp < 0x7F)
        return cp >= 0x20;
    if (cp > 0x10FFFF || cp == 0xAD)
        return 0;
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)cp);
    switch (p->boundclass) {
    case UTF8PROC_BOUNDCLASS_V: /* vowels and finals sit in the first's cell */
    case UTF8PROC_BOUNDCLASS_T:
        return 0;
    case UTF8PROC_BOUNDCLASS_PREPEND:
        return 1;
    default:
        break;
    }
    if (cp >= 0x4DC0 && cp <= 0x4DFF) /* hexagrams: wide in C libraries */
        return 2;
    if (p->category == UTF8PROC_CATEGORY_MC)
        return 1;
    if (p->category == UTF8PROC_CATEGORY_CN)
        return cp >= 0x1F000 && cp < 0x40000 ? 2 : 1;
    return p->charwidth;
}

static bool pictographic(uint32_t cp)
{
    return cp >= 0xA9 && utf8proc_get_property((utf8proc_int32_t)cp)->boundclass ==
                             UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}

int utf8_grapheme_width(const char *s, size_t n)
{
    if (n == 1)
        return ascii(s[0]);
    uint32_t first = 0, cp = 0;
    size_t at = utf8_decode(s, n, &first);
    int width = utf8_cp_width(first);
    bool emoji = false;
    for (size_t len; at < n; at += len) {
        len = utf8_decode(s + at, n - at, &cp);
        width += utf8_cp_width(cp);
        bool tone = cp >= 0x1F3FB && cp <= 0x1F3FF;
        bool joined = cp == ZWJ && pictographic(first) && at + len < n;
        emoji = emoji || cp == VS16 || tone || joined;
    }
    return emoji && utf8_cp_width(first) > 0 ? 2 : width;
}

size_t utf8_width(const char *s, size_t n)
{
    size_t cols = 0;
    for (size_t at = 0; at < n;) {
        size_t end = utf8_grapheme_next(s, n, at);
        cols += (size_t)utf8_grapheme_width(s + at, end - at);
        at = end;
    }
    return cols;
}

enum word_class { WORD_NONE, WORD_LETTERS, WORD_IDEOGRAPHS, WORD_MARK };

static enum word_class class_of(uint32_t cp)
{
    if (cp == '_')
        return WORD_LETTERS;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    if (c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME)
        return WORD_MARK;
    if (c == UTF8PROC_CATEGORY_LO && utf8_cp_width(cp) == 2 &&
        !(cp >= 0xAC00 && cp <= 0xD7A3))
        return WORD_IDEOGRAPHS;
    bool letter = c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NO;
    return letter ? WORD_LETTERS : WORD_NONE;
}

size_t utf8_word_next(const char *s, size_t n, size_t at)
{
    enum word_class word = WORD_NONE;
    while (at < n) {
        uint32_t cp = 0;
        size_t len = utf8_decode(s + at, n - at, &cp);
        enum word_class c = class_of(cp);
        if (c == WORD_MARK)
            c = word; /* a mark belongs to what it follows */
        if (word != WORD_NONE && c != word)
            break;
        word = c;
        at += len;
    }
    return at;
}

size_t utf8_word_prev(const char *s, size_t n, size_t at)
{
    enum word_class word = WORD_NONE;
    if (at > n)
        at = n;
    size_t start = at;
    while (at > 0) {
        uint32_t cp = 0;
        size_t prev = cp_prev(s, at);
        utf8_decode(s + prev, at - prev, &cp);
        enum word_class c = class_of(cp);
        if (c != WORD_MARK) {
            if (word != WORD_NONE && c != word)
                break;
            word = c;
            start = prev;
        }
        at = prev;
    }
    return word == WORD_NONE ? 0 : start; /* marks at the start follow nothing */
}
