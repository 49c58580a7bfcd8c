/* sanitize.c - what may reach a terminal. The decision is by code point; the
 * escapes hold printable ASCII only, so they are safe in themselves. */
#include "base/sanitize.h"

#include "base/utf8.h"

#include <utf8proc.h>

static bool noncharacter(uint32_t cp)
{
    return (cp & 0xFFFE) == 0xFFFE || (cp >= 0xFDD0 && cp <= 0xFDEF);
}

/* Unassigned, but in blocks where later versions of Unicode put emoji and
 * ideographs: a newer model writes characters that these tables do not know. */
static bool future_symbol(uint32_t cp)
{
    return (cp >= 0x1F000 && cp <= 0x1FBFF) || (cp >= 0x20000 && cp <= 0x3FFFD);
}

static bool format_allowed(uint32_t cp)
{
    if (cp == 0xAD || (cp >= 0x200B && cp <= 0x200D))
        return true;
    /* Arabic and other signs that span digits are drawn, not obeyed. */
    return utf8proc_get_property((utf8proc_int32_t)cp)->boundclass ==
           UTF8PROC_BOUNDCLASS_PREPEND;
}

bool sanitize_allows(uint32_t cp)
{
    if (cp < 0x7F)
        return cp >= 0x20;
    if (cp < 0xA0 || cp > 0x10FFFF)
        return false;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_CF:
        return format_allowed(cp);
    case UTF8PROC_CATEGORY_CN:
        return future_symbol(cp) && !noncharacter(cp);
    default:
        return true;
    }
}

/* The run of bytes at s that needs no change; printable ASCII goes fast. */
static size_t clean_run(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        uint32_t cp;
        size_t len = 1;
        if (c >= 0x80) {
            len = utf8_decode(s + i, n - i, &cp);
            if ((len == 1 && cp == UTF8_REPLACEMENT) || !sanitize_allows(cp))
                break;
        } else if (c < 0x20 || c == 0x7F) {
            break;
        }
        i += len;
    }
    return i;
}

/* Appends the escape of what is at s; returns the bytes that it stands for. */
static size_t escape(struct buf *out, const char *s, size_t n)
{
    uint32_t cp;
    size_t len = utf8_decode(s, n, &cp);
    if (len == 1)
        buf_printf(out, "\\x%02x", (unsigned char)s[0]);
    else if (cp < 0x100)
        buf_printf(out, "\\x%02x", (unsigned)cp);
    else
        buf_printf(out, "\\u{%x}", (unsigned)cp);
    return len;
}

static void convert(struct buf *out, const char *s, size_t n, bool one_line)
{
    size_t i = 0;
    bool space = false; /* the last character written stands for a line break */
    while (i < n) {
        size_t clean = clean_run(s + i, n - i);
        buf_add(out, s + i, clean);
        i += clean;
        if (i == n)
            break;
        bool layout = s[i] == '\n' || s[i] == '\t';
        if (!layout) {
            i += escape(out, s + i, n - i);
        } else {
            if (!one_line)
                buf_char(out, s[i]);
            else if (!space || clean > 0)
                buf_char(out, ' ');
            i++;
        }
        space = layout;
    }
}

void sanitize(struct buf *out, const char *s, size_t n)
{
    convert(out, s, n, false);
}

void sanitize_line(struct buf *out, const char *s, size_t n)
{
    convert(out, s, n, true);
}
