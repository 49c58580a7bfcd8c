/* test_unicode.c - code point classes and normalisation form C, against
 * utf8proc's whole-text function where that is fast enough. */
#include "base/unicode.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tests/test.h"

#include <utf8proc.h>

static size_t put(int32_t c, char *out)
{
    return utf8_encode((uint32_t)c, out);
}

static bool is_surrogate(int32_t c)
{
    return c >= 0xD800 && c <= 0xDFFF;
}

/* Whether ours equals the library's for this text (no NULs inside). */
static bool same_as_library(const char *s, size_t n)
{
    struct buf ours = BUF_INIT;
    unicode_nfc(s, n, &ours);
    utf8proc_uint8_t *want = NULL;
    utf8proc_ssize_t len = utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n,
                                        &want, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    bool same =
        len >= 0 && ours.len == (size_t)len && !memcmp(buf_cstr(&ours), want, ours.len);
    bool quick = unicode_is_nfc(s, n); /* may not claim what is not so */
    same = same && (!quick || (ours.len == n && !memcmp(buf_cstr(&ours), s, n)));
    free(want);
    buf_release(&ours);
    return same;
}

static void test_classes(void)
{
    CHECK(unicode_class('a') == UNICODE_LETTER && unicode_class('Z') == UNICODE_LETTER);
    CHECK(unicode_class(0x4E2D) == UNICODE_LETTER); /* CJK */
    CHECK(unicode_class(0x02B0) == UNICODE_LETTER); /* Lm */
    CHECK(unicode_class(0x01C5) == UNICODE_LETTER); /* Lt */
    CHECK(unicode_class('7') == UNICODE_NUMBER);
    CHECK(unicode_class(0x00BD) == UNICODE_NUMBER); /* No */
    CHECK(unicode_class(0x2163) == UNICODE_NUMBER); /* Nl */
    CHECK(unicode_class(0x0301) == UNICODE_MARK);   /* Mn */
    CHECK(unicode_class(0x0903) == UNICODE_MARK);   /* Mc */
    CHECK(unicode_class(0x20DD) == UNICODE_MARK);   /* Me */
    CHECK(unicode_class('!') == UNICODE_OTHER && unicode_class('_') == UNICODE_OTHER);
    CHECK(unicode_class(0x1F600) == UNICODE_OTHER); /* emoji */
    CHECK(unicode_class(0x200D) == UNICODE_OTHER);  /* joiner: not white space */
    CHECK(unicode_class(0x200B) == UNICODE_OTHER &&
          unicode_class(0xFEFF) == UNICODE_OTHER);
    CHECK(unicode_class(0x1C) == UNICODE_OTHER); /* white for Python only */
    CHECK(unicode_class(UINT32_MAX) == UNICODE_OTHER &&
          unicode_class(0x110000) == UNICODE_OTHER);
    CHECK(unicode_class(0xD800) == UNICODE_OTHER && unicode_class(0) == UNICODE_OTHER);
    size_t spaces = 0;
    for (uint32_t c = 0; c <= 0x10FFFF; c++)
        spaces += unicode_class(c) == UNICODE_SPACE;
    CHECK(spaces == 25); /* code points with the property White_Space */
    static const uint32_t some[] = { 9,      10,     11,     12,     13,     32,
                                     0x85,   0xA0,   0x1680, 0x2000, 0x200A, 0x2028,
                                     0x2029, 0x202F, 0x205F, 0x3000 };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        CHECK(unicode_class(some[i]) == UNICODE_SPACE);
}

static void test_nfc_known(void)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        { "", "" },
        { "plain", "plain" },
        { "e\xCC\x81", "\xC3\xA9" },
        { "e\xCC\x81\xCC\x81", "\xC3\xA9\xCC\x81" },
        { "a\xCC\x81\xCC\xA3", "\xE1\xBA\xA1\xCC\x81" },            /* marks reordered */
        { "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81" }, /* Hangul */
        { "\xEA\xB0\x80\xE1\x86\xA8", "\xEA\xB0\x81" },
        { "\xE2\x84\xAB", "\xC3\x85" },     /* angstrom sign */
        { "\xEF\xA4\x80", "\xE8\xB1\x88" }, /* CJK compatibility */
        { "\xEF\xAC\x81", "\xEF\xAC\x81" }, /* ligature stays */
        { "\xCC\x81x", "\xCC\x81x" },       /* mark without base */
        { "\xE0\xA4\x95\xE0\xA4\xBC", "\xE0\xA4\x95\xE0\xA4\xBC" }, /* excluded */
        { "x\xFFy", "x\xEF\xBF\xBDy" },
        { "e\xFF\xCC\x81", "e\xEF\xBF\xBD\xCC\x81" },
        { "\xE4\xB8", "\xEF\xBF\xBD\xEF\xBF\xBD" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b = BUF_INIT;
        buf_str(&b, ">");
        unicode_nfc(cases[i].from, strlen(cases[i].from), &b);
        CHECK_STR(buf_cstr(&b) + 1, cases[i].to);
        buf_release(&b);
    }
    struct buf b = BUF_INIT;
    unicode_nfc("a\0e\xCC\x81\0", 6, &b);
    CHECK(b.len == 5 && !memcmp(b.v, "a\0\xC3\xA9\0", 5));
    buf_release(&b);
    CHECK(unicode_is_nfc("\xE4\xB8\xAD\xE6\x96\x87 ascii \xED\x95\x9C", 16));
    CHECK(!unicode_is_nfc("e\xCC\x81", 3));
    CHECK(!unicode_is_nfc("\xFF", 1));
}

