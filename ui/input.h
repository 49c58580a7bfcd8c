/* input.h - how an editor's text stands in its box: rows, scrolling, cursor.
 * Only the rows that are shown are laid out, so that a pasted book costs no
 * more than a line. */
#ifndef UI_INPUT_H
#define UI_INPUT_H

#include "ui/editor.h"
#include "ui/screen.h"

#include <stdbool.h>
#include <stddef.h>

struct input {
    size_t top; /* byte where the first shown row begins */
};

/* Rows that the text takes at this width, counted up to most. */
int input_rows(const struct editor *e, const char *prompt, int cols, int most);
/* Draws the text and sets the screen's cursor; scrolls to show the cursor. */
void input_draw(struct input *in, const struct editor *e, const char *prompt,
                struct screen *s, struct rect r);
/* The byte that stands at a place of the screen, or the nearest to it. */
size_t input_at(const struct input *in, const struct editor *e, const char *prompt,
                struct rect r, int row, int col);
/* Moves the cursor a row up (-1) or down (+1); false at the edge. */
bool input_move_row(struct editor *e, const char *prompt, int cols, int delta);

#endif
