/* wrap.c - line breaking by grapheme. Breaks fall after spaces, after hyphens
 * inside words, and around wide characters except where punctuation would be
 * torn from its sentence; a word longer than the line is cut. */
#include "ui/wrap.h"

#include "base/utf8.h"

#include <string.h>

const char *wrap_prefix(const struct text *t, const struct para *p, bool first,
                        size_t *bytes)
{
    const char *v = buf_cstr(&t->bytes) + (first ? p->lead : p->rest);
    size_t n = first ? p->lead_bytes : p->rest_bytes;
    *bytes = n > 0 && utf8_width(v, n) * 2 > (size_t)t->width ? 0 : n;
    return v;
}

/* Punctuation that must not start a line. */
static bool closes(uint32_t cp)
{
    static const uint32_t list[] = {
        '!',    ')',    ',',    '.',    ':',    ';',    '?',    ']',    '}',
        '%',    0x2019, 0x201D, 0x2026, 0x3001, 0x3002, 0x3009, 0x300B, 0x300D,
        0x300F, 0x3011, 0x3015, 0x3017, 0x30FB, 0x30FC, 0xFF01, 0xFF09, 0xFF0C,
        0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF3D, 0xFF5D, 0xFF5E,
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] == cp)
            return true;
    return false;
}

/* Punctuation that must not end a line. */
static bool opens(uint32_t cp)
{
    static const uint32_t list[] = { '(',    '[',    '{',    0x2018, 0x201C,
                                     0x3008, 0x300A, 0x300C, 0x300E, 0x3010,
                                     0x3014, 0x3016, 0xFF08, 0xFF3B, 0xFF5B };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] == cp)
            return true;
    return false;
}

static bool alnum(uint32_t cp)
{
    return cp >= 0x80 || (cp >= '0' && cp <= '9') ||
           ((cp | 32) >= 'a' && (cp | 32) <= 'z');
}

static bool space(uint32_t cp)
{
    return cp == ' ' || cp == '\t' || cp == 0x200B || cp == 0x3000;
}

/* One step through a paragraph: the grapheme at `at`. */
struct step {
    size_t at, end;
    uint32_t cp;
    int width;
};

static struct step step_at(const char *v, size_t stop, size_t at, int col)
{
    struct step s = { .at = at, .end = utf8_grapheme_next(v, stop, at) };
    utf8_decode(v + at, stop - at, &s.cp);
    s.width = s.cp == '\t' ? text_tab(col) : utf8_grapheme_width(v + at, s.end - at);
    return s;
}

/* Whether a line may end between the clusters a and b. */
static bool may_break(const struct step *before, const struct step *a,
                      const struct step *b)
{
    if (space(a->cp))
        return !space(b->cp);
    if (space(b->cp))
        return false;
    if (a->cp == '-' && a->width == 1)
        return alnum(before->cp) && alnum(b->cp);
    bool wide = (a->width == 2 && a->cp != '\t') || (b->width == 2 && b->cp != '\t');
    return wide && !closes(b->cp) && !opens(a->cp);
}

static size_t skip_spaces(const char *v, size_t stop, size_t at)
{
    while (at < stop) {
        uint32_t cp;
        size_t len = utf8_decode(v + at, stop - at, &cp);
        if (!space(cp))
            break;
        at += len;
    }
    return at;
}

static size_t trim_spaces(const char *v, size_t start, size_t end)
{
    while (end > start && (v[end - 1] == ' ' || v[end - 1] == '\t'))
        end--;
    return end; /* start where nothing is left */
}

static size_t take(struct line *line, size_t end, size_t next)
{
    line->bytes = (uint32_t)(end - line->start);
    return next;
}

size_t wrap_line(const struct text *t, const struct para *p, struct line *line)
{
    const char *v = buf_cstr(&t->bytes);
    size_t stop = p->start + p->bytes, brk = 0, prefix_bytes;
    const char *prefix = wrap_prefix(t, p, line->first, &prefix_bytes);
    int room = t->width - (int)utf8_width(prefix, prefix_bytes), col = 0;
    struct step before = { 0 }, a = { 0 };
    for (size_t at = line->start; at < stop;) {
        struct step b = step_at(v, stop, at, col);
        if (at > line->start && p->kind == PARA_FLOW && may_break(&before, &a, &b))
            brk = at;
        if (col + b.width > room && at > line->start) {
            if (p->kind != PARA_FLOW)
                return take(line, at, at);
            if (space(b.cp)) /* spaces at the end of a line take no room */
                return take(line, trim_spaces(v, line->start, at),
                            skip_spaces(v, stop, at));
            size_t end = trim_spaces(v, line->start, brk);
            if (brk > line->start && end > line->start)
                return take(line, end, brk);
            return take(line, at, at);
        }
        col += b.width;
        before = a;
        a = b;
        at = b.end;
    }
    return take(line, stop, stop);
}
