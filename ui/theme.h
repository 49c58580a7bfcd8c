/* theme.h - what text means, and how the terminal shows it. Only the 16 palette
 * colours and attributes are used, so that light and dark backgrounds both
 * work; without colours the attributes alone tell things apart. */
#ifndef UI_THEME_H
#define UI_THEME_H

#include <stdbool.h>
#include <stdint.h>

/* name, letter in style dumps, foreground (-1: the terminal's own), attributes */
#define STYLES(X)                                     \
    X(TEXT, ' ', -1, 0)                               \
    X(DIM, 'd', -1, LOOK_DIM)                         \
    X(USER, 'u', 2, LOOK_BOLD) /* role labels */      \
    X(ASSISTANT, 'a', 6, LOOK_BOLD)                   \
    X(SYSTEM, 's', 5, LOOK_BOLD)                      \
    X(THINKING, 't', -1, LOOK_DIM)                    \
    X(HEADING, 'h', 5, LOOK_BOLD)                     \
    X(CODE, 'c', 6, 0)                                \
    X(LINK, 'l', 4, LOOK_UNDERLINE)                   \
    X(LIST_MARK, 'm', 6, 0)                           \
    X(STATE, 'x', 1, LOOK_BOLD) /* stopped, failed */ \
    X(NOTICE, 'n', 5, LOOK_BOLD)                      \
    X(RULE, 'r', -1, LOOK_DIM)                        \
    X(STATUS, 'S', -1, LOOK_REVERSE)                  \
    X(TITLE, 'T', -1, LOOK_BOLD)                      \
    X(PROMPT, 'p', 2, LOOK_BOLD)                      \
    X(SELECTED, 'R', -1, LOOK_REVERSE)                \
    X(MATCH, 'M', 1, LOOK_BOLD | LOOK_UNDERLINE)

#define STYLE_ROW(name, letter, fg, look) STYLE_##name,
enum style_name { STYLES(STYLE_ROW) STYLE_COUNT };
#undef STYLE_ROW

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
/* Foreground of the 16 palette colours, or -1. */
int theme_colour(uint16_t style);
/* LOOK_ bits of a style, its added bits included. */
unsigned theme_look(uint16_t style);

#endif
