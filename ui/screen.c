/* screen.c - the cell grid. screen_put is the only way for text into it and
 * enforces what screen.h promises. */
#include "ui/screen.h"

#include "base/mem.h"
#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/theme.h"

#include <stdlib.h>
#include <string.h>

static int clamp(int v, int max)
{
    return v < 0 ? 0 : v > max ? max : v;
}

void screen_release(struct screen *s)
{
    free(s->cells);
    *s = (struct screen){ 0 };
}

void screen_resize(struct screen *s, int rows, int cols)
{
    rows = clamp(rows, SCREEN_ROWS_MAX);
    cols = clamp(cols, SCREEN_COLS_MAX);
    if (rows != s->rows || cols != s->cols || !s->cells) {
        s->cells = mem_regrow(s->cells, (size_t)rows * (size_t)cols, sizeof *s->cells);
        s->rows = rows;
        s->cols = cols;
    }
    screen_clear(s);
}

static void blank(struct cell *c, uint16_t style)
{
    *c = (struct cell){ .bytes = " ", .len = 1, .width = 1, .style = style };
}

void screen_clear(struct screen *s)
{
    for (int i = 0; i < s->rows * s->cols; i++)
        blank(&s->cells[i], STYLE_TEXT);
    s->cursor_row = s->cursor_col = 0;
    s->cursor_shown = false;
}

static struct cell *cell_at(const struct screen *s, int row, int col)
{
    if (row < 0 || row >= s->rows || col < 0 || col >= s->cols)
        return NULL;
    return &s->cells[(size_t)row * (size_t)s->cols + (size_t)col];
}

const struct cell *screen_cell(const struct screen *s, int row, int col)
{
    return cell_at(s, row, col);
}

/* Half of a wide cluster must not stay behind when its other half is replaced. */
static void clear_partner(struct screen *s, int row, int col)
{
    struct cell *c = cell_at(s, row, col), *left = cell_at(s, row, col - 1);
    struct cell *right = cell_at(s, row, col + 1);
    if (c->width == 0 && left)
        blank(left, left->style);
    if (c->width == 2 && right)
        blank(right, right->style);
}

static void cell_set(struct screen *s, int row, int col, const struct cell *value)
{
    clear_partner(s, row, col);
    *cell_at(s, row, col) = *value;
    if (value->width == 2) {
        clear_partner(s, row, col + 1);
        *cell_at(s, row, col + 1) = (struct cell){ .style = value->style };
    }
}

/* Copies the cluster into the cell, cut at a code point when it is too long;
 * false where it holds anything that must not be drawn. */
static bool cell_text(struct cell *c, const char *s, size_t n)
{
    size_t at = c->len;
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(s + i, n - i, &cp);
        if ((cp == UTF8_REPLACEMENT && len == 1) || !sanitize_allows(cp))
            return false;
        if (at + len > CELL_BYTES)
            break;
        memcpy(c->bytes + at, s + i, len);
        at += len;
    }
    c->len = (uint8_t)at;
    return true;
}

/* Adds marks that stand alone to the cell before column col. */
static void join_marks(struct screen *s, struct span at, int col, const char *text,
                       size_t n)
{
    struct cell *prev = col > at.col ? cell_at(s, at.row, col - 1) : NULL;
    if (prev && prev->width == 0 && col - 1 > at.col)
        prev = cell_at(s, at.row, col - 2);
    if (prev)
        cell_text(prev, text, n);
}

int screen_put(struct screen *s, struct span at, const char *text, size_t n,
               uint16_t style)
{
    int col = at.col, end = at.end < s->cols ? at.end : s->cols;
    if (!cell_at(s, at.row, col))
        return col;
    for (size_t i = 0, next; i < n && col < end; i = next) {
        next = utf8_grapheme_next(text, n, i);
        struct cell c = { .style = style };
        int width = utf8_grapheme_width(text + i, next - i);
        c.width = (uint8_t)(width > 2 ? 2 : width); /* a stack of spacing marks */
        if (!cell_text(&c, text + i, next - i))
            c = (struct cell){ .bytes = "?", .len = 1, .width = 1, .style = style };
        if (c.width == 0) {
            join_marks(s, at, col, text + i, next - i);
            continue;
        }
        if (col + c.width > end)
            break;
        cell_set(s, at.row, col, &c);
        col += c.width;
    }
    return col;
}

int screen_str(struct screen *s, struct span at, const char *text, uint16_t style)
{
    return screen_put(s, at, text, strlen(text), style);
}

void screen_fill(struct screen *s, struct span at, uint16_t style)
{
    struct cell space;
    blank(&space, style);
    for (; at.col < at.end && cell_at(s, at.row, at.col); at.col++)
        cell_set(s, at.row, at.col, &space);
}

void screen_restyle(struct screen *s, struct span at, uint16_t style)
{
    for (struct cell *c; at.col < at.end && (c = cell_at(s, at.row, at.col)); at.col++)
        c->style = style;
}

static void trim(struct buf *out, size_t from)
{
    while (out->len > from && out->v[out->len - 1] == ' ')
        buf_truncate(out, out->len - 1);
    buf_char(out, '\n');
}

void screen_dump(const struct screen *s, struct buf *out)
{
    for (int r = 0; r < s->rows; r++) {
        size_t from = out->len;
        for (int c = 0; c < s->cols; c++) {
            const struct cell *cell = screen_cell(s, r, c);
            buf_add(out, cell->bytes, cell->len);
        }
        trim(out, from);
    }
}

void screen_dump_styles(const struct screen *s, struct buf *out)
{
    for (int r = 0; r < s->rows; r++) {
        size_t from = out->len;
        for (int c = 0; c < s->cols; c++)
            buf_char(out, theme_letter(screen_cell(s, r, c)->style));
        trim(out, from);
    }
}
