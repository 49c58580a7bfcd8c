/* keys.h - the keys: what can be done, how it is called in the configuration and
 * worded on the help screen, and which keys do it where. Help, manual and
 * configuration are made from the one table. Thread-safety: none. */
#ifndef UI_KEYS_H
#define UI_KEYS_H

#include "base/buf.h"
#include "base/err.h"
#include "ui/decode.h"

#include <stdbool.h>
#include <stddef.h>

/* Places where a key may mean something; a binding names one or several. */
enum key_place {
    IN_CHAT = 1,
    IN_LIST = 2,
    IN_SEARCH = 4,
    IN_HELP = 8,
    IN_MODELS = 16,
    IN_FIND = 32,
    IN_INPUT =
        IN_CHAT | IN_LIST | IN_SEARCH | IN_MODELS | IN_FIND, /* with an input box */
    ANYWHERE = 63,
};

/* clang-format off */
/* Constant, name, help. */
#define ACTIONS(X)                                                                       \
    X(NONE, "none", "")                                                                  \
    X(ENTER, "send", "send the message")                                                 \
    X(NEWLINE, "newline", "new line (Shift+Enter where the terminal tells)")             \
    X(ESCAPE, "escape", "stop the answer; leave editing, a view or a selection")         \
    X(INTERRUPT, "interrupt", "stop the answer; clear the input; twice: quit")           \
    X(END_OF_INPUT, "quit", "quit, when the input is empty")                             \
    X(SUSPEND, "suspend", "suspend; fg comes back (the model stays in memory)")          \
    X(REPAINT, "repaint", "draw the screen anew")                                        \
    X(HELP, "help", "this help")                                                         \
    X(LIST, "list", "conversations: open, rename, pin, delete")                          \
    X(SEARCH, "search", "search all conversations")                                      \
    X(FIND, "find", "search in this conversation")                                       \
    X(NEW, "new", "new conversation")                                                    \
    X(MODELS, "models", "choose another model")                                          \
    X(REGENERATE, "retry", "answer again (the old answer is kept)")                      \
    X(EDIT, "edit", "edit your last message, or the selected one")                       \
    X(VERSION_PREV, "version_prev", "the version of a message before")                   \
    X(VERSION_NEXT, "version_next", "the next version of a message")                     \
    X(COPY, "copy", "copy the last message, or what is selected")                        \
    X(COPY_CODE, "copy_code", "copy its last code block; again: the one before")         \
    X(THINKING, "thinking", "show or fold thinking")                                     \
    X(FIGURES, "figures", "show or hide the figures of each message")                    \
    X(MOUSE, "mouse", "mouse on or off (with Shift the terminal selects)")               \
    X(PAGE_UP, "page_up", "scroll a page up")                                            \
    X(PAGE_DOWN, "page_down", "scroll a page down")                                      \
    X(LINE_UP, "line_up", "scroll a line up")                                            \
    X(LINE_DOWN, "line_down", "scroll a line down")                                      \
    X(TOP, "top", "to the top (Home when the input is empty)")                           \
    X(BOTTOM, "bottom", "to the end (End when the input is empty)")                      \
    X(MESSAGE_PREV, "message_prev", "select the message before")                         \
    X(MESSAGE_NEXT, "message_next", "select the next message")                           \
    X(UP, "up", "a line up; what is queued; earlier inputs")                             \
    X(DOWN, "down", "a line down; later inputs")                                         \
    X(LEFT, "left", "")                                                                  \
    X(RIGHT, "right", "")                                                                \
    X(WORD_LEFT, "word_left", "a word left")                                             \
    X(WORD_RIGHT, "word_right", "a word right")                                          \
    X(HOME, "home", "")                                                                  \
    X(END, "end", "")                                                                    \
    X(LINE_START, "line_start", "start of the line")                                     \
    X(LINE_END, "line_end", "end of the line")                                           \
    X(SELECT_LEFT, "select_left", "select; with Ctrl by word")                           \
    X(SELECT_RIGHT, "select_right", "")                                                  \
    X(SELECT_WORD_LEFT, "select_word_left", "")                                          \
    X(SELECT_WORD_RIGHT, "select_word_right", "")                                        \
    X(SELECT_LINE_START, "select_line_start", "")                                        \
    X(SELECT_LINE_END, "select_line_end", "")                                            \
    X(SELECT_ALL, "select_all", "select all of the input")                               \
    X(CUT, "cut", "cut what is selected")                                                \
    X(COMPLETE, "complete", "complete commands, @files and names of files")              \
    X(COMPLETE_BACK, "complete_back", "the candidate before")                            \
    X(OPEN_TEXT, "open_text", "show a long paste or file as text")                       \
    X(EDITOR, "editor", "edit the message in $EDITOR")                                   \
    X(ERASE_LEFT, "erase_left", "")                                                      \
    X(ERASE_RIGHT, "erase_right", "")                                                    \
    X(KILL_WORD_LEFT, "cut_word_left", "cut the word before the cursor")                 \
    X(KILL_WORD_RIGHT, "cut_word_right", "cut the word after it")                        \
    X(KILL_LINE_END, "cut_line_end", "cut to the end of the line")                       \
    X(KILL_LINE_START, "cut_line_start", "cut to its start")                             \
    X(YANK, "paste", "put back what was cut")                                            \
    X(UNDO, "undo", "undo")                                                              \
    X(REDO, "redo", "redo")                                                              \
    X(RENAME, "rename", "in the list: rename")                                           \
    X(REMOVE, "delete", "in the list: delete (asks first)")                              \
    X(PIN, "pin", "in the list: pin to the top, or not any more")

#define ACTION_ROW(id, name, help) ACT_##id,
enum action { ACTIONS(ACTION_ROW) ACT_COUNT };
#undef ACTION_ROW
/* clang-format on */

struct binding {
    unsigned places;
    enum key_code code;
    unsigned mods;
    uint32_t c; /* of K_CHAR */
    enum action action;
};

/* The bindings in use; the first that fits wins. */
struct keymap {
    struct binding *v;
    size_t n;
};
void keymap_init(struct keymap *m);
void keymap_release(struct keymap *m);
/* Other keys for an action, in place of those it had: "Ctrl+E, F4", or "none". What
 * else these keys did, they do no more. */
int keymap_bind(struct keymap *m, const char *action, const char *keys, struct err *err);

/* The action of a key in a place; ACT_NONE where it has none. */
enum action keymap_action(const struct keymap *m, const struct key *k,
                          enum key_place place);
/* The keys of an action as words, at most so many; empty if it has none. */
void keymap_keys(const struct keymap *m, enum action a, size_t most, struct buf *out);
const char *action_name(enum action a);
/* "" for what is not worth a line. */
const char *action_help(enum action a);

#endif
