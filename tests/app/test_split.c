/* test_split.c - sampled ids to text, and the rate that is shown meanwhile. */
#include "app/rate.h"
#include "app/split.h"
#include "base/utf8.h"
#include "tests/app/fake_engine.h"

#include "tests/test.h"

struct piece {
    struct splitter s;
    struct model *m;
    struct buf text, thinking;
};

static void begin(struct piece *p, const int32_t *header, size_t n)
{
    struct err err;
    *p = (struct piece){ 0 };
    REQUIRE(model_open(&p->m, "fake", &err) == 0);
    splitter_init(&p->s, p->m, header, n);
}

static void feed(struct piece *p, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        splitter_add(&p->s, FAKE_BYTE + (unsigned char)bytes[i], &p->text, &p->thinking);
        CHECK(utf8_valid(buf_cstr(&p->text), p->text.len));
        CHECK(utf8_valid(buf_cstr(&p->thinking), p->thinking.len));
    }
}

static void id(struct piece *p, int32_t v)
{
    splitter_add(&p->s, v, &p->text, &p->thinking);
}

static void end(struct piece *p, const char *text, const char *thinking)
{
    splitter_end(&p->s, &p->text, &p->thinking);
    CHECK_STR(buf_cstr(&p->text), text);
    CHECK_STR(buf_cstr(&p->thinking), thinking);
    splitter_release(&p->s);
    buf_release(&p->text);
    buf_release(&p->thinking);
    model_close(p->m);
}

#define FAMILY "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u6f22\u5b57 \u00e9"

static void test_split_characters(void)
{
    struct piece p;
    begin(&p, NULL, 0);
    feed(&p, FAMILY, strlen(FAMILY));
    end(&p, FAMILY, "");
}

static void test_incomplete_end(void)
{
    struct piece p;
    begin(&p, NULL, 0);
    feed(&p, "a\xf0\x9f\x91", 4);
    CHECK_STR(buf_cstr(&p.text), "a");
    end(&p, "a\ufffd\ufffd\ufffd", "");
    begin(&p, NULL, 0);
    feed(&p, "\xf0\x9f", 2);
    id(&p, FAKE_THINK);
    feed(&p, "x", 1);
    end(&p, "\ufffd\ufffd", "x");
}

static void test_bad_bytes(void)
{
    struct piece p;
    begin(&p, NULL, 0);
    feed(&p, "a\0b\xff\xc0\x80z", 7);
    end(&p, "a\ufffdb\ufffd\ufffd\ufffdz", "");
}

static void test_thinking_in_stream(void)
{
    struct piece p;
    begin(&p, NULL, 0);
    id(&p, FAKE_THINK);
    feed(&p, "\n\nwhy\n\nnot\n\n", 12);
    id(&p, FAKE_END_THINK);
    feed(&p, "\n\nyes\n", 6);
    CHECK_STR(buf_cstr(&p.text), "yes\n");
    end(&p, "yes\n", "why\n\nnot");
}

static void test_header_decides(void)
{
    const int32_t open[] = { FAKE_START, FAKE_ASSISTANT, FAKE_THINK };
    const int32_t closed[] = { FAKE_START, FAKE_ASSISTANT, FAKE_THINK, FAKE_END_THINK };
    struct piece p;
    begin(&p, open, 3);
    feed(&p, "hm", 2);
    id(&p, FAKE_END_THINK);
    feed(&p, "yes", 3);
    end(&p, "yes", "hm");
    begin(&p, closed, 4);
    feed(&p, "yes", 3);
    end(&p, "yes", "");
}

#define MS UINT64_C(1000000)

static void test_rate_steady(void)
{
    struct rate r;
    rate_reset(&r);
    CHECK(rate_get(&r, 5) == 0);
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t now = 3000 * MS + i * 50 * MS;
        rate_add(&r, now, 1);
        if (i)
            CHECK(fabs(rate_get(&r, now + 20 * MS) - 20) < 1e-6);
    }
}

static void test_rate_bursts(void)
{
    struct rate r;
    rate_reset(&r);
    for (uint64_t i = 0; i < 4000; i++)
        rate_add(&r, 1000 * MS + i * 5 * MS, 8);
    CHECK(fabs(rate_get(&r, 1000 * MS + 3999 * 5 * MS) - 1600) < 20);
    /* The answer is over in two bursts: still finite and right. */
    rate_reset(&r);
    rate_add(&r, 1000 * MS, 1);
    rate_add(&r, 1004 * MS, 8);
    CHECK(fabs(rate_get(&r, 1004 * MS) - 2000) < 1);
}

static void test_rate_follows_change_and_stall(void)
{
    struct rate r;
    rate_reset(&r);
    uint64_t now = 0;
    for (int i = 0; i < 300; i++)
        rate_add(&r, now += 10 * MS, 1);
    CHECK(fabs(rate_get(&r, now) - 100) < 1);
    for (int i = 0; i < 50; i++)
        rate_add(&r, now += 50 * MS, 1);
    CHECK(fabs(rate_get(&r, now) - 20) < 1);
    CHECK(rate_get(&r, now + 4000 * MS) < 10);
}

TEST_MAIN(T(test_split_characters), T(test_incomplete_end), T(test_bad_bytes),
          T(test_thinking_in_stream), T(test_header_decides), T(test_rate_steady),
          T(test_rate_bursts), T(test_rate_follows_change_and_stall))
