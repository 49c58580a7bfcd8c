/* table.c - aligned columns. Widths come from the widest cell; a row wider than
 * the screen is broken where the screen ends. */
#include "ui/table.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "ui/theme.h"

#include <md4c.h>
#include <stdlib.h>

void table_begin(struct table *t, size_t cols)
{
    table_release(t);
    t->cols = cols > 0 ? cols : 1;
}

void table_cell(struct table *t, int align)
{
    if (t->n_align == t->cap_align) {
        t->cap_align = t->cap_align ? t->cap_align * 2 : 16;
        t->align = mem_regrow(t->align, t->cap_align, sizeof *t->align);
    }
    t->align[t->n_align++] = (unsigned char)align;
    text_para(&t->cells, PARA_FLOW, "", "");
}

static size_t cell_width(const struct table *t, size_t cell)
{
    const struct para *p = &t->cells.paras[cell];
    return utf8_width(buf_cstr(&t->cells.bytes) + p->start, p->bytes);
}

/* Copies a cell with the styles of its parts. */
static void copy_cell(const struct table *t, size_t cell, struct text *out)
{
    const struct para *p = &t->cells.paras[cell];
    size_t end = p->start + p->bytes;
    for (size_t r = 0; r < t->cells.n_runs; r++) {
        size_t from = t->cells.runs[r].start;
        size_t to = r + 1 < t->cells.n_runs ? t->cells.runs[r + 1].start : end;
        if (from < p->start)
            from = p->start;
        if (to > end)
            to = end;
        if (from < to)
            text_add(out, t->cells.bytes.v + from, to - from, t->cells.runs[r].style);
    }
}

static void pad(struct text *out, size_t n)
{
    while (n-- > 0)
        text_str(out, " ", STYLE_TEXT);
}

static void add_cell(const struct table *t, size_t cell, size_t width, bool last,
                     struct text *out)
{
    size_t space = width - cell_width(t, cell), before = 0;
    if (t->align[cell] == MD_ALIGN_RIGHT)
        before = space;
    else if (t->align[cell] == MD_ALIGN_CENTER)
        before = space / 2;
    pad(out, before);
    copy_cell(t, cell, out);
    if (!last)
        pad(out, space - before);
}

static void add_rule(const size_t *widths, size_t cols, struct text *out)
{
    for (size_t c = 0; c < cols; c++) {
        for (size_t i = 0; i < widths[c] + (c > 0) + (c + 1 < cols); i++)
            text_str(out, "\xE2\x94\x80", STYLE_RULE);
        if (c + 1 < cols)
            text_str(out, "\xE2\x94\xBC", STYLE_RULE);
    }
}

void table_end(struct table *t, struct text *out, const char *lead, const char *rest)
{
    size_t n = t->n_align, *widths = mem_zalloc(t->cols * sizeof *widths);
    for (size_t i = 0; i < n; i++) {
        size_t w = cell_width(t, i);
        if (w > widths[i % t->cols])
            widths[i % t->cols] = w;
    }
    for (size_t i = 0; i < n; i++) {
        size_t c = i % t->cols;
        if (c == 0)
            text_para(out, PARA_CODE, i == 0 ? lead : rest, rest);
        else
            text_str(out, " \xE2\x94\x82 ", STYLE_RULE);
        add_cell(t, i, widths[c], c + 1 == t->cols, out);
        if (i + 1 == t->cols) {
            text_para(out, PARA_CODE, rest, rest);
            add_rule(widths, t->cols, out);
        }
    }
    free(widths);
    table_release(t);
}

void table_release(struct table *t)
{
    text_release(&t->cells);
    free(t->align);
    *t = (struct table){ 0 };
}
