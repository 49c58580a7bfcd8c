/* keys.c - the table of keys, and keys as words. */
#include "ui/keys.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CTRL(ch)  K_CHAR, MOD_CTRL, ch
#define ALT(ch)   K_CHAR, MOD_ALT, ch
#define KEY(k)    K_##k, 0, 0
#define MOD(m, k) K_##k, MOD_##m, 0

static const struct binding table[] = {
    { ANYWHERE, KEY(ENTER), ACT_ENTER },
    { IN_CHAT, CTRL('j'), ACT_NEWLINE },
    { IN_CHAT, MOD(ALT, ENTER), ACT_NEWLINE },
    { IN_CHAT, MOD(SHIFT, ENTER), ACT_NEWLINE },
    { IN_CHAT, MOD(CTRL, ENTER), ACT_NEWLINE },
    { ANYWHERE, KEY(ESC), ACT_ESCAPE },
    { ANYWHERE, CTRL('c'), ACT_INTERRUPT },
    { ANYWHERE, CTRL('d'), ACT_END_OF_INPUT },
    { ANYWHERE, CTRL('z'), ACT_SUSPEND },
    { ANYWHERE, CTRL('l'), ACT_REPAINT },
    { ANYWHERE, KEY(F1), ACT_HELP },
    { ANYWHERE, ALT('h'), ACT_HELP },

    { ANYWHERE, CTRL('o'), ACT_LIST },
    { ANYWHERE, CTRL('s'), ACT_SEARCH },
    { ANYWHERE, KEY(F3), ACT_SEARCH },
    { IN_CHAT | IN_FIND, CTRL('f'), ACT_FIND },
    { IN_CHAT | IN_LIST, CTRL('n'), ACT_NEW },
    { IN_CHAT | IN_MODELS, CTRL('p'), ACT_MODELS },
    { IN_CHAT, CTRL('r'), ACT_REGENERATE },
    { IN_CHAT, ALT('e'), ACT_EDIT },
    { IN_CHAT, MOD(ALT, LEFT), ACT_VERSION_PREV },
    { IN_CHAT, MOD(ALT, RIGHT), ACT_VERSION_NEXT },
    { IN_CHAT | IN_FIND, ALT('c'), ACT_COPY },
    { IN_CHAT | IN_FIND, ALT('x'), ACT_COPY_CODE },
    { IN_CHAT | IN_FIND, CTRL('t'), ACT_THINKING },
    { IN_CHAT | IN_FIND, ALT('i'), ACT_FIGURES },
    { ANYWHERE, ALT('m'), ACT_MOUSE },

    { ANYWHERE, KEY(PAGE_UP), ACT_PAGE_UP },
    { ANYWHERE, KEY(PAGE_DOWN), ACT_PAGE_DOWN },
    { ANYWHERE, MOD(CTRL, UP), ACT_LINE_UP },
    { ANYWHERE, MOD(SHIFT, UP), ACT_LINE_UP },
    { ANYWHERE, KEY(WHEEL_UP), ACT_LINE_UP },
    { ANYWHERE, MOD(CTRL, DOWN), ACT_LINE_DOWN },
    { ANYWHERE, MOD(SHIFT, DOWN), ACT_LINE_DOWN },
    { ANYWHERE, KEY(WHEEL_DOWN), ACT_LINE_DOWN },
    { IN_CHAT | IN_FIND, MOD(ALT, UP), ACT_MESSAGE_PREV },
    { IN_CHAT | IN_FIND, MOD(ALT, DOWN), ACT_MESSAGE_NEXT },
    { ANYWHERE, MOD(CTRL, HOME), ACT_TOP },
    { ANYWHERE, MOD(CTRL, END), ACT_BOTTOM },
    { ANYWHERE, KEY(HOME), ACT_HOME },
    { ANYWHERE, KEY(END), ACT_END },

    { ANYWHERE, KEY(UP), ACT_UP },
    { ANYWHERE, KEY(DOWN), ACT_DOWN },
    { IN_INPUT, KEY(LEFT), ACT_LEFT },
    { IN_INPUT, CTRL('b'), ACT_LEFT },
    { IN_INPUT, KEY(RIGHT), ACT_RIGHT },
    { IN_INPUT, MOD(CTRL, LEFT), ACT_WORD_LEFT },
    { IN_INPUT, ALT('b'), ACT_WORD_LEFT },
    { IN_INPUT, MOD(CTRL, RIGHT), ACT_WORD_RIGHT },
    { IN_INPUT, ALT('f'), ACT_WORD_RIGHT },
    { IN_INPUT, CTRL('a'), ACT_LINE_START },
    { IN_INPUT, CTRL('e'), ACT_LINE_END },
    { IN_INPUT, MOD(SHIFT, LEFT), ACT_SELECT_LEFT },
    { IN_INPUT, MOD(SHIFT, RIGHT), ACT_SELECT_RIGHT },
    { IN_INPUT, K_LEFT, MOD_SHIFT | MOD_CTRL, 0, ACT_SELECT_WORD_LEFT },
    { IN_INPUT, K_RIGHT, MOD_SHIFT | MOD_CTRL, 0, ACT_SELECT_WORD_RIGHT },
    { IN_INPUT, MOD(SHIFT, HOME), ACT_SELECT_LINE_START },
    { IN_INPUT, MOD(SHIFT, END), ACT_SELECT_LINE_END },
    { IN_INPUT, ALT('a'), ACT_SELECT_ALL },
    { IN_CHAT | IN_SEARCH | IN_FIND, CTRL('x'), ACT_CUT },
    { IN_CHAT, KEY(TAB), ACT_COMPLETE },
    { IN_CHAT, MOD(SHIFT, TAB), ACT_COMPLETE_BACK },
    { IN_CHAT, ALT('v'), ACT_OPEN_TEXT },
    { IN_CHAT, CTRL('g'), ACT_EDITOR },
    { IN_INPUT, KEY(BACKSPACE), ACT_ERASE_LEFT },
    { IN_INPUT, MOD(SHIFT, BACKSPACE), ACT_ERASE_LEFT },
    { IN_LIST, KEY(DELETE), ACT_REMOVE },
    { IN_INPUT, KEY(DELETE), ACT_ERASE_RIGHT },
    { IN_INPUT, CTRL('w'), ACT_KILL_WORD_LEFT },
    { IN_INPUT, MOD(ALT, BACKSPACE), ACT_KILL_WORD_LEFT },
    { IN_INPUT, MOD(CTRL, BACKSPACE), ACT_KILL_WORD_LEFT },
    { IN_INPUT, ALT('d'), ACT_KILL_WORD_RIGHT },
    { IN_INPUT, MOD(CTRL, DELETE), ACT_KILL_WORD_RIGHT },
    { IN_INPUT, CTRL('k'), ACT_KILL_LINE_END },
    { IN_INPUT, CTRL('u'), ACT_KILL_LINE_START },
    { IN_INPUT, CTRL('y'), ACT_YANK },
    { IN_INPUT, ALT('z'), ACT_UNDO },
    { IN_INPUT, CTRL('_'), ACT_UNDO },
    { IN_INPUT, ALT('y'), ACT_REDO },

    { IN_LIST, KEY(F2), ACT_RENAME },
    { IN_LIST, CTRL('r'), ACT_RENAME },
    { IN_LIST, CTRL('x'), ACT_REMOVE },
    { IN_LIST, KEY(F8), ACT_REMOVE },
    { IN_LIST, ALT('p'), ACT_PIN },
};

