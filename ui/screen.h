/* screen.h - a grid of styled cells: what every view draws into.
 *
 * A cell holds one grapheme cluster; the column after a wide one is empty
 * (len and width 0). Only text that sanitize_allows() gets in, so that a screen
 * can be sent to a terminal, or compared with text in a test, as it is. */
#ifndef UI_SCREEN_H
#define UI_SCREEN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CELL_BYTES 44 /* the longest common emoji: a family with skin tones */

struct cell {
    char bytes[CELL_BYTES]; /* zero after len, so that cells compare as memory */
    uint8_t len, width;
    uint16_t style;
};

struct rect {
    int row, col, rows, cols;
};

/* Columns col up to, not including, end of one row. */
struct span {
    int row, col, end;
};

static inline struct span span(int row, int col, int end)
{
    return (struct span){ row, col, end };
}

struct screen {
    int rows, cols;
    struct cell *cells; /* [rows][cols] */
    int cursor_row, cursor_col;
    bool cursor_shown;
};

/* Largest size that is drawn; a terminal may claim anything. */
#define SCREEN_ROWS_MAX 500
#define SCREEN_COLS_MAX 1000

void screen_release(struct screen *s);
/* Sets the size (clamped to 0..MAX) and clears. */
void screen_resize(struct screen *s, int rows, int cols);
void screen_clear(struct screen *s);
/* Draws one line of text into the span; what does not fit is left out. Newlines
 * and controls are drawn as '?'. Returns the column after the text. Coordinates
 * outside the screen draw nothing. */
int screen_put(struct screen *s, struct span at, const char *text, size_t n,
               uint16_t style);
/* screen_put with a C string. */
int screen_str(struct screen *s, struct span at, const char *text, uint16_t style);
/* Blanks the span. */
void screen_fill(struct screen *s, struct span at, uint16_t style);
/* Changes the style, keeping the text. */
void screen_restyle(struct screen *s, struct span at, uint16_t style);
const struct cell *screen_cell(const struct screen *s, int row, int col);
/* Appends the rows as text, each ended by a newline, trailing blanks cut. */
void screen_dump(const struct screen *s, struct buf *out);
/* The same with the letter of each cell's style. */
void screen_dump_styles(const struct screen *s, struct buf *out);

#endif
