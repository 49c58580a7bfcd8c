/* input.c - rows of the input box. Text is broken by grapheme where the width
 * ends; one column stays free, so that the cursor always has its place. What
 * must not reach the terminal is shown escaped, and wrapped as shown. */
#include "ui/input.h"

#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/pills.h"
#include "ui/text.h"
#include "ui/theme.h"

#include <string.h>

static int row_width(const char *prompt, int cols)
{
    int w = cols - (int)utf8_width(prompt, strlen(prompt)) - 1;
    return w < 2 ? 2 : w;
}

static bool drawable(const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(s + i, n - i, &cp);
        if (!sanitize_allows(cp) || (len == 1 && cp == UTF8_REPLACEMENT))
            return false;
    }
    return true;
}

/* The label of a pill as it stands in a row. */
static void label_add(struct buf *b, const struct pill *pill)
{
    buf_printf(b, " %s ", pill->label);
}

static int pill_width(const struct pill *pill, int most)
{
    struct buf b = BUF_INIT;
    label_add(&b, pill);
    int w = (int)utf8_width(b.v, b.len);
    buf_release(&b);
    most = most < PILL_COLS ? most : PILL_COLS;
    return w < most ? w : most;
}

/* Columns that the cluster at s takes when it stands at column col of a row. */
static int glyph_width(const struct editor *e, const char *s, size_t n, int col,
                       int width)
{
    const struct pill *pill = pills_at(e->pills, s, n);
    if (pill)
        return pill_width(pill, width);
    if (s[0] == '\t')
        return text_tab(col);
    if (drawable(s, n))
        return utf8_grapheme_width(s, n);
    struct buf b = BUF_INIT;
    sanitize(&b, s, n);
    int w = (int)utf8_width(buf_cstr(&b), b.len);
    buf_release(&b);
    return w;
}

static int pill_draw(struct screen *scr, struct rect r, int col, const struct pill *pill)
{
    struct buf b = BUF_INIT;
    int end = col + pill_width(pill, r.col + r.cols - 1 - col);
    label_add(&b, pill);
    screen_put(scr, span(r.row, col, end), b.v, b.len, STYLE_PILL);
    buf_release(&b);
    return end;
}

static int glyph_draw(struct screen *scr, struct rect r, int col, const char *s, size_t n)
{
    int end = r.col + r.cols;
    struct buf b = BUF_INIT;
    sanitize(&b, s, n);
    col = screen_put(scr, span(r.row, col, end), buf_cstr(&b), b.len, STYLE_TEXT);
    buf_release(&b);
    return col;
}

/* A walk along one row: where it ends and, on the way, the column of a byte. */
struct row {
    size_t end;  /* byte after the row's text */
    size_t next; /* where the next row starts; SIZE_MAX after the last */
    int col;     /* column of the byte that was asked for, else of the end */
};

static struct row row_walk(const struct editor *e, int width, size_t at, size_t stop_at)
{
    const char *s = buf_cstr(&e->text);
    struct row r = { .next = SIZE_MAX };
    size_t start = at;
    int col = 0;
    bool found = false;
    for (; at < e->text.len;) {
        if (at >= stop_at && !found) {
            r.col = col;
            found = true;
        }
        if (s[at] == '\n') {
            r.next = at + 1;
            break;
        }
        size_t end = utf8_grapheme_next(s, e->text.len, at);
        int w = glyph_width(e, s + at, end - at, col, width);
        if (col + w > width && at > start) {
            r.next = at;
            break;
        }
        col += w;
        at = end;
    }
    r.end = at;
    if (!found)
        r.col = col;
    return r;
}

/* Start of the row that holds byte pos. */
static size_t row_start(const struct editor *e, int width, size_t pos)
{
    const char *s = buf_cstr(&e->text);
    size_t at = pos;
    while (at > 0 && s[at - 1] != '\n')
        at--;
    for (;;) {
        struct row r = row_walk(e, width, at, SIZE_MAX);
        if (r.next == SIZE_MAX || r.next > pos)
            return at;
        at = r.next;
    }
}

/* Start of the row before the one that starts at `start`; SIZE_MAX: none. */
static size_t row_before(const struct editor *e, int width, size_t start)
{
    return start == 0 ? SIZE_MAX : row_start(e, width, start - 1);
}

