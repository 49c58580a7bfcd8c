/* test_sanitize.c - nothing that a terminal obeys gets through. */
#include "base/sanitize.h"

#include "base/utf8.h"
#include "tests/test.h"

static void check(const char *in, const char *want)
{
    struct buf b = BUF_INIT;
    sanitize(&b, in, strlen(in));
    CHECK_STR(buf_cstr(&b), want);
    buf_release(&b);
}

static void test_payloads(void)
{
    check("plain\ttext\nok", "plain\ttext\nok");
    check("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07");
    check("\x1b]0;title\x1b\\", "\\x1b]0;title\\x1b\\");
    check("\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H");
    check("\x1bP$q\"p\x1b\\", "\\x1bP$q\"p\\x1b\\");
    check("\x1b"
          "c",
          "\\x1bc");
    check("\x1b[201~", "\\x1b[201~");
    check("a\rb\bc\vd\fe\x7f", "a\\x0db\\x08c\\x0bd\\x0ce\\x7f");
    check("\x9b"
          "31m",
          "\\x9b31m"); /* 8-bit CSI as a raw byte */
    check("\xC2\x9B"
          "31m",
          "\\x9b31m"); /* and as UTF-8 */
    check("\xC2\x9D"
          "0;x\xC2\x9C",
          "\\x9d0;x\\x9c");
    check("\xC2\x80\xC2\x9F\xC2\xA0", "\\x80\\x9f\xC2\xA0");
    check("\xED\xA0\x80", "\\xed\\xa0\\x80"); /* surrogate */
    check("\xC0\x9B", "\\xc0\\x9b");          /* overlong */
    check("\xFF\xFE", "\\xff\\xfe");
    check("\xE2\x82", "\\xe2\\x82");
}

static void test_invisible(void)
{
    check("a\xE2\x80\xAE"
          "b",
          "a\\u{202e}b"); /* right-to-left override */
    check("\xE2\x80\xAA\xE2\x81\xA6\xE2\x81\xA9", "\\u{202a}\\u{2066}\\u{2069}");
    check("\xE2\x80\x8E\xE2\x80\x8F\xD8\x9C", "\\u{200e}\\u{200f}\\u{61c}");
    check("\xE2\x80\xA8\xE2\x80\xA9", "\\u{2028}\\u{2029}");
    check("\xF3\xA0\x80\x81\xF3\xA0\x81\xBF", "\\u{e0001}\\u{e007f}");
    check("\xEF\xBB\xBF", "\\u{feff}");
    check("\xEF\xBF\xBE\xF4\x8F\xBF\xBF", "\\u{fffe}\\u{10ffff}");
    check("\xE2\x81\xA0\xEF\xBF\xB9", "\\u{2060}\\u{fff9}");
    check("\xCD\xB8", "\\u{378}"); /* unassigned */
}

static void test_kept(void)
{
    static const char *const kept[] = {
        "\xC3\xA4\xE4\xBD\xA0\xF0\x9F\x98\x80",
        "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9", /* joiner */
        "\xE2\x9D\xA4\xEF\xB8\x8F",                     /* variation selector */
        "e\xCC\x81",
        "\xE2\x80\x8B",
        "\xE2\x80\x8C",
        "\xEF\xBF\xBD",
        "\xEE\x80\x80",
        "\xF0\x9F\xAB\x89", /* unassigned where emoji will be */
        "\xD8\x80",         /* Arabic number sign */
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        check(kept[i], kept[i]);
}

static void test_every_code_point(void)
{
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char s[4];
        size_t n = utf8_encode(cp, s);
        bool tag = cp >= 0xE0000 && cp <= 0xE007F;
        bool bidi = (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
        bool control = cp < 0x20 || (cp >= 0x7F && cp <= 0x9F);
        if (tag || bidi || control || cp == 0x2028 || cp == 0x2029)
            REQUIRE(!sanitize_allows(cp));
        struct buf b = BUF_INIT;
        sanitize(&b, s, n);
        if (sanitize_allows(cp) && !(cp >= 0xD800 && cp <= 0xDFFF))
            REQUIRE(b.len == n && !memcmp(b.v, s, n));
        buf_release(&b);
    }
}

static void test_one_line(void)
{
    struct buf b = BUF_INIT;
    const char *s = "a title\n\n\twith\x1b breaks\t";
    sanitize_line(&b, s, strlen(s));
    CHECK_STR(buf_cstr(&b), "a title with\\x1b breaks ");
    buf_release(&b);
}

static void check_safe(const struct buf *b)
{
    for (size_t i = 0, len; i < b->len; i += len) {
        uint32_t cp = 0;
        len = utf8_decode(b->v + i, b->len - i, &cp);
        REQUIRE(!(cp == UTF8_REPLACEMENT && len == 1));
        REQUIRE(cp == '\n' || cp == '\t' || sanitize_allows(cp));
        REQUIRE(cp >= 0x20 || cp == '\n' || cp == '\t');
        REQUIRE(!(cp >= 0x7F && cp <= 0x9F));
    }
}

/* Random bytes, biased to escapes and broken UTF-8. The output is safe, and a
 * stream that is cut where utf8_complete() allows gives the same bytes. */
static void test_random_bytes(void)
{
    static const char spice[] =
        "\x1b[]\x07\x9b\xC2\xE2\x80\xAE\xF0\x9F\x91\xA8\xED\xA0\xFF\n\t\r";
    uint32_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        char s[64];
        size_t n = 0, fed = 0;
        struct buf whole = BUF_INIT, parts = BUF_INIT;
        seed = seed * 1664525u + 1013904223u;
        for (size_t want = (seed >> 8) % sizeof s; n < want; n++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t r = seed >> 8;
            s[n] = r & 1 ? (char)(r >> 4) : spice[(r >> 4) % (sizeof spice - 1)];
        }
        sanitize(&whole, s, n);
        check_safe(&whole);
        for (size_t have = 1; have <= n; have++) {
            size_t upto = utf8_complete(s, have);
            if (upto > fed) {
                sanitize(&parts, s + fed, upto - fed);
                fed = upto;
            }
        }
        sanitize(&parts, s + fed, n - fed);
        REQUIRE(whole.len == parts.len);
        REQUIRE(n == 0 || !memcmp(whole.v, parts.v, whole.len));
        buf_release(&whole);
        buf_release(&parts);
    }
}

TEST_MAIN(T(test_payloads), T(test_invisible), T(test_kept), T(test_every_code_point),
          T(test_one_line), T(test_random_bytes))
