/* paint.h - cells to ncurses. Inner part of term.c. */
#ifndef UI_PAINT_H
#define UI_PAINT_H

#include "ui/screen.h"

#include <stdbool.h>

struct paint {
    bool colours;
    bool utf8;     /* the locale's character set */
    bool clusters; /* the terminal draws an emoji of several parts in two columns */
};

/* Defines the colour pairs. */
void paint_start(const struct paint *p);
/* Puts one row into ncurses' virtual screen. */
void paint_row(const struct paint *p, const struct screen *s, int row);

#endif
