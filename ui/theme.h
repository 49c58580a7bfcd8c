/* theme.h - what text means, and how the terminal shows it. The theme "16" uses
 * the 16 palette colours and attributes, so that light and dark backgrounds both
 * work; "dark" and "light" are for terminals of 256 colours; without colours the
 * attributes alone tell things apart. */
#ifndef UI_THEME_H
#define UI_THEME_H

#include <stdbool.h>
#include <stdint.h>

/* Name, letter in style dumps, foreground in the themes 16, dark and light (-1: the
 * terminal's own), attributes. Dimness only stands in for a missing colour. */
#define STYLES(X)                                                         \
    X(TEXT, ' ', -1, -1, -1, 0)                                           \
    X(DIM, 'd', -1, 246, 242, LOOK_DIM)                                   \
    X(USER, 'u', 2, 114, 28, LOOK_BOLD) /* role labels */                 \
    X(ASSISTANT, 'a', 6, 80, 30, LOOK_BOLD)                               \
    X(SYSTEM, 's', 5, 176, 90, LOOK_BOLD)                                 \
    X(THINKING, 't', -1, 246, 242, LOOK_DIM)                              \
    X(HEADING, 'h', 5, 147, 55, LOOK_BOLD)                                \
    X(CODE, 'c', 6, 152, 24, 0)                                           \
    X(LINK, 'l', 4, 75, 26, LOOK_UNDERLINE)                               \
    X(LIST_MARK, 'm', 6, 80, 30, 0)                                       \
    X(STATE, 'x', 1, 210, 160, LOOK_BOLD) /* stopped, failed */           \
    X(NOTICE, 'n', 5, 221, 90, LOOK_BOLD)                                 \
    X(RULE, 'r', -1, 242, 248, LOOK_DIM)                                  \
    X(STATUS, 'S', -1, -1, -1, LOOK_REVERSE)                              \
    X(TITLE, 'T', -1, -1, -1, LOOK_BOLD)                                  \
    X(PROMPT, 'p', 2, 114, 28, LOOK_BOLD)                                 \
    X(SELECTED, 'R', -1, -1, -1, LOOK_REVERSE)                            \
    X(MATCH, 'M', 1, 215, 160, LOOK_BOLD | LOOK_UNDERLINE)                \
    X(PILL, 'P', 6, 80, 30, LOOK_REVERSE) /* what stands for long text */ \
    X(PLAIN, 'o', -1, -1, -1, 0)          /* code that is nothing else */ \
    X(KEYWORD, 'k', 5, 176, 90, 0)                                        \
    X(TYPE, 'y', 6, 80, 30, 0)                                            \
    X(FUNCTION, 'f', 4, 111, 26, 0)                                       \
    X(STRING, 'q', 2, 150, 28, 0)                                         \
    X(NUMBER, '0', 6, 215, 130, 0)                                        \
    X(COMMENT, '#', -1, 246, 242, LOOK_DIM)                               \
    X(ADDED, '+', 2, 114, 28, 0)                                          \
    X(REMOVED, '-', 1, 210, 160, 0)

#define STYLE_ROW(name, letter, c16, dark, light, look) STYLE_##name,
enum style_name { STYLES(STYLE_ROW) STYLE_COUNT };
#undef STYLE_ROW

enum theme { THEME_16, THEME_DARK, THEME_LIGHT, THEME_NONE, THEME_COUNT };

/* A style is one of the names, with these bits added. */
#define STYLE_NAME_MASK 0x00FFu
#define STYLE_BOLD      0x0100u
#define STYLE_ITALIC    0x0200u
#define STYLE_STRIKE    0x0400u /* drawn dim: terminals rarely strike out */

enum look {
    LOOK_BOLD = 1,
    LOOK_DIM = 2,
    LOOK_UNDERLINE = 4,
    LOOK_REVERSE = 8,
    LOOK_ITALIC = 16
};

/* Letter of a style in text dumps of a screen; upper bits are ignored. */
char theme_letter(uint16_t style);
/* Foreground of 256 colours, or -1. */
int theme_colour(enum theme theme, uint16_t style);
/* LOOK_ bits of a style, its added bits included. */
unsigned theme_look(enum theme theme, uint16_t style);
/* "16", "dark", "light", "none"; NULL and -1 for none of them. */
const char *theme_name(enum theme theme);
int theme_find(const char *name);

#endif
