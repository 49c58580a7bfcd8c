/* test_markdown.c - rendering against golden dumps, and the promise that the
 * result does not depend on how a text was cut on its way. */
#include "ui/markdown.h"

#include "base/utf8.h"
#include "tests/test.h"
#include "ui/theme.h"

#define BULLET "\xE2\x80\xA2 "
#define EDGE   "\xE2\x94\x80\xE2\x94\x80"
#define BAR    "\xE2\x94\x82 "

static void dump(struct markdown *md, int width, struct buf *out, struct buf *styles)
{
    struct screen s = { 0 };
    size_t n = text_wrap(&md->text, width);
    screen_resize(&s, (int)n, width);
    for (size_t i = 0; i < n; i++)
        text_draw(&md->text, i, &s, span((int)i, 0, width));
    screen_dump(&s, out);
    if (styles)
        screen_dump_styles(&s, styles);
    screen_release(&s);
}

static void golden(const char *source, int width, const char *want,
                   const char *want_styles)
{
    struct markdown md = { 0 };
    struct buf got = BUF_INIT, styles = BUF_INIT;
    markdown_feed(&md, source, strlen(source), true);
    dump(&md, width, &got, &styles);
    CHECK_STR(buf_cstr(&got), want);
    if (want_styles)
        CHECK_STR(buf_cstr(&styles), want_styles);
    buf_release(&got);
    buf_release(&styles);
    markdown_release(&md);
}

static void test_blocks(void)
{
    golden("# One\ntext\n\n\n\n## Two\n", 40, "One\ntext\n\nTwo\n", "hhh\n\n\nhhh\n");
    golden("Head\n===\ntext", 40, "Head\n\ntext\n", "hhhh\n\n\n");
    golden("a\nb\n\nc", 40, "a\nb\n\nc\n", NULL);
    golden("***\n", 4, "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\n", "rrrr\n");
    golden("> a b c\n> d\nlazy", 5, BAR "a b\n" BAR "c\n" BAR "d\n" BAR "laz\n" BAR "y\n",
           NULL);
    golden("> > deep\n", 20, BAR BAR "deep\n", NULL);
    golden("", 10, "", NULL);
    golden("\n\n\n", 10, "", NULL);
}

static void test_lists(void)
{
    golden("- a\n- b ccc d\n  - e\n", 8,
           BULLET "a\n" BULLET "b ccc\n  d\n  " BULLET "e\n", NULL);
    golden("1. a\n1. b\n1. c\n", 20, "1. a\n2. b\n3. c\n", NULL);
    golden("7) a\n8) b\n", 20, "7. a\n8. b\n", NULL);
    golden("1. a\n\n2. b\n\n   more\n3. c", 20, "1. a\n\n2. b\n\n   more\n3. c\n", NULL);
    golden("1. a\n\ntext\n\n1. b\n", 20, "1. a\n\ntext\n\n1. b\n", NULL);
    golden("0. a\n0. b\n", 20, "0. a\n1. b\n", NULL);
    golden("- [ ] a\n- [x] b\n", 20, BULLET "[ ] a\n" BULLET "[x] b\n", NULL);
    golden("- a\n\n- b\n- \n", 20, BULLET "a\n\n" BULLET "b\n\xE2\x80\xA2\n", NULL);
    golden("text\n- a\n1. b\n", 20, "text\n" BULLET "a\n1. b\n", NULL);
    golden("1. a\n   ```sh\n   ls\n   ```\n2. b\n", 20,
           "1. a\n   " EDGE " sh\n   ls\n   " EDGE "\n2. b\n", NULL);
}

static void test_spans(void)
{
    golden("a *b* **c** `d` ~~e~~", 40, "a b c d e\n", "      c\n");
    golden("[t](http://x/) <http://y/> ![i](p.png)", 60,
           "t (http://x/) http://y/ i (p.png)\n", "lllllllllllll lllllllll lllllllll\n");
    golden("a&amp;b &lt;&#65;&#x42; &nope; <b>", 40, "a&b <AB &nope; <b>\n", NULL);
    golden("2 * 3 * 4, snake_case_name, \\*x\\*", 40, "2 * 3 * 4, snake_case_name, *x*\n",
           NULL);
    golden("`` a`b ``", 40, "a`b\n", "ccc\n");
    struct markdown md = { 0 };
    const char *s = "**b** *i*";
    markdown_feed(&md, s, strlen(s), true);
    text_wrap(&md.text, 20);
    struct screen sc = { 0 };
    screen_resize(&sc, 1, 20);
    text_draw(&md.text, 0, &sc, span(0, 0, 20));
    CHECK(screen_cell(&sc, 0, 0)->style == (STYLE_TEXT | STYLE_BOLD));
    CHECK(screen_cell(&sc, 0, 2)->style == (STYLE_TEXT | STYLE_ITALIC));
    screen_release(&sc);
    markdown_release(&md);
}

