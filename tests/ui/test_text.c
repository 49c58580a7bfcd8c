/* test_text.c - wrapping by grapheme, tabs, prefixes, rewinding, drawing. */
#include "ui/text.h"

#include "base/sanitize.h"
#include "base/utf8.h"
#include "tests/test.h"
#include "ui/theme.h"

#define FAMILY "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"
#define NI     "\xE4\xBD\xA0"
#define HAO    "\xE5\xA5\xBD"
#define STOP   "\xE3\x80\x82" /* ideographic full stop */

/* The lines of one paragraph, joined by '|'. */
static void wrapped(enum para_kind kind, const char *s, int width, const char *want)
{
    struct text t = { 0 };
    struct buf got = BUF_INIT;
    text_para(&t, kind, "", "");
    text_str(&t, s, STYLE_TEXT);
    size_t n = text_wrap(&t, width);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(&got, '|');
        buf_add(&got, t.bytes.v + t.lines[i].start, t.lines[i].bytes);
    }
    CHECK_STR(buf_cstr(&got), want);
    buf_release(&got);
    text_release(&t);
}

static void test_words(void)
{
    wrapped(PARA_FLOW, "the quick brown fox", 10, "the quick|brown fox");
    wrapped(PARA_FLOW, "the quick brown fox", 9, "the quick|brown fox");
    wrapped(PARA_FLOW, "the quick", 100, "the quick");
    wrapped(PARA_FLOW, "", 5, "");
    wrapped(PARA_FLOW, "a    b", 3, "a|b");
    wrapped(PARA_FLOW, "abcdefgh", 3, "abc|def|gh");
    wrapped(PARA_FLOW, "a abcdefgh", 4, "a|abcd|efgh");
    wrapped(PARA_FLOW, "  indented", 4, "  in|dent|ed");
    wrapped(PARA_FLOW, "well-known --flag -5", 6, "well-|known|--flag|-5");
    wrapped(PARA_FLOW, "abc", 1, "a|b|c");
}

static void test_wide(void)
{
    wrapped(PARA_FLOW, NI HAO NI HAO, 5, NI HAO "|" NI HAO);
    wrapped(PARA_FLOW, NI HAO NI HAO STOP, 8, NI HAO NI "|" HAO STOP);
    wrapped(PARA_FLOW, "ab" NI, 3, "ab|" NI);
    wrapped(PARA_FLOW, "a" FAMILY "b", 2, "a|" FAMILY "|b");
    wrapped(PARA_CODE, "a" FAMILY FAMILY "b", 3, "a" FAMILY "|" FAMILY "b");
    wrapped(PARA_FLOW, NI NI, 1, NI "|" NI); /* wider than the line: still ends */
    wrapped(PARA_FLOW,
            "e\xCC\x81"
            "e\xCC\x81",
            1, "e\xCC\x81|e\xCC\x81");
}

static void test_code_and_tabs(void)
{
    wrapped(PARA_CODE, "if (x)  y;", 6, "if (x)|  y;");
    wrapped(PARA_CODE, "\tab", 6, "\tab");
    wrapped(PARA_CODE, "\tabc", 6, "\tab|c");
    wrapped(PARA_CODE, "a\tb\tc", 8, "a\tb\t|c");
}

static char *drawn(const struct text *t, int rows, int cols)
{
    struct screen s = { 0 };
    struct buf b = BUF_INIT;
    screen_resize(&s, rows, cols);
    for (int i = 0; i < rows; i++)
        text_draw(t, (size_t)i, &s, span(i, 0, cols));
    screen_dump(&s, &b);
    screen_release(&s);
    return buf_detach(&b);
}

static void test_draw(void)
{
    struct text t = { 0 };
    text_para(&t, PARA_FLOW, "\xE2\x80\xA2 ", "  ");
    text_str(&t, "one ", STYLE_TEXT);
    text_str(&t, "two three", STYLE_CODE);
    text_para(&t, PARA_CODE, "", "");
    text_str(&t, "a\tb", STYLE_CODE);
    text_para(&t, PARA_RULE, "", "");
    REQUIRE(text_wrap(&t, 10) == 4);
    char *got = drawn(&t, 4, 10);
    CHECK_STR(got, "\xE2\x80\xA2 one two\n  three\na   b\n"
                   "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80"
                   "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\n");
    free(got);
    REQUIRE(text_wrap(&t, 3) > 4); /* the prefix goes where there is no room */
    got = drawn(&t, 2, 3);
    CHECK_STR(got, "one\ntwo\n");
    free(got);
    text_release(&t);
}

static void test_styles_reach_cells(void)
{
    struct text t = { 0 };
    struct screen s = { 0 };
    struct buf b = BUF_INIT;
    text_para(&t, PARA_FLOW, "", "");
    text_str(&t, "ab", STYLE_CODE);
    text_str(&t, "cd", STYLE_LINK | STYLE_BOLD);
    text_wrap(&t, 3);
    screen_resize(&s, 2, 3);
    text_draw(&t, 0, &s, span(0, 0, 3));
    text_draw(&t, 1, &s, span(1, 0, 3));
    screen_dump_styles(&s, &b);
    CHECK_STR(buf_cstr(&b), "ccl\nl\n");
    CHECK(screen_cell(&s, 1, 0)->style == (STYLE_LINK | STYLE_BOLD));
    buf_release(&b);
    screen_release(&s);
    text_release(&t);
}

