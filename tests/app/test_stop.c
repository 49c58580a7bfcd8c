/* test_stop.c - texts that end an answer: found wherever the pieces are cut, not
 * in the answer, nothing else held back for long; ids of what is left. */
#include "app/stop.h"
#include "app/trace.h"
#include "tests/app/fake_engine.h"

#include "tests/test.h"

static struct stop_list list_of(const char *a, const char *b)
{
    struct stop_list l = { .n = 0 };
    struct err err;
    CHECK(stop_list_add(&l, a, &err) == 0);
    CHECK(!b || stop_list_add(&l, b, &err) == 0);
    return l;
}

/* What passes of a text that comes in two pieces and single bytes between them. */
static struct buf run_pieces(const struct stop_list *l, const char *text, size_t first,
                             size_t second, bool *hit)
{
    struct stopper s;
    struct buf out = BUF_INIT;
    size_t n = strlen(text);
    stopper_init(&s, l);
    stopper_add(&s, text, first, &out);
    for (size_t i = first; i < second; i++)
        stopper_add(&s, text + i, 1, &out);
    stopper_add(&s, text + second, n - second, &out);
    stopper_end(&s, &out);
    CHECK(s.passed == out.len);
    *hit = s.hit;
    stopper_release(&s);
    return out;
}

/* However the text is cut, `want` is what passes; NULL: all of it. */
static void check_stops(const struct stop_list *l, const char *text, const char *want)
{
    size_t n = strlen(text);
    for (size_t first = 0; first <= n; first++)
        for (size_t second = first; second <= n; second++) {
            bool hit;
            struct buf got = run_pieces(l, text, first, second, &hit);
            CHECK_STR(buf_cstr(&got), want ? want : text);
            CHECK(hit == (want != NULL));
            buf_release(&got);
        }
}

static void test_pieces(void)
{
    static const struct {
        const char *a, *b, *text, *want;
    } rows[] = {
        { "END", NULL, "one two END three", "one two " },
        { "END", NULL, "EN ENEND", "EN EN" },
        { "END", NULL, "EEEEN", NULL },
        { "END", NULL, "END", "" },
        { "aab", NULL, "aaaab", "aa" },
        { "abab", "ba", "xabab", "xa" }, /* "ba" is complete first */
        { "abc", "b", "xabc", "xa" },
        { "bc", "abc", "xabc", "x" }, /* both at once: the longer */
        { "\\n\\n", NULL, "line\nline\n\nmore", "line\nline" },
        { "\\\\n", NULL, "a\nb\\nc", "a\nb" },
        { "\u6f22", NULL, "x\u6f21\u6f22", "x\u6f21" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct stop_list l = list_of(rows[i].a, rows[i].b);
        check_stops(&l, rows[i].text, rows[i].want);
        stop_list_release(&l);
    }
    struct stop_list none = { .n = 0 };
    check_stops(&none, "anything", NULL);
}

/* Only what may begin a stop text waits. */
static void test_holds_back_little(void)
{
    struct stop_list l = list_of("STOP", NULL);
    struct stopper s;
    struct buf out = BUF_INIT;
    stopper_init(&s, &l);
    stopper_add(&s, "hello ST", 8, &out);
    CHECK_STR(buf_cstr(&out), "hello ");
    stopper_add(&s, "AR", 2, &out);
    CHECK_STR(buf_cstr(&out), "hello STAR");
    stopper_add(&s, "STO", 3, &out);
    CHECK_STR(buf_cstr(&out), "hello STAR");
    stopper_end(&s, &out);
    CHECK_STR(buf_cstr(&out), "hello STARSTO");
    stopper_release(&s);
    buf_release(&out);
    stop_list_release(&l);
}

static void test_list(void)
{
    struct stop_list l = { .n = 0 }, copy = { .n = 0 };
    struct err err = { "" };
    char longest[STOP_BYTES + 2];
    memset(longest, 'x', sizeof longest);
    longest[STOP_BYTES + 1] = 0;
    CHECK(stop_list_add(&l, longest, &err) == -1 && strstr(err.text, "1 to 256 bytes"));
    CHECK(stop_list_add(&l, longest + 1, &err) == 0);
    CHECK(stop_list_add(&l, "", &err) == -1);
    CHECK(stop_list_add(&l, "\xff", &err) == -1);
    CHECK(stop_list_add(&l, "a\\nb\\tc\\\\d\\q\\", &err) == 0);
    CHECK_STR(l.v[1], "a\nb\tc\\d\\q\\");
    while (l.n < STOP_MAX)
        CHECK(stop_list_add(&l, "x", &err) == 0);
    CHECK(stop_list_add(&l, "x", &err) == -1 && strstr(err.text, "16"));
    stop_list_copy(&copy, &l);
    CHECK(copy.n == l.n && copy.v[1] != l.v[1]);
    CHECK_STR(copy.v[1], l.v[1]);
    stop_list_release(&l);
    stop_list_release(&copy);
    CHECK(l.n == 0);
}

/* Ids 1, 2 and 3 are reasoning, a piece of two bytes, and half a character. */
static void test_ids_of_what_is_left(void)
{
    static const struct {
        size_t n;
        int32_t ids[6]; /* ended by -1 */
    } rows[] = {
        { 0, { 1, -1 } },
        { 1, { 1, FAKE_BYTE + 'a', -1 } }, /* in the middle of a token */
        { 2, { 1, 2, -1 } },
        { 4, { 1, 2, 3, 4, -1 } },
        { 5, { 1, 2, 3, 4, 5, -1 } },
    };
    struct model *m;
    struct err err;
    struct trace t = { .ends = NULL };
    REQUIRE(model_open(&m, "fake", &err) == 0);
    trace_add(&t, 1, "", 0, true);
    trace_add(&t, 2, "ab", 2, true);
    trace_add(&t, 3, "", 0, false);
    trace_add(&t, 4, "\u00e9", 2, true);
    trace_add(&t, 5, "z", 1, true);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tokens got = { 0 };
        size_t n = 0;
        while (rows[i].ids[n] >= 0)
            n++;
        trace_cut(&t, m, rows[i].n, &got);
        CHECK(got.len == n && !memcmp(got.v, rows[i].ids, n * sizeof *got.v));
        tokens_release(&got);
    }
    trace_release(&t);
    model_close(m);
}

TEST_MAIN(T(test_pieces), T(test_holds_back_little), T(test_list),
          T(test_ids_of_what_is_left))
