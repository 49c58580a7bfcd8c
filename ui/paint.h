/* paint.h - cells to ncurses. Inner part of term.c. */
#ifndef UI_PAINT_H
#define UI_PAINT_H

#include "ui/screen.h"
#include "ui/theme.h"

#include <stdbool.h>

struct paint {
    enum theme theme;
    bool can_colour;
    bool utf8;     /* the locale's character set */
    bool clusters; /* the terminal draws an emoji of several parts in two columns */
};

/* Takes a theme, or the nearest to it that the terminal can show. */
void paint_theme(struct paint *p, enum theme theme);
/* Puts one row into ncurses' virtual screen. */
void paint_row(const struct paint *p, const struct screen *s, int row);

#endif