/* What is cut away and added again gives the same lines as added once. */
static void test_rewind(void)
{
    struct text a = { 0 }, b = { 0 };
    text_para(&a, PARA_FLOW, "", "");
    text_str(&a, "first paragraph of words", STYLE_TEXT);
    struct text_mark m = text_mark(&a);
    text_para(&a, PARA_FLOW, "> ", "> ");
    text_str(&a, "draft", STYLE_DIM);
    text_wrap(&a, 9);
    text_rewind(&a, m);
    text_para(&a, PARA_FLOW, "- ", "  ");
    text_str(&a, "second one here", STYLE_TEXT);
    text_para(&b, PARA_FLOW, "", "");
    text_str(&b, "first paragraph of words", STYLE_TEXT);
    text_para(&b, PARA_FLOW, "- ", "  ");
    text_str(&b, "second one here", STYLE_TEXT);
    REQUIRE(text_wrap(&a, 9) == text_wrap(&b, 9));
    char *x = drawn(&a, 8, 9), *y = drawn(&b, 8, 9);
    CHECK_STR(x, y);
    free(x);
    free(y);
    text_release(&a);
    text_release(&b);
}

static void test_places(void)
{
    struct text t = { 0 };
    for (int i = 0; i < 50; i++) {
        text_para(&t, PARA_FLOW, "", "");
        text_str(&t, "some words that wrap at several widths, more or less", STYLE_TEXT);
    }
    size_t n = text_wrap(&t, 17);
    for (size_t i = 0; i < n; i++)
        CHECK(text_line_at(&t, text_line_pos(&t, i)) == i);
    size_t pos = text_line_pos(&t, n / 2);
    text_wrap(&t, 80);
    size_t line = text_line_at(&t, pos);
    CHECK(t.lines[line].start <= pos && pos <= t.lines[line].start + t.lines[line].bytes);
    text_release(&t);
}

/* Random text at random widths: no byte but spaces is lost, no line is wider
 * than its width unless it is a single grapheme, no cluster is split. */
static void test_random(void)
{
    static const char *const bits[] = {
        "a",  "bc",   " ",  "  ",        "-",    NI,  HAO,
        STOP, FAMILY, "\t", "e\xCC\x81", "word", "(", ")"
    };
    uint32_t seed = 3;
    for (int round = 0; round < 3000; round++) {
        struct text t = { 0 };
        struct buf in = BUF_INIT;
        for (int i = 0; i < 30; i++) {
            seed = seed * 1664525u + 1013904223u;
            buf_str(&in, bits[(seed >> 8) % (sizeof bits / sizeof *bits)]);
        }
        int width = (int)(seed >> 20) % 20 + 1;
        text_para(&t, round & 1 ? PARA_FLOW : PARA_CODE, "", "");
        text_add(&t, in.v, in.len, STYLE_TEXT);
        size_t n = text_wrap(&t, width), at = 0;
        for (size_t i = 0; i < n; i++) {
            struct line l = t.lines[i];
            REQUIRE(l.start >= at);
            for (size_t k = at; k < l.start; k++)
                REQUIRE(in.v[k] == ' ' || in.v[k] == '\t');
            int cols = 0;
            size_t clusters = 0;
            for (size_t k = l.start; k < l.start + l.bytes; clusters++) {
                size_t end = utf8_grapheme_next(in.v, in.len, k);
                REQUIRE(end <= l.start + l.bytes);
                cols += in.v[k] == '\t' ? text_tab(cols)
                                        : utf8_grapheme_width(in.v + k, end - k);
                k = end;
            }
            REQUIRE(cols <= width || clusters == 1);
            at = l.start + l.bytes;
        }
        for (size_t k = at; k < in.len; k++)
            REQUIRE(in.v[k] == ' ' || in.v[k] == '\t');
        buf_release(&in);
        text_release(&t);
    }
}

static void test_screen_edges(void)
{
    struct screen s = { 0 };
    struct buf b = BUF_INIT;
    screen_resize(&s, 2, 5);
    CHECK(screen_str(&s, span(0, 3, 5), NI NI, STYLE_TEXT) == 5);
    CHECK(screen_str(&s, span(1, 4, 5), NI, STYLE_TEXT) == 4); /* no half characters */
    CHECK(screen_str(&s, span(5, 0, 5), "x", STYLE_TEXT) == 0);
    CHECK(screen_str(&s, span(0, -1, 5), "x", STYLE_TEXT) == -1);
    screen_str(&s, span(1, 0, 5), "\x1b[2J\n", STYLE_TEXT);
    screen_dump(&s, &b);
    CHECK_STR(buf_cstr(&b), "   " NI "\n?[2J?\n");
    buf_truncate(&b, 0);
    screen_str(&s, span(0, 4, 5), "x", STYLE_TEXT); /* replaces half of a wide one */
    screen_dump(&s, &b);
    CHECK_STR(buf_cstr(&b), "    x\n?[2J?\n");
    screen_resize(&s, 0, 0);
    CHECK(screen_str(&s, span(0, 0, 0), "x", STYLE_TEXT) == 0);
    screen_resize(&s, 1 << 20, 1 << 20);
    CHECK(s.rows == SCREEN_ROWS_MAX && s.cols == SCREEN_COLS_MAX);
    buf_release(&b);
    screen_release(&s);
}

TEST_MAIN(T(test_words), T(test_wide), T(test_code_and_tabs), T(test_draw),
          T(test_styles_reach_cells), T(test_rewind), T(test_places), T(test_random),
          T(test_screen_edges))
