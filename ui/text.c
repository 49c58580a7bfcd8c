/* text.c - styled paragraphs: building, cutting back, drawing of lines. The
 * wrapping itself is in wrap.c.
 *
 * Invariant: lines cover exactly paras[0, n_wrapped) at width; runs are sorted
 * by start and the first one starts at 0. */
#include "ui/text.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "ui/theme.h"
#include "ui/wrap.h"

#include <stdlib.h>
#include <string.h>

/* Offsets are 32 bits wide; what lies beyond is not shown. */
#define TEXT_BYTES_MAX 0x7FFFFFFFu

#define GROW(t, field)                                                                 \
    do {                                                                               \
        if ((t)->n_##field == (t)->cap_##field) {                                      \
            (t)->cap_##field = (t)->cap_##field ? (t)->cap_##field * 2 : 8;            \
            (t)->field = mem_regrow((t)->field, (t)->cap_##field, sizeof *(t)->field); \
        }                                                                              \
    } while (0)

void text_release(struct text *t)
{
    buf_release(&t->bytes);
    free(t->runs);
    free(t->paras);
    free(t->lines);
    *t = (struct text){ 0 };
}

static void set_style(struct text *t, uint16_t style)
{
    if (t->n_runs > 0) {
        struct run *last = &t->runs[t->n_runs - 1];
        if (last->style == style)
            return;
        if (last->start == t->bytes.len) { /* an empty run: restyle it */
            last->style = style;
            return;
        }
    }
    GROW(t, runs);
    t->runs[t->n_runs++] = (struct run){ (uint32_t)t->bytes.len, style };
}

static size_t room(const struct text *t, size_t n)
{
    size_t left = TEXT_BYTES_MAX - t->bytes.len;
    return n < left ? n : left;
}

void text_para(struct text *t, enum para_kind kind, const char *lead, const char *rest)
{
    struct para p = { .kind = (uint8_t)kind };
    set_style(t, STYLE_LIST_MARK);
    p.lead = (uint32_t)t->bytes.len;
    p.lead_bytes = (uint16_t)room(t, strlen(lead) & 0xFFF);
    buf_add(&t->bytes, lead, p.lead_bytes);
    p.rest = (uint32_t)t->bytes.len;
    p.rest_bytes = (uint16_t)room(t, strlen(rest) & 0xFFF);
    buf_add(&t->bytes, rest, p.rest_bytes);
    p.start = (uint32_t)t->bytes.len;
    GROW(t, paras);
    t->paras[t->n_paras++] = p;
}

void text_add(struct text *t, const char *s, size_t n, uint16_t style)
{
    n = room(t, n);
    if (n == 0)
        return;
    set_style(t, style);
    buf_add(&t->bytes, s, n);
    t->paras[t->n_paras - 1].bytes += (uint32_t)n;
}

void text_str(struct text *t, const char *s, uint16_t style)
{
    text_add(t, s, strlen(s), style);
}

struct text_mark text_mark(const struct text *t)
{
    return (struct text_mark){ t->bytes.len, t->n_runs, t->n_paras };
}

void text_rewind(struct text *t, struct text_mark m)
{
    buf_truncate(&t->bytes, m.bytes);
    t->n_runs = m.runs;
    t->n_paras = m.paras;
    if (t->n_wrapped > m.paras) {
        t->n_wrapped = m.paras;
        while (t->n_lines > 0 && t->lines[t->n_lines - 1].para >= m.paras)
            t->n_lines--;
    }
}

size_t text_wrap(struct text *t, int width)
{
    if (width < 1)
        width = 1;
    if (t->width != width) {
        t->width = width;
        t->n_lines = t->n_wrapped = 0;
    }
    for (; t->n_wrapped < t->n_paras; t->n_wrapped++) {
        const struct para *p = &t->paras[t->n_wrapped];
        struct line l = { .para = (uint32_t)t->n_wrapped,
                          .start = p->start,
                          .first = true };
        do {
            size_t next = wrap_line(t, p, &l);
            GROW(t, lines);
            t->lines[t->n_lines++] = l;
            l.start = (uint32_t)next;
            l.first = false;
        } while (l.start < p->start + p->bytes);
    }
    return t->n_lines;
}

/* The run that holds byte pos; there is one, since the first starts at 0. */
static size_t run_at(const struct text *t, size_t pos)
{
    size_t lo = 0, hi = t->n_runs;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->runs[mid].start <= pos)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Draws bytes of one style; tabs are measured from column origin. Returns the
 * column after them. */
static int draw_run(struct screen *s, struct span at, const char *v, size_t n,
                    uint16_t style, int origin)
{
    while (n > 0) {
        const char *tab = memchr(v, '\t', n);
        size_t part = tab ? (size_t)(tab - v) : n;
        at.col = screen_put(s, at, v, part, style);
        if (tab) {
            int to = at.col + text_tab(at.col - origin);
            screen_fill(s, span(at.row, at.col, to < at.end ? to : at.end), style);
            at.col = to;
            part++;
        }
        v += part;
        n -= part;
    }
    return at.col;
}

static void draw_rule(struct screen *s, struct span at)
{
    while (at.col < at.end)
        at.col = screen_str(s, at, "\xE2\x94\x80", STYLE_RULE);
}

void text_draw(const struct text *t, size_t line, struct screen *s, struct span at)
{
    if (line >= t->n_lines)
        return;
    const struct line *l = &t->lines[line];
    const struct para *p = &t->paras[l->para];
    size_t prefix_bytes, pos = l->start, stop = l->start + l->bytes;
    const char *prefix = wrap_prefix(t, p, l->first, &prefix_bytes);
    at.col = screen_put(s, at, prefix, prefix_bytes, STYLE_LIST_MARK);
    if (p->kind == PARA_RULE) {
        draw_rule(s, at);
        return;
    }
    int origin = at.col;
    for (size_t r = run_at(t, pos); pos < stop && at.col < at.end; r++) {
        size_t run_end = r + 1 < t->n_runs ? t->runs[r + 1].start : stop;
        if (run_end > stop)
            run_end = stop;
        at.col =
            draw_run(s, at, t->bytes.v + pos, run_end - pos, t->runs[r].style, origin);
        pos = run_end;
    }
}

size_t text_line_pos(const struct text *t, size_t line)
{
    return line < t->n_lines ? t->lines[line].start : t->bytes.len;
}

size_t text_line_at(const struct text *t, size_t pos)
{
    size_t lo = 0, hi = t->n_lines;
    while (hi > lo + 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->lines[mid].start <= pos)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

int text_tab(int col)
{
    return 4 - col % 4;
}
