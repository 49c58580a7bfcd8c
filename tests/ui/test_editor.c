/* test_editor.c - editing by grapheme and word, undo, history, kill ring. */
#include "ui/editor.h"

#include "base/utf8.h"
#include "tests/test.h"

#define FAMILY "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"
#define NIHAO  "\xE4\xBD\xA0\xE5\xA5\xBD"

static void type(struct editor *e, const char *s)
{
    for (size_t i = 0, n = strlen(s), len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(s + i, n - i, &cp);
        REQUIRE(editor_insert(e, s + i, len));
    }
}

static void check(const struct editor *e, const char *text, size_t cursor)
{
    CHECK_STR(buf_cstr(&e->text), text);
    CHECK(e->cursor == cursor);
}

static void test_graphemes(void)
{
    struct editor e;
    editor_init(&e);
    type(&e, "a" FAMILY NIHAO "e\xCC\x81");
    editor_erase(&e, TO_LEFT);
    check(&e, "a" FAMILY NIHAO, strlen("a" FAMILY NIHAO));
    editor_move(&e, TO_LEFT);
    editor_move(&e, TO_LEFT);
    editor_erase(&e, TO_LEFT); /* the whole family, not one member */
    check(&e, "a" NIHAO, 1);
    editor_erase(&e, TO_RIGHT);
    check(&e, "a\xE5\xA5\xBD", 1);
    editor_move(&e, TO_START);
    editor_erase(&e, TO_LEFT); /* nothing there */
    check(&e, "a\xE5\xA5\xBD", 0);
    editor_release(&e);
}

static void test_lines_and_words(void)
{
    struct editor e;
    editor_init(&e);
    editor_set(&e, "one two\nthree four\n");
    editor_move(&e, TO_LEFT);
    editor_move(&e, TO_LINE_START);
    CHECK(e.cursor == 8);
    editor_move(&e, TO_LINE_END);
    CHECK(e.cursor == 18);
    editor_move(&e, TO_WORD_LEFT);
    CHECK(e.cursor == 14);
    editor_erase(&e, TO_WORD_LEFT);
    check(&e, "one two\nfour\n", 8);
    editor_erase(&e, TO_WORD_RIGHT);
    check(&e, "one two\n\n", 8);
    editor_release(&e);
}

static void test_undo(void)
{
    struct editor e;
    editor_init(&e);
    CHECK(!editor_undo(&e) && !editor_redo(&e));
    type(&e, "hello world");
    CHECK(editor_undo(&e)); /* a word at a time */
    check(&e, "hello ", 6);
    CHECK(editor_undo(&e));
    check(&e, "", 0);
    CHECK(editor_redo(&e) && editor_redo(&e) && !editor_redo(&e));
    check(&e, "hello world", 11);
    editor_erase(&e, TO_LEFT);
    type(&e, "k");
    CHECK(editor_undo(&e) && editor_undo(&e));
    check(&e, "hello world", 11);
    type(&e, "!");
    CHECK(!editor_redo(&e)); /* a new edit ends what could be redone */
    editor_set(&e, "");
    CHECK(editor_undo(&e));
    check(&e, "hello world!", 12);
    editor_release(&e);
}

static void test_kill(void)
{
    struct editor e;
    editor_init(&e);
    editor_set(&e, "a bc\nd");
    editor_move(&e, TO_START);
    editor_kill(&e, TO_LINE_END);
    check(&e, "\nd", 0);
    editor_kill(&e, TO_LINE_END); /* at the end of a line: the newline, joined */
    check(&e, "d", 0);
    editor_move(&e, TO_END);
    editor_yank(&e);
    check(&e, "da bc\n", 6);
    editor_kill(&e, TO_WORD_LEFT);
    editor_kill(&e, TO_WORD_LEFT);
    check(&e, "", 0);
    editor_yank(&e);
    check(&e, "da bc\n", 6);
    editor_release(&e);
}

static void test_history(void)
{
    struct editor e;
    editor_init(&e);
    CHECK(!editor_history(&e, -1));
    editor_remember(&e, "first");
    editor_remember(&e, "second");
    editor_remember(&e, "second");
    editor_remember(&e, "");
    CHECK(e.n_history == 2);
    type(&e, "draft");
    CHECK(editor_history(&e, -1));
    check(&e, "second", 6);
    CHECK(editor_history(&e, -1) && !editor_history(&e, -1));
    check(&e, "first", 5);
    CHECK(editor_history(&e, 1) && editor_history(&e, 1) && !editor_history(&e, 1));
    check(&e, "draft", 5);
    for (int i = 0; i < EDITOR_HISTORY_MAX + 10; i++) {
        char s[16];
        snprintf(s, sizeof s, "%d", i);
        editor_remember(&e, s);
    }
    CHECK(e.n_history == EDITOR_HISTORY_MAX);
    CHECK_STR(e.history[0], "10");
    editor_release(&e);
}

static void test_limit(void)
{
    struct editor e;
    size_t n = EDITOR_BYTES_MAX;
    char *big = malloc(n + 1);
    memset(big, 'x', n);
    editor_init(&e);
    CHECK(editor_insert(&e, big, n));
    CHECK(!editor_insert(&e, "y", 1));
    CHECK(e.text.len == n);
    editor_release(&e);
    free(big);
}

/* Random operations. The cursor stays on a boundary, the text stays UTF-8, and
 * undoing everything leads back to the start, redoing everything to the end. */
static void test_random(void)
{
    static const char *const bits[] = { "a",    " ",         "\n",       NIHAO,
                                        FAMILY, "e\xCC\x81", "word word" };
    uint32_t seed = 5;
    for (int round = 0; round < 200; round++) {
        struct editor e;
        editor_init(&e);
        for (int i = 0; i < 150; i++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t r = seed >> 8;
            enum motion m = (enum motion)(r / 16 % 8);
            switch (r % 8) {
            case 0:
                editor_move(&e, m);
                break;
            case 1:
                editor_erase(&e, m);
                break;
            case 2:
                editor_kill(&e, m);
                break;
            case 3:
                editor_yank(&e);
                break;
            case 4:
                editor_undo(&e);
                break;
            case 5:
                editor_redo(&e);
                break;
            default:
                editor_insert(&e, bits[r / 16 % 7], strlen(bits[r / 16 % 7]));
                break;
            }
            REQUIRE(e.cursor <= e.text.len);
            REQUIRE(utf8_valid(buf_cstr(&e.text), e.text.len));
            REQUIRE(utf8_valid(buf_cstr(&e.text), e.cursor));
            REQUIRE(e.text.len == strlen(buf_cstr(&e.text)));
            if (e.text.len > 20000)
                editor_set(&e, "");
        }
        while (editor_redo(&e)) {
        }
        char *end = strdup(buf_cstr(&e.text));
        while (editor_undo(&e)) {
        }
        CHECK_STR(buf_cstr(&e.text), "");
        while (editor_redo(&e)) {
        }
        CHECK_STR(buf_cstr(&e.text), end);
        free(end);
        editor_release(&e);
    }
}

TEST_MAIN(T(test_graphemes), T(test_lines_and_words), T(test_undo), T(test_kill),
          T(test_history), T(test_limit), T(test_random))
