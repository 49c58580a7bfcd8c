/* unicode.c - code point classes and normalisation form C over the tables of
 * utf8proc. Its own normaliser sorts marks in quadratic time and wants the
 * whole text as code points, so decomposition and composition of one code
 * point come from there, ordering and segmentation from here. */
#include "base/unicode.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum {
    MARKS_BEGIN = 0x300, /* nothing below is changed or composed onto another */
    MAX_DECOMPOSED = 32, /* code points of one; canonical ones have up to 4 */
    N_COMBINING = 256,   /* combining classes */
};

static bool is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

enum unicode_class unicode_class(uint32_t cp)
{
    if (cp > 0x10FFFF)
        return UNICODE_OTHER;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return UNICODE_LETTER;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return UNICODE_MARK;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return UNICODE_NUMBER;
    default:
        return is_space(cp) ? UNICODE_SPACE : UNICODE_OTHER;
    }
}

/* As utf8_decode, and says whether the bytes were well-formed. */
static bool decode(const char *s, size_t n, uint32_t *cp, size_t *used)
{
    *used = utf8_decode(s, n, cp);
    return *used > 1 || *cp != UTF8_REPLACEMENT;
}

/* Whether c is its own form C whatever stands before it. Conservative: marks
 * and conjoining Hangul letters are never called settled. */
static bool is_settled(uint32_t c)
{
    if (c < MARKS_BEGIN)
        return true;
    if ((c >= 0x1100 && c <= 0x11FF) || (c >= 0x16D63 && c <= 0x16D6A))
        return false; /* letters that compose with the letter before them */
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)c);
    if (p->combining_class || unicode_class(c) == UNICODE_MARK)
        return false;
    return p->decomp_seqindex == UINT16_MAX || p->decomp_type != 0;
}

bool unicode_is_nfc(const char *s, size_t n)
{
    for (size_t pos = 0; pos < n;) {
        uint32_t c;
        size_t used;
        if (!decode(s + pos, n - pos, &c, &used) || !is_settled(c))
            return false;
        pos += used;
    }
    return true;
}

static unsigned combining_class(int32_t c)
{
    return utf8proc_get_property(c)->combining_class & (N_COMBINING - 1);
}

/* Sorts n marks by combining class, equal ones in the order they had. */
static void marks_sort(int32_t *marks, size_t n, int32_t *sorted)
{
    size_t at[N_COMBINING + 1] = { 0 };
    for (size_t i = 0; i < n; i++)
        at[combining_class(marks[i]) + 1]++;
    for (size_t k = 1; k <= N_COMBINING; k++)
        at[k] += at[k - 1];
    for (size_t i = 0; i < n; i++)
        sorted[at[combining_class(marks[i])]++] = marks[i];
    memcpy(marks, sorted, n * sizeof *marks);
}

static void points_order(int32_t *points, size_t n)
{
    int32_t *sorted = mem_array(n, sizeof *sorted);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && combining_class(points[end]))
            end++;
        if (end - i > 1)
            marks_sort(points + i, end - i, sorted);
        i = end > i ? end : i + 1;
    }
    free(sorted);
}

static void points_encode(const int32_t *points, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        char bytes[4];
        buf_add(out, bytes, utf8_encode((uint32_t)points[i], bytes));
    }
}

/* Normalises a well-formed piece whose ends do not interact with what is
 * around it. */
static void piece_nfc(const char *s, size_t n, struct buf *out)
{
    size_t len = 0, cap = 2 * MAX_DECOMPOSED;
    int32_t *points = mem_array(cap, sizeof *points);
    for (size_t pos = 0; pos < n;) {
        uint32_t c;
        pos += utf8_decode(s + pos, n - pos, &c);
        if (cap - len < MAX_DECOMPOSED) {
            cap *= 2;
            points = mem_regrow(points, cap, sizeof *points);
        }
        int last_class = UTF8PROC_BOUNDCLASS_START;
        utf8proc_ssize_t k =
            utf8proc_decompose_char((int32_t)c, points + len, MAX_DECOMPOSED,
                                    UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &last_class);
        if (k > 0 && k <= MAX_DECOMPOSED)
            len += (size_t)k;
        else
            points[len++] = (int32_t)c;
    }
    points_order(points, len);
    utf8proc_ssize_t composed = utf8proc_normalize_utf32(
        points, (utf8proc_ssize_t)len, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    points_encode(points, composed < 0 ? len : (size_t)composed, out);
    free(points);
}

void unicode_nfc(const char *s, size_t n, struct buf *out)
{
    size_t copied = 0;   /* bytes before it are in out */
    size_t previous = 0; /* the code point before pos begins here */
    buf_reserve(out, n);
    for (size_t pos = 0; pos < n;) {
        uint32_t c;
        size_t used;
        bool valid = decode(s + pos, n - pos, &c, &used);
        if (valid && is_settled(c)) {
            previous = pos;
            pos += used;
            continue;
        }
        if (!valid) {
            buf_add(out, s + copied, pos - copied);
            buf_str(out, "\xEF\xBF\xBD");
            pos += used;
        } else {
            buf_add(out, s + copied, previous - copied);
            do {
                pos += used;
                valid = pos < n && decode(s + pos, n - pos, &c, &used);
            } while (valid && !is_settled(c));
            piece_nfc(s + previous, pos - previous, out);
        }
        copied = previous = pos;
    }
    buf_add(out, s + copied, n - copied);
}
