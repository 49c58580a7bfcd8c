/* keys.c - the key table. The first row that fits wins. */
#include "ui/keys.h"

#define CTRL(ch)  K_CHAR, MOD_CTRL, ch
#define ALT(ch)   K_CHAR, MOD_ALT, ch
#define KEY(k)    K_##k, 0, 0
#define MOD(m, k) K_##k, MOD_##m, 0

static const struct binding table[] = {
    { IN_CHAT, KEY(ENTER), ACT_ENTER, "Enter", "send the message" },
    { ANYWHERE, KEY(ENTER), ACT_ENTER, NULL, NULL },
    { IN_CHAT, CTRL('j'), ACT_NEWLINE, "Ctrl+J, Alt+Enter",
      "new line (Shift+Enter where the terminal tells)" },
    { IN_CHAT, MOD(ALT, ENTER), ACT_NEWLINE, NULL, NULL },
    { IN_CHAT, MOD(SHIFT, ENTER), ACT_NEWLINE, NULL, NULL },
    { IN_CHAT, MOD(CTRL, ENTER), ACT_NEWLINE, NULL, NULL },
    { IN_CHAT, KEY(ESC), ACT_ESCAPE, "Esc", "stop the answer; leave editing" },
    { ANYWHERE, KEY(ESC), ACT_ESCAPE, NULL, NULL },
    { ANYWHERE, CTRL('c'), ACT_INTERRUPT, "Ctrl+C",
      "stop the answer; clear the input; twice: quit" },
    { ANYWHERE, CTRL('d'), ACT_END_OF_INPUT, "Ctrl+D", "quit, when the input is empty" },
    { ANYWHERE, CTRL('z'), ACT_SUSPEND, "Ctrl+Z",
      "suspend; fg comes back (the model stays in memory)" },
    { ANYWHERE, CTRL('l'), ACT_REPAINT, "Ctrl+L", "draw the screen anew" },
    { ANYWHERE, KEY(F1), ACT_HELP, "F1", "this help" },
    { ANYWHERE, ALT('h'), ACT_HELP, NULL, NULL },

    { ANYWHERE, CTRL('o'), ACT_LIST, "Ctrl+O", "conversations: open, rename, delete" },
    { ANYWHERE, CTRL('s'), ACT_SEARCH, "Ctrl+S, F3", "search all conversations" },
    { ANYWHERE, KEY(F3), ACT_SEARCH, NULL, NULL },
    { IN_CHAT | IN_LIST, CTRL('n'), ACT_NEW, "Ctrl+N", "new conversation" },
    { IN_CHAT, CTRL('r'), ACT_REGENERATE, "Ctrl+R",
      "answer again (the old answer is kept)" },
    { IN_CHAT, ALT('e'), ACT_EDIT, "Alt+E", "edit your last or the selected message" },
    { IN_CHAT, MOD(ALT, LEFT), ACT_VERSION_PREV, "Alt+Left, Alt+Right",
      "other version of a message" },
    { IN_CHAT, MOD(ALT, RIGHT), ACT_VERSION_NEXT, NULL, NULL },
    { IN_CHAT, ALT('c'), ACT_COPY, "Alt+C", "copy the last or the selected message" },
    { IN_CHAT, ALT('x'), ACT_COPY_CODE, "Alt+X",
      "copy its last code block; again: the one before" },
    { IN_CHAT, CTRL('t'), ACT_THINKING, "Ctrl+T", "show or fold thinking" },
    { IN_CHAT, ALT('i'), ACT_FIGURES, "Alt+I",
      "show or hide the figures of each message" },
    { ANYWHERE, ALT('m'), ACT_MOUSE, "Alt+M", "mouse wheel on or off" },

    { ANYWHERE, KEY(PAGE_UP), ACT_PAGE_UP, "PgUp, PgDn", "scroll by a page" },
    { ANYWHERE, KEY(PAGE_DOWN), ACT_PAGE_DOWN, NULL, NULL },
    { ANYWHERE, MOD(CTRL, UP), ACT_LINE_UP, "Ctrl+Up, Ctrl+Down", "scroll by a line" },
    { ANYWHERE, MOD(CTRL, DOWN), ACT_LINE_DOWN, NULL, NULL },
    { ANYWHERE, MOD(SHIFT, UP), ACT_LINE_UP, NULL, NULL },
    { ANYWHERE, MOD(SHIFT, DOWN), ACT_LINE_DOWN, NULL, NULL },
    { IN_CHAT, MOD(ALT, UP), ACT_MESSAGE_PREV, "Alt+Up, Alt+Down",
      "select the message before or after" },
    { IN_CHAT, MOD(ALT, DOWN), ACT_MESSAGE_NEXT, NULL, NULL },
    { ANYWHERE, MOD(CTRL, HOME), ACT_TOP, "Ctrl+Home, Ctrl+End",
      "top or end (Home, End when the input is empty)" },
    { ANYWHERE, MOD(CTRL, END), ACT_BOTTOM, NULL, NULL },
    { ANYWHERE, KEY(HOME), ACT_HOME, NULL, NULL },
    { ANYWHERE, KEY(END), ACT_END, NULL, NULL },

    { ANYWHERE, KEY(UP), ACT_UP, "Up, Down", "line up or down; earlier inputs" },
    { ANYWHERE, KEY(DOWN), ACT_DOWN, NULL, NULL },
    { IN_INPUT, KEY(LEFT), ACT_LEFT, NULL, NULL },
    { IN_INPUT, KEY(RIGHT), ACT_RIGHT, NULL, NULL },
    { IN_INPUT, CTRL('b'), ACT_LEFT, NULL, NULL },
    { IN_INPUT, CTRL('f'), ACT_RIGHT, NULL, NULL },
    { IN_INPUT, MOD(CTRL, LEFT), ACT_WORD_LEFT, "Ctrl+Left, Ctrl+Right",
      "word left or right (Alt+B, Alt+F)" },
    { IN_INPUT, MOD(CTRL, RIGHT), ACT_WORD_RIGHT, NULL, NULL },
    { IN_INPUT, ALT('b'), ACT_WORD_LEFT, NULL, NULL },
    { IN_INPUT, ALT('f'), ACT_WORD_RIGHT, NULL, NULL },
    { IN_INPUT, CTRL('a'), ACT_LINE_START, "Ctrl+A, Ctrl+E", "start or end of the line" },
    { IN_INPUT, CTRL('e'), ACT_LINE_END, NULL, NULL },
    { IN_INPUT, MOD(SHIFT, LEFT), ACT_SELECT_LEFT, "Shift+Left, Shift+Right",
      "select (with Ctrl by word; Shift+Home, Shift+End)" },
    { IN_INPUT, MOD(SHIFT, RIGHT), ACT_SELECT_RIGHT, NULL, NULL },
    { IN_INPUT, K_LEFT, MOD_SHIFT | MOD_CTRL, 0, ACT_SELECT_WORD_LEFT, NULL, NULL },
    { IN_INPUT, K_RIGHT, MOD_SHIFT | MOD_CTRL, 0, ACT_SELECT_WORD_RIGHT, NULL, NULL },
    { IN_INPUT, MOD(SHIFT, HOME), ACT_SELECT_LINE_START, NULL, NULL },
    { IN_INPUT, MOD(SHIFT, END), ACT_SELECT_LINE_END, NULL, NULL },
    { IN_INPUT, ALT('a'), ACT_SELECT_ALL, "Alt+A, Ctrl+X",
      "select all; cut what is selected" },
    { IN_CHAT | IN_SEARCH, CTRL('x'), ACT_CUT, NULL, NULL },
    { IN_CHAT, KEY(TAB), ACT_COMPLETE, "Tab, Shift+Tab",
      "complete commands, @files and names of files" },
    { IN_CHAT, MOD(SHIFT, TAB), ACT_COMPLETE_BACK, NULL, NULL },
    { IN_CHAT, ALT('v'), ACT_OPEN_TEXT, "Alt+V", "show a long paste or file as text" },
    { IN_CHAT, CTRL('g'), ACT_EDITOR, "Ctrl+G", "edit the message in $EDITOR" },
    { IN_INPUT, KEY(BACKSPACE), ACT_ERASE_LEFT, NULL, NULL },
    { IN_INPUT, MOD(SHIFT, BACKSPACE), ACT_ERASE_LEFT, NULL, NULL },
    { IN_LIST, KEY(DELETE), ACT_REMOVE, NULL, NULL },
    { IN_INPUT, KEY(DELETE), ACT_ERASE_RIGHT, NULL, NULL },
    { IN_INPUT, CTRL('w'), ACT_KILL_WORD_LEFT, "Ctrl+W, Alt+D",
      "cut the word before or after the cursor" },
    { IN_INPUT, MOD(ALT, BACKSPACE), ACT_KILL_WORD_LEFT, NULL, NULL },
    { IN_INPUT, MOD(CTRL, BACKSPACE), ACT_KILL_WORD_LEFT, NULL, NULL },
    { IN_INPUT, ALT('d'), ACT_KILL_WORD_RIGHT, NULL, NULL },
    { IN_INPUT, MOD(CTRL, DELETE), ACT_KILL_WORD_RIGHT, NULL, NULL },
    { IN_INPUT, CTRL('k'), ACT_KILL_LINE_END, "Ctrl+K, Ctrl+U",
      "cut to the end or start of the line" },
    { IN_INPUT, CTRL('u'), ACT_KILL_LINE_START, NULL, NULL },
    { IN_INPUT, CTRL('y'), ACT_YANK, "Ctrl+Y", "put back what was cut" },
    { IN_INPUT, CTRL('_'), ACT_UNDO, "Alt+Z, Alt+Y", "undo, redo (Ctrl+_ undoes too)" },
    { IN_INPUT, ALT('z'), ACT_UNDO, NULL, NULL },
    { IN_INPUT, ALT('y'), ACT_REDO, NULL, NULL },

    { IN_LIST, KEY(F2), ACT_RENAME, "F2, Ctrl+R", "in the list: rename" },
    { IN_LIST, CTRL('r'), ACT_RENAME, NULL, NULL },
    { IN_LIST, KEY(F8), ACT_REMOVE, "Del, Ctrl+X", "in the list: delete (asks first)" },
    { IN_LIST, CTRL('x'), ACT_REMOVE, NULL, NULL },
    { IN_LIST, ALT('p'), ACT_PIN, "Alt+P",
      "in the list: pin to the top, or not any more" },

    { ANYWHERE, KEY(WHEEL_UP), ACT_LINE_UP, NULL, NULL },
    { ANYWHERE, KEY(WHEEL_DOWN), ACT_LINE_DOWN, NULL, NULL },
};

enum action keys_action(const struct key *k, enum key_place place)
{
    bool wheel = k->code == K_WHEEL_UP || k->code == K_WHEEL_DOWN;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct binding *b = &table[i];
        if (!(b->places & place) || b->code != k->code)
            continue;
        if (b->mods != k->mods && !wheel)
            continue;
        if (b->code == K_CHAR && (uint32_t)b->c != k->cp)
            continue;
        return b->action;
    }
    return ACT_NONE;
}

const struct binding *keys_table(size_t *n)
{
    *n = sizeof table / sizeof *table;
    return table;
}
