/* test_keys.c - the key table is consistent. */
#include "ui/keys.h"

#include "tests/test.h"

static bool same_key(const struct binding *a, const struct binding *b)
{
    return a->code == b->code && a->mods == b->mods && a->c == b->c;
}

/* A key has one meaning in a place: later rows for it would never be reached. */
static void test_no_row_is_hidden(void)
{
    struct keymap m;
    keymap_init(&m);
    for (size_t i = 0; i < m.n; i++) {
        unsigned left = m.v[i].places;
        for (size_t k = 0; k < i; k++)
            if (same_key(&m.v[i], &m.v[k]))
                left &= ~m.v[k].places;
        if (!left)
            printf("# row %zu, %s\n", i, action_name(m.v[i].action));
        CHECK(left != 0);
    }
    keymap_release(&m);
}

/* Each action has a key, a name of its own, and a line of help if any is due. */
static void test_every_action(void)
{
    struct keymap m;
    keymap_init(&m);
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        struct buf keys = BUF_INIT;
        keymap_keys(&m, (enum action)a, SIZE_MAX, &keys);
        if (!keys.len)
            printf("# action %s\n", action_name((enum action)a));
        CHECK(keys.len > 0);
        for (int k = ACT_NONE; k < a; k++)
            CHECK(strcmp(action_name((enum action)a), action_name((enum action)k)) != 0);
        CHECK(strlen(action_help((enum action)a)) < 58);
        buf_release(&keys);
    }
    keymap_release(&m);
}

static void test_lookup(void)
{
    struct keymap m;
    struct key k = { .code = K_CHAR, .mods = MOD_CTRL, .cp = 'r' };
    keymap_init(&m);
    CHECK(keymap_action(&m, &k, IN_CHAT) == ACT_REGENERATE);
    CHECK(keymap_action(&m, &k, IN_LIST) == ACT_RENAME);
    CHECK(keymap_action(&m, &k, IN_HELP) == ACT_NONE);
    k.mods = 0;
    CHECK(keymap_action(&m, &k, IN_CHAT) == ACT_NONE);
    k = (struct key){ .code = K_DELETE };
    CHECK(keymap_action(&m, &k, IN_LIST) == ACT_REMOVE);
    CHECK(keymap_action(&m, &k, IN_CHAT) == ACT_ERASE_RIGHT);
    k = (struct key){ .code = K_WHEEL_UP, .mods = MOD_SHIFT };
    CHECK(keymap_action(&m, &k, IN_CHAT) == ACT_LINE_UP);
    keymap_release(&m);
}

/* What is written in the configuration, what the help says, what is pressed. */
static void test_other_keys(void)
{
    struct keymap m;
    struct err err;
    struct buf keys = BUF_INIT;
    keymap_init(&m);
    REQUIRE(keymap_bind(&m, "edit", "F4, ctrl+alt+e,Alt+,", &err) == 0);
    keymap_keys(&m, ACT_EDIT, SIZE_MAX, &keys);
    CHECK_STR(keys.v, "F4, Ctrl+Alt+E, Alt+,");
    struct key k = { .code = K_F4 };
    CHECK(keymap_action(&m, &k, IN_CHAT) == ACT_EDIT);
    CHECK(keymap_action(&m, &k, IN_LIST) == ACT_NONE); /* where it always was */
    k = (struct key){ .code = K_CHAR, .mods = MOD_ALT, .cp = 'e' };
    CHECK(keymap_action(&m, &k, IN_CHAT) == ACT_NONE); /* the usual one is gone */
    k = (struct key){ .code = K_CHAR, .mods = MOD_CTRL | MOD_ALT, .cp = 'e' };
    CHECK(keymap_action(&m, &k, IN_CHAT) == ACT_EDIT);
    /* A key that did something else. */
    REQUIRE(keymap_bind(&m, "find", "Ctrl+R", &err) == 0);
    k = (struct key){ .code = K_CHAR, .mods = MOD_CTRL, .cp = 'r' };
    CHECK(keymap_action(&m, &k, IN_CHAT) == ACT_FIND);
    CHECK(keymap_action(&m, &k, IN_LIST) == ACT_RENAME);
    REQUIRE(keymap_bind(&m, "find", "none", &err) == 0);
    buf_truncate(&keys, 0);
    keymap_keys(&m, ACT_FIND, SIZE_MAX, &keys);
    CHECK(keys.len == 0);
    REQUIRE(keymap_bind(&m, "find", "Shift+PgUp", &err) == 0);
    CHECK(keymap_bind(&m, "fly", "F4", &err) < 0 && strstr(err.text, "fly"));
    static const char *const bad[] = { "",        "x",        "Ctrl+",
                                       "Hyper+X", "F13",      "Ctrl+ab",
                                       "Shift+x", "Alt+\xff", "Ctrl+F, y" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(keymap_bind(&m, "find", bad[i], &err) < 0);
    buf_truncate(&keys, 0);
    keymap_keys(&m, ACT_FIND, SIZE_MAX, &keys);
    CHECK_STR(keys.v, "Shift+PgUp"); /* as before all that */
    buf_release(&keys);
    keymap_release(&m);
}

/* What decode.c makes of the bytes is what the table asks for. */
static void test_bytes_to_actions(void)
{
    static const struct {
        const char *bytes;
        enum action action;
    } cases[] = {
        { "\r", ACT_ENTER },
        { "\n", ACT_NEWLINE },
        { "\x1b\r", ACT_NEWLINE },
        { "\x1b[13;2u", ACT_NEWLINE },
        { "\x03", ACT_INTERRUPT },
        { "\x1b[99;5u", ACT_INTERRUPT },
        { "\x1f", ACT_UNDO },
        { "\x1b[1;5H", ACT_TOP },
        { "\x1b[5~", ACT_PAGE_UP },
        { "\x1b\x7f", ACT_KILL_WORD_LEFT },
        { "\x1b[1;5D", ACT_WORD_LEFT },
        { "\x1bOP", ACT_HELP },
        { "\x1b[1;3A", ACT_MESSAGE_PREV },
        { "\x1a", ACT_SUSPEND },
        { "\x1b[3;5~", ACT_KILL_WORD_RIGHT },
    };
    struct keymap m;
    keymap_init(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct decoder d = { 0 };
        struct key k = { 0 };
        decode_feed(&d, cases[i].bytes, strlen(cases[i].bytes), 0);
        REQUIRE(decode_next(&d, 100, &k));
        CHECK(keymap_action(&m, &k, IN_CHAT) == cases[i].action);
        decode_release(&d);
    }
    keymap_release(&m);
}

TEST_MAIN(T(test_no_row_is_hidden), T(test_every_action), T(test_lookup),
          T(test_other_keys), T(test_bytes_to_actions))
