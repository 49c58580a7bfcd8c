/* theme.c - the table behind theme.h. Knows nothing of ncurses; term.c turns
 * looks and palette numbers into its attributes. */
#include "ui/theme.h"

struct row {
    char letter;
    signed char colour;
    unsigned char look;
};

#define STYLE_ROW(name, letter, fg, look) [STYLE_##name] = { letter, fg, look },
static const struct row rows[] = { STYLES(STYLE_ROW) };
#undef STYLE_ROW

static const struct row *row_of(uint16_t style)
{
    unsigned name = style & STYLE_NAME_MASK;
    return &rows[name < STYLE_COUNT ? name : STYLE_TEXT];
}

char theme_letter(uint16_t style)
{
    return row_of(style)->letter;
}

int theme_colour(uint16_t style)
{
    return row_of(style)->colour;
}

unsigned theme_look(uint16_t style)
{
    unsigned look = row_of(style)->look;
    if (style & STYLE_BOLD)
        look |= LOOK_BOLD;
    if (style & STYLE_ITALIC)
        look |= LOOK_ITALIC;
    if (style & STYLE_STRIKE)
        look |= LOOK_DIM;
    return look;
}
