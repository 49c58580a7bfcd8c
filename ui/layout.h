/* layout.h - the screen's parts, top to bottom: title, body, rule, input,
 * status. Pure: size in, rectangles out. */
#ifndef UI_LAYOUT_H
#define UI_LAYOUT_H

#include "ui/screen.h"

#include <stdbool.h>

#define LAYOUT_ROWS_MIN 5
#define LAYOUT_COLS_MIN 20

struct layout {
    bool tiny;         /* too small: one line of text in status, nothing else */
    struct rect title; /* may have no rows, like rule */
    struct rect body;
    struct rect rule; /* notices and marks stand here */
    struct rect input;
    struct rect status;
};

/* input_rows: what the text wants; it gets up to a third of the screen. The
 * rectangles lie inside the screen and do not overlap. */
struct layout layout_compute(int rows, int cols, int input_rows);

#endif
