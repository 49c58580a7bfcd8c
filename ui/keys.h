/* keys.h - the one key table: what a key does, where, and how the help screen
 * words it. */
#ifndef UI_KEYS_H
#define UI_KEYS_H

#include "ui/decode.h"

#include <stddef.h>

/* Places where a key may mean something; a binding names one or several. */
enum key_place {
    IN_CHAT = 1,
    IN_LIST = 2,
    IN_SEARCH = 4,
    IN_HELP = 8,
    IN_INPUT = IN_CHAT | IN_LIST | IN_SEARCH, /* where an input box is */
    ANYWHERE = 15,
};

#define ACTIONS(X)                                                                       \
    X(NONE)                                                                              \
    X(ENTER)                                                                             \
    X(NEWLINE)                                                                           \
    X(ESCAPE)                                                                            \
    X(INTERRUPT)                                                                         \
    X(END_OF_INPUT)                                                                      \
    X(SUSPEND)                                                                           \
    X(REPAINT) X(MOUSE) X(HELP) X(LIST) X(SEARCH) X(NEW) X(REGENERATE) X(EDIT)           \
        X(VERSION_PREV) X(VERSION_NEXT) X(THINKING) X(FIGURES) X(COPY) X(COPY_CODE)      \
            X(PAGE_UP) X(PAGE_DOWN) X(LINE_UP) X(LINE_DOWN) X(TOP) X(BOTTOM)             \
                X(MESSAGE_PREV) X(MESSAGE_NEXT) X(LEFT) X(RIGHT) X(WORD_LEFT)            \
                    X(WORD_RIGHT) X(HOME) X(END) X(UP) X(DOWN) X(LINE_START) X(LINE_END) \
                        X(ERASE_LEFT) X(ERASE_RIGHT) X(KILL_WORD_LEFT)                   \
                            X(KILL_WORD_RIGHT) X(KILL_LINE_END) X(KILL_LINE_START)       \
                                X(YANK) X(UNDO) X(REDO) X(SELECT_LEFT) X(SELECT_RIGHT)   \
                                    X(SELECT_WORD_LEFT) X(SELECT_WORD_RIGHT)             \
                                        X(SELECT_LINE_START) X(SELECT_LINE_END)          \
                                            X(SELECT_ALL) X(CUT) X(COMPLETE)             \
                                                X(COMPLETE_BACK) X(OPEN_TEXT) X(EDITOR)  \
                                                    X(RENAME) X(REMOVE) X(PIN)

#define ACTION_ROW(name) ACT_##name,
enum action { ACTIONS(ACTION_ROW) ACT_COUNT };
#undef ACTION_ROW

struct binding {
    unsigned places;
    enum key_code code;
    unsigned mods;
    char c; /* of K_CHAR */
    enum action action;
    const char *name, *help; /* help NULL: not on the help screen */
};

/* The action of a key in a place; ACT_NONE where it has none. */
enum action keys_action(const struct key *k, enum key_place place);
/* The table, for the help screen. */
const struct binding *keys_table(size_t *n);

#endif