static void test_code(void)
{
    golden("```c\nint x;\n\n  y **b**\n```\nt", 20,
           EDGE " c\nint x;\n\n  y **b**\n" EDGE "\nt\n",
           "rrrr\nyyyooo\n\nooooooooo\nrr\n\n");
    golden("```\nopen\n", 20, EDGE "\nopen\n", NULL);
    golden("~~~~\n```\n~~~\n~~~~\nx", 20, EDGE "\n```\n~~~\n" EDGE "\nx\n", NULL);
    golden("  ```\n  a\n b\n  ```\n", 20, EDGE "\na\nb\n" EDGE "\n", NULL);
    golden("    a\n\n    b\nc", 20, EDGE "\na\n\nb\n" EDGE "\nc\n", NULL);
    golden("```\na\tb\n```", 20, EDGE "\na   b\n" EDGE "\n", NULL);
}

static void test_tables(void)
{
    golden("| a | long |\n|:--|--:|\n| \xE4\xBD\xA0\xE5\xA5\xBD | 1 |\n| x | `22` |\n",
           40,
           "a    \xE2\x94\x82 long\n"
           "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\xBC"
           "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\n"
           "\xE4\xBD\xA0\xE5\xA5\xBD \xE2\x94\x82    1\nx    \xE2\x94\x82   22\n",
           NULL);
    golden("|a|\n|---|\n", 10, "a\n\xE2\x94\x80\n", NULL);
}

static void test_hostile(void)
{
    golden("a\x1b]52;c;x\x07"
           "b",
           40, "a\\x1b]52;c;x\\x07b\n", NULL);
    golden("&#27;[2J &#x9b;1m &#x202e;", 40, "\\x1b[2J \\x9b1m \\u{202e}\n", NULL);
    golden("[x](http://a/\x1b[0m)", 60, "x (http://a/\\x1b[0m)\n", NULL);
    golden("```\x1b[31m\nx", 40, EDGE " \\x1b[31m\nx\n", NULL);
    golden("\xFF\xE2\x80\xAE", 40, "\\xff\\u{202e}\n", NULL);
}

static void check_same(struct markdown *a, struct markdown *b)
{
    struct buf x = BUF_INIT, y = BUF_INIT, sx = BUF_INIT, sy = BUF_INIT;
    dump(a, 40, &x, &sx);
    dump(b, 40, &y, &sy);
    CHECK_STR(buf_cstr(&x), buf_cstr(&y));
    CHECK_STR(buf_cstr(&sx), buf_cstr(&sy));
    buf_release(&x);
    buf_release(&y);
    buf_release(&sx);
    buf_release(&sy);
}

static const char *const texts[] = {
    "# T\n\nSome **bold** text\nover lines\n\n1. one\n1. two\n   - in\n\n     deep\n1. "
    "three\n\n"
    "> q\n> r\n\n```py\nx = 1\n\ny\n```\nend\n---\nmore\n",
    "- a\n- b\n\n\n- c\n\n  d\n\n      code\n\ntext\n\n    ind\n\n    ind2\nout\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nText `c` "
    "[l](u)\n***\n~~~\nunclosed\n``` x\n",
    "para\n# head\npara\n> quote\npara\n- item\npara\n1. x\n2. y\n10. z\n```\n```\n\n\n",
    "1. a\n\n2. b\n\n- c\n\n3. d\n\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 "
    "\xE4\xBD\xA0\n\n"
    "\t tab\n\xFF\xE2\x80\n",
};

/* Cut once, at every byte. */
static void test_cut_anywhere(void)
{
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        size_t n = strlen(texts[k]);
        struct markdown whole = { 0 };
        markdown_feed(&whole, texts[k], n, true);
        for (size_t cut = 0; cut <= n; cut++) {
            struct markdown parts = { 0 };
            markdown_feed(&parts, texts[k], cut, false);
            markdown_feed(&parts, texts[k], n, true);
            check_same(&whole, &parts);
            markdown_release(&parts);
        }
        markdown_release(&whole);
    }
}

