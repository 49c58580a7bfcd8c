/* paint.c - one cell of ours to one or two of ncurses.
 *
 * ncurses and the terminal count columns by code point, we by cluster. What is
 * sent always takes the columns that we counted: a cluster that they would
 * count otherwise is reduced to its first part and padded. */
#include "ui/paint.h"

#include "base/utf8.h"
#include "ui/theme.h"

#include <ncurses.h>
#include <string.h>
#include <wchar.h>

#define ZWJ  0x200D
#define VS15 0xFE0E
#define VS16 0xFE0F

void paint_theme(struct paint *p, enum theme theme)
{
    bool many = theme == THEME_DARK || theme == THEME_LIGHT;
    p->theme = !p->can_colour ? THEME_NONE : many && COLORS < 256 ? THEME_16 : theme;
    for (short i = 0; i < STYLE_COUNT && i + 1 < COLOR_PAIRS; i++) {
        int colour = theme_colour(p->theme, (uint16_t)i);
        if (p->can_colour)
            init_pair((short)(i + 1), colour < COLORS ? (short)colour : -1, -1);
    }
}

static attr_t attributes(unsigned look)
{
    attr_t a = A_NORMAL;
    if (look & LOOK_BOLD)
        a |= A_BOLD;
    if (look & LOOK_DIM)
        a |= A_DIM;
    if (look & LOOK_UNDERLINE)
        a |= A_UNDERLINE;
    if (look & LOOK_REVERSE)
        a |= A_REVERSE;
    if (look & LOOK_ITALIC)
        a |= A_ITALIC;
    return a;
}

/* What a cell becomes: code points in one or several ncurses cells. */
struct glyphs {
    wchar_t c[CELL_BYTES + 1];
    int n;
};

static struct glyphs decode(const struct cell *cell)
{
    struct glyphs g = { .n = 0 };
    for (size_t i = 0; i < cell->len;) {
        uint32_t cp;
        i += utf8_decode(cell->bytes + i, cell->len - i, &cp);
        g.c[g.n++] = (wchar_t)cp;
    }
    return g;
}

/* Line drawing and marks of our own have stand-ins; the rest is a '?'. */
static wchar_t to_ascii(wchar_t c)
{
    static const struct {
        wchar_t from, to;
    } map[] = { { 0x2500, '-' }, { 0x2502, '|' }, { 0x253C, '+' }, { 0x2022, '*' },
                { 0x2026, '~' }, { 0x25B8, '>' }, { 0x25BE, 'v' }, { 0x2193, 'v' },
                { 0xA0, ' ' },   { 0x2581, '.' }, { 0x2582, '.' }, { 0x2583, ':' },
                { 0x2584, ':' }, { 0x2585, '|' }, { 0x2586, '|' }, { 0x2587, '#' },
                { 0x2588, '#' } };
    if (c < 0x80)
        return c;
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (map[i].from == c)
            return map[i].to;
    return '?';
}

struct pen {
    attr_t attr;
    short pair;
};

static void put(const struct pen *pen, const wchar_t *c, int n)
{
    wchar_t first[2] = { c[0], 0 };
    cchar_t cell;
    if (setcchar(&cell, first, pen->attr, pen->pair, NULL) != OK)
        return;
    /* setcchar stops at the second spacing code point, so that the parts of an
     * emoji have to be added to its cell by hand. */
    for (int i = 1; i < n && i < CCHARW_MAX; i++)
        cell.chars[i] = c[i];
    add_wch(&cell);
}

static void pad(const struct pen *pen, int n)
{
    static const wchar_t space[] = L" ";
    while (n-- > 0)
        put(pen, space, 1);
}

/* Code points that stand in one ncurses cell: a spacing one and its marks. */
static int part_length(const wchar_t *c, int n)
{
    int k = 1;
    while (k < n && wcwidth(c[k]) == 0)
        k++;
    return k;
}

static int total_width(const struct glyphs *g)
{
    int total = 0;
    for (int i = 0; i < g->n; i++) {
        int w = wcwidth(g->c[i]);
        if (w < 0)
            return -1;
        total += w;
    }
    return total;
}

/* Everything that fits into one cell, without a joiner at its end. */
static int cluster_length(const struct glyphs *g)
{
    int n = g->n < CCHARW_MAX ? g->n : CCHARW_MAX;
    while (n > 1 && g->c[n - 1] == ZWJ)
        n--;
    return n;
}

static void put_cluster(const struct paint *p, const struct pen *pen,
                        const struct glyphs *g, int width)
{
    int first = wcwidth(g->c[0]);
    if (total_width(g) == width && !wcschr(g->c, VS16)) {
        for (int i = 0, n; i < g->n; i += n) {
            n = part_length(g->c + i, g->n - i);
            put(pen, g->c + i, n);
        }
    } else if (p->clusters && first == width && first == 2) {
        put(pen, g->c, cluster_length(g));
    } else if (first > 0 && first <= width) {
        put(pen, g->c, 1);
        pad(pen, width - first);
    } else {
        static const wchar_t unknown[] = L"?";
        put(pen, unknown, 1);
        pad(pen, width - 1);
    }
}

static void put_cell(const struct paint *p, const struct cell *cell)
{
    struct pen pen = { attributes(theme_look(p->theme, cell->style)), 0 };
    int pair = 1 + (cell->style & STYLE_NAME_MASK);
    if (theme_colour(p->theme, cell->style) >= 0 && pair < COLOR_PAIRS)
        pen.pair = (short)pair;
    struct glyphs g = decode(cell);
    if (p->utf8) {
        put_cluster(p, &pen, &g, cell->width);
    } else {
        wchar_t c = to_ascii(g.c[0]);
        put(&pen, &c, 1);
        pad(&pen, cell->width - 1);
    }
}

void paint_row(const struct paint *p, const struct screen *s, int row)
{
    bool sure = true; /* the terminal counts columns as we do */
    for (int col = 0; col < s->cols;) {
        const struct cell *cell = screen_cell(s, row, col);
        move(row, col);
        if (cell->width > 0)
            put_cell(p, cell);
        sure = sure && cell->width < 2 && cell->len <= 3;
        col += cell->width > 0 ? cell->width : 1;
    }
    /* Where the terminal may have counted columns differently, send the whole
     * row, so that nothing of the old one stays. */
    if (!sure)
        wredrawln(stdscr, row, 1);
}
