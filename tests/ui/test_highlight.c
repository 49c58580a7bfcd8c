/* test_highlight.c - code as its language reads it, line by line, and hostile
 * code as anything at all. */
#include "ui/highlight.h"

#include "base/buf.h"
#include "tests/test.h"
#include "ui/markdown.h"
#include "ui/theme.h"

/* The letter of each byte's style. malloced. */
static char *letters(const char *language, const char *code)
{
    struct highlight h;
    struct text t = { 0 };
    struct buf out = BUF_INIT;
    highlight_begin(&h, language, strlen(language));
    while (*code) {
        size_t n = strcspn(code, "\n");
        text_para(&t, PARA_CODE, "", "");
        highlight_line(&h, &t, code, n);
        code += n + (code[n] == '\n');
        text_str(&t, *code ? "/" : "", STYLE_TEXT);
    }
    size_t run = 0;
    for (size_t i = 0; i < t.bytes.len; i++) {
        while (run + 1 < t.n_runs && t.runs[run + 1].start <= i)
            run++;
        buf_char(&out, t.bytes.v[i] == ' ' ? ' '
                       : t.bytes.v[i] == '/' && t.runs[run].style == STYLE_TEXT
                           ? '/'
                           : theme_letter(t.runs[run].style));
    }
    text_release(&t);
    return buf_detach(&out);
}

static void check(const char *language, const char *code, const char *want)
{
    char *got = letters(language, code);
    if (strcmp(got, want) != 0)
        printf("# %s: %s\n", language, code);
    CHECK_STR(got, want);
    free(got);
}

static void test_c(void)
{
    check("c", "int x = 0x1f; // a 'note'", "yyy o o 0000o ## # ######");
    check("C", "#include <stdio.h>", "kkkkkkkk ooooooooo");
    check("c", "return f(\"a\\\"b\", 'c');", "kkkkkk foqqqqqqo qqqoo");
    check("c", "/* one\ntwo */ if (a)", "## ###/### ## kk ooo");
    check("c", "char *s = \"open\nint y;", "yyyy oo o qqqqq/yyy oo");
    check("c", "x1 = y.z; 1.5e-3f", "oo o oooo 0000000");
}

static void test_languages(void)
{
    check("python", "def f(x): # note\n    return None",
          "kkk foooo # ####/    kkkkkk kkkk");
    check("py", "s = \"\"\"one\n'two' three\"\"\" + 'x'",
          "o o qqqqqq/qqqqq qqqqqqqq o qqq");
    check("{.python .numberLines}", "pass", "kkkk");
    check("sh", "echo \"$HOME\" $X ${Y}z # no", "kkkk qqqqqqq yy yyyyo # ##");
    check("bash", "a=$#; b=a#b", "ooyoo ooooo");
    check("rust", "fn f<'a>(x: &'a str) -> char { 'x' }",
          "kk oooooooo ooo yyyo oo yyyy o qqq o");
    check("json", "{\"k\": [true, 1, \"v\"]}", "oyyyo okkkko 0o qqqoo");
    check("yaml", "key: value # note\nn: 1", "yyyo ooooo # ####/yo 0");
    check("toml", "[table]\nname = \"x\"", "ooooooo/yyyy o qqq");
    check("sql", "SELECT a FROM t -- note", "kkkkkk o kkkk o ## ####");
    check("html", "<a href=\"x\">text</a><!-- no\nte -->",
          "kk yyyyoqqqkooookkkk#### ##/## ###");
    check("diff", "+new\n-old\n@@ 1\n same", "++++/----/ff f/ oooo");
    check("js", "const s = `one\ntwo ${x}`;", "kkkkk o o qqqq/qqq qqqqqo");
    check("go", "func f() string {", "kkkk foo yyyyyy o");
    check("css", "a { font-size: 3px }", "o o yyyyyyyyyo 000 o");
    check("asm", "MOV eax, 1 ; note", "kkk yyyo 0 # ####");
}

static void test_unknown(void)
{
    check("", "int x;", "ccc cc");
    check("klingon", "int x;", "ccc cc");
    check("c,linenos", "int", "yyy");
}

