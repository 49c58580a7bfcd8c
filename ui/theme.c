/* theme.c - the table behind theme.h. Knows nothing of ncurses; paint.c turns
 * looks and palette numbers into its attributes. */
#include "ui/theme.h"

#include <string.h>

struct row {
    char letter;
    unsigned char look;
    short colours[THEME_COUNT];
};

#define STYLE_ROW(name, letter, c16, dark, light, look) \
    [STYLE_##name] = { letter, look, { c16, dark, light, -1 } },
static const struct row rows[] = { STYLES(STYLE_ROW) };
#undef STYLE_ROW

static const char *const names[THEME_COUNT] = { "16", "dark", "light", "none" };

static const struct row *row_of(uint16_t style)
{
    unsigned name = style & STYLE_NAME_MASK;
    return &rows[name < STYLE_COUNT ? name : STYLE_TEXT];
}

char theme_letter(uint16_t style)
{
    return row_of(style)->letter;
}

int theme_colour(enum theme theme, uint16_t style)
{
    return row_of(style)->colours[theme < THEME_COUNT ? theme : THEME_NONE];
}

unsigned theme_look(enum theme theme, uint16_t style)
{
    unsigned look = row_of(style)->look;
    if (theme_colour(theme, style) >= 0)
        look &= ~(unsigned)LOOK_DIM;
    if (style & STYLE_BOLD)
        look |= LOOK_BOLD;
    if (style & STYLE_ITALIC)
        look |= LOOK_ITALIC;
    if (style & STYLE_STRIKE)
        look |= LOOK_DIM;
    return look;
}

const char *theme_name(enum theme theme)
{
    return theme < THEME_COUNT ? names[theme] : NULL;
}

int theme_find(const char *name)
{
    for (int i = 0; i < THEME_COUNT; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}
