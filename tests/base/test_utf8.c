/* test_utf8.c - decoding of hostile bytes, graphemes, widths, words. */
#include "base/utf8.h"

#include "tests/test.h"

#define FAMILY       "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"
#define FLAG         "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA" /* D E */
#define HEART        "\xE2\x9D\xA4\xEF\xB8\x8F"         /* text heart + VS16 */
#define WAVE         "\xF0\x9F\x91\x8B\xF0\x9F\x8F\xBD" /* hand + skin tone */
#define E_ACUTE      "e\xCC\x81"
#define NIHAO        "\xE4\xBD\xA0\xE5\xA5\xBD"
#define HANGUL_L_V_T "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"

static uint32_t random_next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void test_round_trip(void)
{
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char s[4];
        uint32_t got = 0;
        size_t n = utf8_encode(cp, s);
        bool surrogate = cp >= 0xD800 && cp <= 0xDFFF;
        REQUIRE(utf8_decode(s, n, &got) == n);
        REQUIRE(got == (surrogate ? UTF8_REPLACEMENT : cp));
        for (size_t cut = 1; cut < n; cut++) { /* cut short: one bad byte */
            REQUIRE(utf8_decode(s, cut, &got) == 1 && got == UTF8_REPLACEMENT);
            REQUIRE(utf8_complete(s, cut) == 0);
        }
        REQUIRE(utf8_complete(s, n) == n);
    }
}

static void test_ill_formed(void)
{
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xFE",
        "\xFF",
        "\xC3(",
        "\xE2\x82(",
        "\xF0\x9F\x91(",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t cp = 0;
        CHECK(utf8_decode(bad[i], strlen(bad[i]), &cp) == 1);
        CHECK(cp == UTF8_REPLACEMENT);
        CHECK(!utf8_valid(bad[i], strlen(bad[i])));
    }
    uint32_t cp = 7;
    CHECK(utf8_decode("", 0, &cp) == 0 && cp == 7);
    CHECK(utf8_valid("\xEF\xBF\xBD", 3)); /* a real replacement character */
}

static void test_complete(void)
{
    CHECK(utf8_complete("", 0) == 0);
    CHECK(utf8_complete("ab", 2) == 2);
    CHECK(utf8_complete("ab\xE4", 3) == 2);
    CHECK(utf8_complete("ab\xE4\xBD", 4) == 2);
    CHECK(utf8_complete("ab\xF0\x9F\x91", 5) == 2);
    /* What can never become well-formed is not held back. */
    CHECK(utf8_complete("ab\xFF", 3) == 3);
    CHECK(utf8_complete("ab\x80\x80\x80", 5) == 5);
    CHECK(utf8_complete("ab\xED\xA0", 4) == 4);
    CHECK(utf8_complete("ab\xC0", 3) == 3);
}

static void check_clusters(const char *s, const char *const *want)
{
    size_t n = strlen(s), at = 0, k = 0;
    for (; at < n; k++) {
        size_t end = utf8_grapheme_next(s, n, at);
        REQUIRE(want[k] != NULL);
        CHECK(end - at == strlen(want[k]) && !memcmp(s + at, want[k], end - at));
        CHECK(utf8_grapheme_prev(s, n, end) == at);
        at = end;
    }
    CHECK(want[k] == NULL);
}

static void test_graphemes(void)
{
    check_clusters("a" FAMILY "b" FLAG FLAG E_ACUTE HEART WAVE NIHAO,
                   (const char *const[]){ "a", FAMILY, "b", FLAG, FLAG, E_ACUTE, HEART,
                                          WAVE, "\xE4\xBD\xA0", "\xE5\xA5\xBD", NULL });
    check_clusters("x\r\n\ny", (const char *const[]){ "x", "\r\n", "\n", "y", NULL });
    check_clusters(FLAG FLAG FLAG, (const char *const[]){ FLAG, FLAG, FLAG, NULL });
    check_clusters(HANGUL_L_V_T "z", (const char *const[]){ HANGUL_L_V_T, "z", NULL });
    check_clusters("\xFF\xC3z", (const char *const[]){ "\xFF", "\xC3", "z", NULL });
    CHECK(utf8_grapheme_next("", 0, 0) == 0);
    CHECK(utf8_grapheme_next("ab", 2, 9) == 2);
    CHECK(utf8_grapheme_prev("ab", 2, 0) == 0);
}