int input_rows(const struct editor *e, const char *prompt, int cols, int most)
{
    int width = row_width(prompt, cols), rows = 0;
    for (size_t at = 0; at != SIZE_MAX && rows < most; rows++)
        at = row_walk(e, width, at, SIZE_MAX).next;
    return rows;
}

/* Keeps `top` where it is if the cursor's row is within reach of it. */
static void scroll_to_cursor(struct input *in, const struct editor *e, int width,
                             int rows)
{
    size_t cursor_row = row_start(e, width, e->cursor), at = cursor_row;
    if (in->top > e->text.len || row_start(e, width, in->top) != in->top)
        in->top = 0;
    if (cursor_row <= in->top) {
        in->top = cursor_row;
        return;
    }
    for (int up = 0; up < rows - 1; up++) {
        size_t before = row_before(e, width, at);
        if (before == SIZE_MAX || before <= in->top) {
            in->top = before == SIZE_MAX ? 0 : before;
            return;
        }
        at = before;
    }
    in->top = at;
}

static void row_draw(const struct editor *e, size_t at, size_t end, int col,
                     struct screen *s, struct rect r)
{
    const char *v = buf_cstr(&e->text);
    int origin = col;
    size_t from = 0, selected = 0;
    editor_selection(e, &from, &selected);
    while (at < end) {
        size_t next = utf8_grapheme_next(v, end, at);
        const struct pill *pill = pills_at(e->pills, v + at, next - at);
        int start = col;
        if (pill)
            col = pill_draw(s, r, col, pill);
        else if (v[at] == '\t')
            col += text_tab(col - origin);
        else
            col = glyph_draw(s, r, col, v + at, next - at);
        if (at >= from && at < from + selected)
            screen_restyle(s, span(r.row, start, col), STYLE_SELECTED);
        at = next;
    }
}

void input_draw(struct input *in, const struct editor *e, const char *prompt,
                struct screen *s, struct rect r)
{
    int width = row_width(prompt, r.cols), first = r.col + r.cols - 1 - width;
    if (first < r.col)
        first = r.col;
    scroll_to_cursor(in, e, width, r.rows);
    screen_str(s, span(r.row, r.col, first), prompt, STYLE_PROMPT);
    size_t at = in->top;
    for (int i = 0; i < r.rows && at != SIZE_MAX; i++) {
        struct row row = row_walk(e, width, at, e->cursor);
        struct rect line = { r.row + i, r.col, 1, r.cols };
        row_draw(e, at, row.end, first, s, line);
        if (e->cursor >= at && (row.next == SIZE_MAX || e->cursor < row.next)) {
            s->cursor_row = line.row;
            s->cursor_col = first + row.col;
            s->cursor_shown = true;
        }
        at = row.next;
    }
}

/* The byte of the row at `at` that is nearest to a column from the left. */
static size_t byte_at_col(const struct editor *e, int width, size_t at, int goal)
{
    const char *s = buf_cstr(&e->text);
    struct row r = row_walk(e, width, at, SIZE_MAX);
    bool wrapped = r.next == r.end;
    int col = 0;
    while (at < r.end) {
        size_t end = utf8_grapheme_next(s, e->text.len, at);
        int w = glyph_width(e, s + at, end - at, col, width);
        /* The end of a wrapped row is the start of the next one. */
        if (col + w > goal || (wrapped && end >= r.end))
            break;
        col += w;
        at = end;
    }
    return at;
}

size_t input_at(const struct input *in, const struct editor *e, const char *prompt,
                struct rect r, int row, int col)
{
    int width = row_width(prompt, r.cols);
    size_t at = in->top;
    for (int i = r.row; i < row; i++) {
        size_t next = row_walk(e, width, at, SIZE_MAX).next;
        if (next == SIZE_MAX)
            return e->text.len;
        at = next;
    }
    col -= r.col + r.cols - 1 - width;
    return byte_at_col(e, width, at, col > 0 ? col : 0);
}

bool input_move_row(struct editor *e, const char *prompt, int cols, int delta)
{
    int width = row_width(prompt, cols);
    size_t here = row_start(e, width, e->cursor), there;
    struct row r = row_walk(e, width, here, e->cursor);
    there = delta < 0 ? row_before(e, width, here) : r.next;
    if (there == SIZE_MAX)
        return false;
    int goal = e->goal >= 0 ? e->goal : r.col;
    editor_place(e, byte_at_col(e, width, there, goal), goal);
    return true;
}
