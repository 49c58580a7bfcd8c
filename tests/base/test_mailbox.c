/* test_mailbox.c - order, bounds, the descriptor's state after every
 * operation, and two threads that pass messages in both directions (built with
 * -fsanitize=thread as well). */
#include "base/mailbox.h"
#include "tests/test.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

struct message {
    uint32_t kind;
    uint64_t value, check;
    char pad[3]; /* an odd shape */
};

static struct message make(uint64_t v)
{
    return (struct message){ .kind = (uint32_t)(v % 7),
                             .value = v,
                             .check = v * 0x9e3779b97f4a7c15u };
}

static bool is_whole(const struct message *m)
{
    return m->kind == m->value % 7 && m->check == m->value * 0x9e3779b97f4a7c15u;
}

static struct mailbox *open_box(size_t bytes, size_t capacity)
{
    struct mailbox *mb = NULL;
    struct err err;
    REQUIRE(mailbox_open(&mb, bytes, capacity, &err) == 0);
    return mb;
}

static bool readable(const struct mailbox *mb, int timeout_ms)
{
    struct pollfd p = { .fd = mailbox_fd(mb), .events = POLLIN };
    return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

static void test_order_and_bounds(void)
{
    struct mailbox *mb = open_box(sizeof(struct message), 5);
    struct message m = make(99), got;
    uint64_t in = 0, out = 0;
    CHECK(!mailbox_try_take(mb, &got) && !readable(mb, 0));
    /* Fill and drain by changing amounts, so that the ring wraps everywhere. */
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 1 + round % 7; i++) {
            m = make(in);
            bool ok = mailbox_try_post(mb, &m);
            CHECK(ok == (in - out < 5));
            in += ok;
            CHECK(readable(mb, 0));
        }
        for (int i = 0; i < 1 + round % 4; i++) {
            bool ok = mailbox_try_take(mb, &got);
            CHECK(ok == (in > out));
            if (ok)
                CHECK(is_whole(&got) && got.value == out);
            out += ok;
            CHECK(readable(mb, 0) == (in > out));
        }
    }
    CHECK(in > 300);
    mailbox_close(mb); /* with messages inside */
    mailbox_close(NULL);
}

static void test_one_slot_of_one_byte(void)
{
    struct mailbox *mb = open_box(1, 1);
    char c = 0;
    for (int i = 0; i < 300; i++) {
        char in = (char)i;
        CHECK(mailbox_post(mb, &in) && !mailbox_try_post(mb, &in));
        CHECK(mailbox_take(mb, &c) && c == in && !mailbox_try_take(mb, &c));
    }
    mailbox_close(mb);
}

static void test_shut(void)
{
    struct mailbox *mb = open_box(sizeof(struct message), 4);
    struct message m = make(1), got;
    CHECK(mailbox_post(mb, &m) && !mailbox_is_shut(mb));
    mailbox_shut(mb);
    mailbox_shut(mb); /* once more changes nothing */
    CHECK(mailbox_is_shut(mb) && readable(mb, 0));
    CHECK(!mailbox_post(mb, &m) && !mailbox_try_post(mb, &m));
    CHECK(mailbox_take(mb, &got) && is_whole(&got)); /* what was queued */
    CHECK(!mailbox_take(mb, &got) && !mailbox_try_take(mb, &got));
    CHECK(readable(mb, 0)); /* so that a poll loop notices */
    mailbox_close(mb);
}

struct pair {
    struct mailbox *ask, *answer;
    uint64_t n, sum;
    bool ok;
};

static void *worker(void *arg)
{
    struct pair *p = arg;
    struct message m;
    p->ok = true;
    while (mailbox_take(p->ask, &m)) {
        p->ok &= is_whole(&m) && m.value == p->n;
        p->n++;
        p->sum += m.value;
        for (int i = 0; i < 3; i++) { /* more answers than questions */
            struct message a = make(m.value * 3 + (uint64_t)i);
            p->ok &= mailbox_post(p->answer, &a);
        }
    }
    mailbox_shut(p->answer);
    return NULL;
}

/* The front end's loop: poll, then take all there is, never wait elsewhere. */
static void test_two_threads_with_poll(void)
{
    enum { N = 20000 };
    struct pair p = { .ask = open_box(sizeof(struct message), 8),
                      .answer = open_box(sizeof(struct message), 8) };
    pthread_t t;
    uint64_t asked = 0, answered = 0;
    REQUIRE(pthread_create(&t, NULL, worker, &p) == 0);
    for (;;) {
        struct message m = make(asked), got;
        while (asked < N && mailbox_try_post(p.ask, &m))
            m = make(++asked);
        if (asked == N)
            mailbox_shut(p.ask);
        REQUIRE(readable(p.answer, 10000));
        while (mailbox_try_take(p.answer, &got)) {
            CHECK(is_whole(&got) && got.value == answered);
            answered++;
        }
        if (answered == 3 * N && mailbox_is_shut(p.answer))
            break;
    }
    pthread_join(t, NULL);
    CHECK(p.ok && p.n == N && p.sum == (uint64_t)N * (N - 1) / 2);
    mailbox_close(p.ask);
    mailbox_close(p.answer);
}

static void *post_until_shut(void *arg)
{
    struct mailbox *mb = arg;
    struct message m = make(7);
    while (mailbox_post(mb, &m)) {
        /* the last one waits on a full queue */
    }
    return NULL;
}

static void *take_until_shut(void *arg)
{
    struct message m;
    struct mailbox *mb = arg;
    while (mailbox_take(mb, &m)) {
        /* the last one waits on an empty queue */
    }
    return NULL;
}

/* Threads that wait, on either side, end when the mailbox is shut. */
static void test_shut_wakes(void)
{
    for (int round = 0; round < 100; round++) {
        struct mailbox *full = open_box(sizeof(struct message), 2);
        struct mailbox *empty = open_box(sizeof(struct message), 2);
        pthread_t a, b;
        REQUIRE(pthread_create(&a, NULL, post_until_shut, full) == 0);
        REQUIRE(pthread_create(&b, NULL, take_until_shut, empty) == 0);
        for (int i = 0; i < round; i++)
            sched_yield();
        mailbox_shut(full);
        mailbox_shut(empty);
        CHECK(pthread_join(a, NULL) == 0 && pthread_join(b, NULL) == 0);
        mailbox_close(full);
        mailbox_close(empty);
    }
}

TEST_MAIN(T(test_order_and_bounds), T(test_one_slot_of_one_byte), T(test_shut),
          T(test_two_threads_with_poll), T(test_shut_wakes))