#define ACTION_ROW(id, name, help) { name, help },
static const struct {
    const char *name, *help;
} actions[] = { ACTIONS(ACTION_ROW) };
#undef ACTION_ROW

const char *action_name(enum action a)
{
    return actions[a].name;
}

const char *action_help(enum action a)
{
    return actions[a].help;
}

void keymap_init(struct keymap *m)
{
    m->n = sizeof table / sizeof *table;
    m->v = mem_array(m->n, sizeof *m->v);
    memcpy(m->v, table, sizeof table);
}

void keymap_release(struct keymap *m)
{
    free(m->v);
    *m = (struct keymap){ 0 };
}

enum action keymap_action(const struct keymap *m, const struct key *k,
                          enum key_place place)
{
    bool wheel = k->code == K_WHEEL_UP || k->code == K_WHEEL_DOWN;
    for (size_t i = 0; i < m->n; i++) {
        const struct binding *b = &m->v[i];
        if (!(b->places & place) || b->code != k->code)
            continue;
        if (b->mods != k->mods && !wheel)
            continue;
        if (b->code == K_CHAR && b->c != k->cp)
            continue;
        return b->action;
    }
    return ACT_NONE;
}

/* ---- words ------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum key_code code;
} names[] = {
    { "Enter", K_ENTER },
    { "Tab", K_TAB },
    { "Backspace", K_BACKSPACE },
    { "Esc", K_ESC },
    { "Up", K_UP },
    { "Down", K_DOWN },
    { "Left", K_LEFT },
    { "Right", K_RIGHT },
    { "Home", K_HOME },
    { "End", K_END },
    { "PgUp", K_PAGE_UP },
    { "PgDn", K_PAGE_DOWN },
    { "Ins", K_INSERT },
    { "Del", K_DELETE },
    { "F1", K_F1 },
    { "F2", K_F2 },
    { "F3", K_F3 },
    { "F4", K_F4 },
    { "F5", K_F5 },
    { "F6", K_F6 },
    { "F7", K_F7 },
    { "F8", K_F8 },
    { "F9", K_F9 },
    { "F10", K_F10 },
    { "F11", K_F11 },
    { "F12", K_F12 },
    { "WheelUp", K_WHEEL_UP },
    { "WheelDown", K_WHEEL_DOWN },
};
enum { NAMES = sizeof names / sizeof *names };

static const struct {
    const char *name;
    unsigned mod;
} mods[] = { { "Ctrl+", MOD_CTRL }, { "Alt+", MOD_ALT }, { "Shift+", MOD_SHIFT } };

static void add_key(struct buf *out, const struct binding *b)
{
    for (size_t i = 0; i < sizeof mods / sizeof *mods; i++)
        buf_str(out, b->mods & mods[i].mod ? mods[i].name : "");
    for (size_t i = 0; i < NAMES; i++)
        if (names[i].code == b->code)
            buf_str(out, names[i].name);
    if (b->code == K_CHAR) {
        char s[4];
        bool letter = b->c >= 'a' && b->c <= 'z';
        size_t n = utf8_encode(letter ? b->c - 32 : b->c, s);
        buf_add(out, s, n);
    }
}

void keymap_keys(const struct keymap *m, enum action a, size_t most, struct buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n && n < most; i++) {
        const struct binding *b = &m->v[i];
        if (b->action != a || b->code == K_WHEEL_UP || b->code == K_WHEEL_DOWN)
            continue;
        buf_str(out, n++ ? ", " : "");
        add_key(out, b);
    }
}

/* "Ctrl+E" to a binding. */
static bool key_parse(const char *s, size_t n, struct binding *b)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < sizeof mods / sizeof *mods; i++) {
            size_t k = strlen(mods[i].name);
            if (n > k && !strncasecmp(s, mods[i].name, k)) {
                b->mods |= mods[i].mod;
                s += k;
                n -= k;
                more = true;
            }
        }
    }
    for (size_t i = 0; i < NAMES; i++)
        if (strlen(names[i].name) == n && !strncasecmp(s, names[i].name, n))
            b->code = names[i].code;
    if (b->code != K_NONE)
        return true;
    b->code = K_CHAR;
    /* A character alone types itself. */
    if (!(b->mods & (MOD_CTRL | MOD_ALT)) || !n || utf8_decode(s, n, &b->c) != n)
        return false;
    if (b->c >= 'A' && b->c <= 'Z')
        b->c += 32;
    return b->c > ' ' && b->c != UTF8_REPLACEMENT;
}

