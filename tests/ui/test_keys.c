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
    size_t n;
    const struct binding *t = keys_table(&n);
    for (size_t i = 0; i < n; i++) {
        unsigned left = t[i].places;
        for (size_t k = 0; k < i; k++)
            if (same_key(&t[i], &t[k]))
                left &= ~t[k].places;
        if (!left)
            printf("# row %zu, %s\n", i, t[i].name ? t[i].name : "?");
        CHECK(left != 0);
    }
}

static void test_every_action_has_a_key(void)
{
    size_t n;
    const struct binding *t = keys_table(&n);
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        bool found = false;
        for (size_t i = 0; i < n; i++)
            found = found || (int)t[i].action == a;
        if (!found)
            printf("# action %d\n", a);
        CHECK(found);
    }
}

static void test_lookup(void)
{
    struct key k = { .code = K_CHAR, .mods = MOD_CTRL, .cp = 'r' };
    CHECK(keys_action(&k, IN_CHAT) == ACT_REGENERATE);
    CHECK(keys_action(&k, IN_LIST) == ACT_RENAME);
    CHECK(keys_action(&k, IN_HELP) == ACT_NONE);
    k.mods = 0;
    CHECK(keys_action(&k, IN_CHAT) == ACT_NONE);
    k = (struct key){ .code = K_DELETE };
    CHECK(keys_action(&k, IN_LIST) == ACT_REMOVE);
    CHECK(keys_action(&k, IN_CHAT) == ACT_ERASE_RIGHT);
    k = (struct key){ .code = K_WHEEL_UP, .mods = MOD_SHIFT };
    CHECK(keys_action(&k, IN_CHAT) == ACT_LINE_UP);
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct decoder d = { 0 };
        struct key k = { 0 };
        decode_feed(&d, cases[i].bytes, strlen(cases[i].bytes), 0);
        REQUIRE(decode_next(&d, 100, &k));
        CHECK(keys_action(&k, IN_CHAT) == cases[i].action);
        decode_release(&d);
    }
}

TEST_MAIN(T(test_no_row_is_hidden), T(test_every_action_has_a_key), T(test_lookup),
          T(test_bytes_to_actions))