/* Every code point alone, after a letter, and before each mark or letter that
 * composes with something. */
static void test_nfc_exhaustive(void)
{
    int32_t seconds[2048];
    size_t n_seconds = 0;
    for (int32_t c = 0; c <= 0x10FFFF; c++) {
        if (is_surrogate(c) || (c >= 0xAC00 && c <= 0xD7A3))
            continue;
        utf8proc_int32_t parts[32];
        int last = 0;
        utf8proc_ssize_t k =
            utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, &last);
        REQUIRE(k > 0 && k < 32);
        int32_t second = parts[k - 1];
        bool known = k == 1;
        for (size_t i = 0; i < n_seconds; i++)
            known = known || seconds[i] == second;
        if (!known && n_seconds < sizeof seconds / sizeof *seconds)
            seconds[n_seconds++] = second;
    }
    CHECK(n_seconds > 60);
    static const int32_t hangul[] = { 0x1161, 0x1175, 0x11A8, 0x11C2 };
    for (size_t i = 0; i < 4; i++)
        seconds[n_seconds++] = hangul[i];

    size_t wrong = 0;
    char s[16];
    for (int32_t c = 1; c <= 0x10FFFF; c++) {
        if (is_surrogate(c))
            continue;
        size_t n = put(c, s);
        wrong += !same_as_library(s, n);
        n = put('e', s);
        n += put(c, s + n);
        wrong += !same_as_library(s, n);
    }
    CHECK(wrong == 0);
    for (int32_t c = 0x21; c < 0x3400; c++) {
        for (size_t i = 0; i < n_seconds; i++) {
            size_t n = put(c, s);
            n += put(seconds[i], s + n);
            wrong += !same_as_library(s, n);
        }
    }
    CHECK(wrong == 0);
    /* what composes onto a letter may never be called settled */
    for (size_t i = 0; i < n_seconds; i++) {
        size_t n = put(seconds[i], s);
        CHECK(seconds[i] < 0x300 || seconds[i] >= 0x3400 || !unicode_is_nfc(s, n));
    }
}

static uint32_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void test_nfc_random(void)
{
    static const struct {
        int32_t from, to;
    } ranges[] = { { 0x20, 0x7E },     { 0xC0, 0x24F },      { 0x300, 0x36F },
                   { 0x591, 0x5F4 },   { 0x900, 0x97F },     { 0xB00, 0xD7F },
                   { 0x1100, 0x11FF }, { 0xAC00, 0xAC40 },   { 0x1E00, 0x1FFF },
                   { 0xF900, 0xFAFF }, { 0x11100, 0x1113F }, { 0x1D100, 0x1D1FF } };
    uint64_t seed = 7;
    size_t wrong = 0;
    for (int round = 0; round < 20000; round++) {
        char s[256];
        size_t n = 0;
        for (uint32_t k = random_next(&seed) % 24 + 1; k-- > 0;) {
            size_t r = random_next(&seed) % (sizeof ranges / sizeof *ranges);
            n += put(ranges[r].from +
                         (int32_t)(random_next(&seed) %
                                   (uint32_t)(ranges[r].to - ranges[r].from + 1)),
                     s + n);
        }
        wrong += !same_as_library(s, n);
    }
    CHECK(wrong == 0);
}

/* A long run of marks in falling order of class: sorting it pair by pair would
 * take hours. */
static void test_nfc_long_marks(void)
{
    enum { PAIRS = 500000 };
    struct buf s = BUF_INIT, out = BUF_INIT;
    buf_str(&s, "q");
    for (int i = 0; i < PAIRS; i++)
        buf_str(&s, "\xCC\x81\xCC\xA7"); /* classes 230 and 202 */
    uint64_t start = clock_ns();
    unicode_nfc(s.v, s.len, &out);
    CHECK(clock_ns() - start < 5000000000u);
    CHECK(out.len == s.len);
    CHECK(!memcmp(out.v, "q\xCC\xA7\xCC\xA7", 5));
    CHECK(!memcmp(out.v + out.len - 4, "\xCC\x81\xCC\x81", 4));
    buf_release(&s);
    buf_release(&out);
}

TEST_MAIN(T(test_classes), T(test_nfc_known), T(test_nfc_exhaustive), T(test_nfc_random),
          T(test_nfc_long_marks))