static int width(const char *s)
{
    return utf8_grapheme_width(s, strlen(s));
}

static void test_widths(void)
{
    CHECK(width("a") == 1);
    CHECK(width(E_ACUTE) == 1);
    CHECK(width("\xCC\x81") == 0);
    CHECK(width("\xE4\xBD\xA0") == 2);
    CHECK(width(FAMILY) == 2);
    CHECK(width(FLAG) == 2);
    CHECK(width(HEART) == 2);
    CHECK(width("\xE2\x9D\xA4") == 1); /* without the selector: text */
    CHECK(width(WAVE) == 2);
    CHECK(width("1\xEF\xB8\x8F\xE2\x83\xA3") == 2); /* keycap */
    CHECK(width("\xF0\x9F\x98\x80") == 2);
    CHECK(width("\x1b") == 0);
    CHECK(width("\x7f") == 0);
    CHECK(width("\xE2\x80\x8B") == 0); /* zero-width space */
    CHECK(width("\xC2\xAD") == 0);
    CHECK(width(HANGUL_L_V_T) == 2);
    CHECK(width("\xE0\xA4\x95\xE0\xA4\xBF") == 2); /* ka + spacing vowel sign */
    CHECK(width("\xFF") == 0 || width("\xFF") == 1);
    CHECK(utf8_width("a" FAMILY NIHAO E_ACUTE, strlen("a" FAMILY NIHAO E_ACUTE)) == 8);
    CHECK(utf8_width("", 0) == 0);
}

static void test_words(void)
{
    const char *s = "one, two_2  \xC3\xBC"
                    "ber " NIHAO " x";
    size_t n = strlen(s);
    static const size_t ends[] = { 3, 10, 17, 24, 26 };
    static const size_t starts[] = { 25, 18, 12, 5, 0 };
    size_t at = 0;
    for (size_t i = 0; i < 5; i++) {
        at = utf8_word_next(s, n, at);
        CHECK(at == ends[i]);
    }
    CHECK(utf8_word_next(s, n, n) == n);
    for (size_t i = 0; i < 5; i++) {
        at = utf8_word_prev(s, n, at);
        CHECK(at == starts[i]);
    }
    CHECK(utf8_word_prev(s, n, 0) == 0);
    CHECK(utf8_word_prev("\xcc\x81", 2, 2) == 0); /* a mark that follows nothing */
    CHECK(utf8_word_prev("\xcc\x81 \xcc\x81", 5, 5) == 0);
    CHECK(utf8_word_next(E_ACUTE "a b", 5, 0) == 4); /* a mark inside a word */
}

/* Random bytes: steps always advance, stay in range and agree both ways. */
static void test_random_bytes(void)
{
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        size_t n = random_next(&seed) % 24;
        char *s = malloc(n + 1); /* exact size: the sanitiser sees overreads */
        for (size_t i = 0; i < n; i++) {
            uint32_t r = random_next(&seed);
            s[i] = r % 3 ? (char)(r >> 3) : "\xF0\x9F\x91\xE2\x80\x8D\xCC\x81"[r % 8];
        }
        size_t ends[25], count = 0;
        for (size_t at = 0; at < n;) {
            size_t end = utf8_grapheme_next(s, n, at);
            REQUIRE(end > at && end <= n);
            int w = utf8_grapheme_width(s + at, end - at);
            REQUIRE(w >= 0 && (size_t)w <= end - at);
            ends[count++] = end;
            at = end;
        }
        if (utf8_valid(s, n))
            for (size_t k = count; k > 0; k--)
                REQUIRE(utf8_grapheme_prev(s, n, ends[k - 1]) ==
                        (k > 1 ? ends[k - 2] : 0));
        size_t done = utf8_complete(s, n);
        REQUIRE(n - done <= 3);
        free(s);
    }
}

TEST_MAIN(T(test_round_trip), T(test_ill_formed), T(test_complete), T(test_graphemes),
          T(test_widths), T(test_words), T(test_random_bytes))