/* Whatever the bytes, nothing is lost and nothing runs over the end. */
static void test_any_bytes(void)
{
    static const char *const names[] = { "c",    "python", "sh",     "html", "diff",
                                         "json", "rust",   "lua",    "yaml", "css",
                                         "make", "perl",   "haskell" };
    static const char pieces[] = "\"'`/*-#<>!$ {}[]()=:;\\a1\xC3\xA9.@+%&|~^\n";
    srand(3);
    for (int i = 0; i < 20000; i++) {
        struct buf code = BUF_INIT;
        struct highlight h;
        struct text t = { 0 };
        const char *name = names[(size_t)rand() % (sizeof names / sizeof *names)];
        highlight_begin(&h, name, strlen(name));
        for (int line = 0; line < 3; line++) {
            buf_truncate(&code, 0);
            for (int k = rand() % 24; k > 0; k--) {
                char c = pieces[(size_t)rand() % (sizeof pieces - 1)];
                if (c != '\n')
                    buf_char(&code, c);
            }
            size_t before = t.bytes.len;
            char *copy = malloc(code.len + 1); /* a read past it is one past a block */
            memcpy(copy, buf_cstr(&code), code.len);
            text_para(&t, PARA_CODE, "", "");
            highlight_line(&h, &t, copy, code.len);
            CHECK(t.bytes.len - before == code.len &&
                  !memcmp(buf_cstr(&t.bytes) + before, copy, code.len));
            free(copy);
        }
        text_release(&t);
        buf_release(&code);
    }
}

static char *styles(const char *markdown, size_t step)
{
    struct markdown md = { 0 };
    struct buf out = BUF_INIT;
    struct screen s = { 0 };
    size_t n = strlen(markdown);
    for (size_t at = 0; at < n; at += step)
        markdown_feed(&md, markdown, at, false);
    markdown_feed(&md, markdown, n, true);
    size_t lines = text_wrap(&md.text, 30);
    screen_resize(&s, (int)lines, 30);
    for (size_t i = 0; i < lines; i++)
        text_draw(&md.text, i, &s, span((int)i, 0, 30));
    screen_dump_styles(&s, &out);
    screen_release(&s);
    markdown_release(&md);
    return buf_detach(&out);
}

/* In a message, at the top or within a list, however it arrives. */
static void test_in_markdown(void)
{
    static const char text[] = "Do:\n\n```c\nint a; /* x\ny */ int b;\n```\n\n"
                               "1. so:\n\n   ```py\n   def f():\n       pass\n   ```\n";
    char *whole = styles(text, sizeof text);
    CHECK_STR(whole, "\n\nrrrr\nyyyoooo####\n####oyyyooo\nrr\n\nmmm\nmmm\nmmmrrrrr\n"
                     "mmmkkkofooo\nmmmooookkkk\nmmmrr\n");
    for (size_t step = 1; step < 9; step++) {
        char *streamed = styles(text, step);
        CHECK_STR(streamed, whole);
        free(streamed);
    }
    free(whole);
}

static void test_themes(void)
{
    CHECK(theme_find("dark") == THEME_DARK && theme_find("none") == THEME_NONE);
    CHECK(theme_find("blue") == -1 && !theme_name(THEME_COUNT));
    CHECK_STR(theme_name(THEME_16), "16");
    for (uint16_t s = 0; s < STYLE_COUNT; s++) {
        CHECK(theme_colour(THEME_16, s) < 8 && theme_colour(THEME_NONE, s) == -1);
        CHECK(theme_colour(THEME_DARK, s) < 256 && theme_colour(THEME_LIGHT, s) < 256);
        for (uint16_t other = 0; other < s; other++)
            CHECK(theme_letter(s) != theme_letter(other));
    }
    CHECK(theme_look(THEME_NONE, STYLE_DIM) == LOOK_DIM);
    CHECK(theme_look(THEME_DARK, STYLE_DIM) == 0);
    CHECK(theme_look(THEME_NONE, STYLE_CODE | STYLE_BOLD) == LOOK_BOLD);
}

TEST_MAIN(T(test_c), T(test_languages), T(test_unknown), T(test_any_bytes),
          T(test_in_markdown), T(test_themes))
