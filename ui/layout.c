/* layout.c - rows are handed out from the bottom up; the body gets the rest. */
#include "ui/layout.h"

static struct rect take_bottom(struct rect *from, int rows)
{
    from->rows -= rows;
    return (struct rect){ from->row + from->rows, from->col, rows, from->cols };
}

struct layout layout_compute(int rows, int cols, int input_rows)
{
    struct layout l = { .tiny = rows < LAYOUT_ROWS_MIN || cols < LAYOUT_COLS_MIN };
    struct rect all = { 0, 0, rows > 0 ? rows : 0, cols > 0 ? cols : 0 };
    if (l.tiny) {
        l.status = all;
        l.status.rows = all.rows > 0;
        return l;
    }
    int most = rows / 3, wanted = input_rows < 1 ? 1 : input_rows;
    l.status = take_bottom(&all, 1);
    l.input = take_bottom(&all, wanted < most ? wanted : most);
    l.rule = take_bottom(&all, rows >= 7);
    l.title = (struct rect){ 0, 0, rows >= 10, cols };
    all.row += l.title.rows;
    all.rows -= l.title.rows;
    l.body = all;
    return l;
}