/* ---- other keys --------------------------------------------------------------- */

static int action_find(const char *name)
{
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++)
        if (!strcmp(actions[a].name, name))
            return a;
    return -1;
}

/* Removes the action's bindings; the places that it had. */
static unsigned unbind(struct keymap *m, enum action a)
{
    unsigned places = 0;
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->v[i].action == a)
            places |= m->v[i].places;
        else
            m->v[kept++] = m->v[i];
    }
    m->n = kept;
    return places;
}

static unsigned places_of(enum action a)
{
    unsigned places = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].action == a)
            places |= table[i].places;
    return places;
}

static void put_at(struct keymap *m, size_t i, const struct binding *b)
{
    m->v = mem_regrow(m->v, m->n + 1, sizeof *m->v);
    memmove(m->v + i + 1, m->v + i, (m->n++ - i) * sizeof *m->v);
    m->v[i] = *b;
}

/* The keys of a list, one at a time; false at its end. */
static bool next_key(const char **list, const char **key, size_t *n)
{
    while (**list == ' ' || **list == ',')
        ++*list;
    *key = *list;
    /* A comma may be a key itself. */
    *n = strcspn(*list, ", ");
    if (*n && (*list)[*n - 1] == '+' && (*list)[*n] == ',')
        ++*n;
    *list += *n;
    return *n > 0;
}

int keymap_bind(struct keymap *m, const char *action, const char *keys, struct err *err)
{
    int a = action_find(action);
    const char *at = keys, *key;
    size_t n;
    if (a < 0)
        return err_set(err, "there is no action \"%s\"; tern help keys lists them",
                       action);
    bool none = !strcmp(keys, "none");
    while (!none && next_key(&at, &key, &n)) {
        struct binding b = { .code = K_NONE };
        if (!key_parse(key, n, &b))
            return err_set(err, "\"%.*s\" is no key that can be told from typing", (int)n,
                           key);
    }
    if (!none && !*keys)
        return err_set(err, "%s needs keys, or none", action);
    unbind(m, (enum action)a);
    at = keys;
    for (size_t i = 0; !none && next_key(&at, &key, &n); i++) {
        struct binding b = { .places = places_of((enum action)a),
                             .action = (enum action)a };
        key_parse(key, n, &b);
        put_at(m, i, &b);
    }
    return 0;
}