/* Byte by byte; every state on the way equals that of a text that ends there. */
static void test_byte_by_byte(void)
{
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        struct markdown stream = { 0 };
        for (size_t n = 0; n <= strlen(texts[k]); n++) {
            struct markdown whole = { 0 };
            markdown_feed(&stream, texts[k], n, false);
            markdown_feed(&whole, texts[k], utf8_complete(texts[k], n), true);
            check_same(&whole, &stream);
            markdown_release(&whole);
        }
        markdown_release(&stream);
    }
}

static void test_random_markup(void)
{
    static const char *const bits[] = {
        "\n", "\n",    "\n\n", " ",      "  ",  "    ",   "- ",  "1. ", "2. ",
        "# ", "> ",    "```",  "```c\n", "~~~", "---",    "***", "|",   "|---|",
        "a",  "word ", "**",   "`",      "*",   "[x](y)", "\t",  "0. ",
    };
    uint32_t seed = 11;
    for (int round = 0; round < 1500; round++) {
        struct buf in = BUF_INIT;
        struct markdown whole = { 0 }, parts = { 0 };
        for (int i = 0; i < 40; i++) {
            seed = seed * 1664525u + 1013904223u;
            buf_str(&in, bits[(seed >> 8) % (sizeof bits / sizeof *bits)]);
        }
        markdown_feed(&whole, in.v, in.len, true);
        for (size_t n = 0; n < in.len; n += (seed >> 9) % 7 + 1)
            markdown_feed(&parts, in.v, n, false);
        markdown_feed(&parts, in.v, in.len, true);
        check_same(&whole, &parts);
        buf_release(&in);
        markdown_release(&whole);
        markdown_release(&parts);
    }
}

/* Blocks beyond the limit are cut the same way in a stream, and the open end
 * stays short: the cost of a token does not grow with the message. */
static void test_long_blocks(void)
{
    static const char *const units[] = { "word ",    "x",     "line\n",
                                         "- item\n", "> q\n", "\xE4\xBD\xA0" };
    for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
        struct buf in = BUF_INIT;
        struct markdown whole = { 0 }, parts = { 0 };
        while (in.len < 5 * SPLIT_BLOCK_MAX / 2)
            buf_str(&in, units[k]);
        markdown_feed(&whole, in.v, in.len, true);
        for (size_t n = 0; n < in.len; n += 997) {
            markdown_feed(&parts, in.v, n, false);
            REQUIRE(parts.open.len <= SPLIT_BLOCK_MAX);
        }
        markdown_feed(&parts, in.v, in.len, true);
        check_same(&whole, &parts);
        buf_release(&in);
        markdown_release(&whole);
        markdown_release(&parts);
    }
}

static void test_fence_line_limit(void)
{
    struct buf in = BUF_INIT;
    struct markdown whole = { 0 }, parts = { 0 };
    buf_str(&in, "```js\n");
    while (in.len < 3 * SPLIT_BLOCK_MAX)
        buf_str(&in, "minified;");
    buf_str(&in, "\n```\ndone\n");
    markdown_feed(&whole, in.v, in.len, true);
    for (size_t n = 0; n < in.len; n += 1013)
        markdown_feed(&parts, in.v, n, false);
    markdown_feed(&parts, in.v, in.len, true);
    check_same(&whole, &parts);
    buf_release(&in);
    markdown_release(&whole);
    markdown_release(&parts);
}

static void test_plain(void)
{
    struct markdown md = { .plain = true };
    struct buf got = BUF_INIT;
    const char *s = "# not *markup*\n\n  kept\n";
    for (size_t n = 0; n <= strlen(s); n++)
        markdown_feed(&md, s, n, false);
    dump(&md, 40, &got, NULL);
    CHECK_STR(buf_cstr(&got), "# not *markup*\n\n  kept\n");
    buf_release(&got);
    markdown_release(&md);
}

TEST_MAIN(T(test_blocks), T(test_lists), T(test_spans), T(test_code), T(test_tables),
          T(test_hostile), T(test_cut_anywhere), T(test_byte_by_byte),
          T(test_random_markup), T(test_long_blocks), T(test_fence_line_limit),
          T(test_plain))
