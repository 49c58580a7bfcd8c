/* chat_bench.h - a conversation with a real store, a worker and a scripted
 * engine, and what tests ask of it. */
#ifndef TESTS_APP_CHAT_BENCH_H
#define TESTS_APP_CHAT_BENCH_H

#include "app/chat.h"
#include "app/prefix.h"
#include "base/clock.h"
#include "tests/app/fake_engine.h"

#include "tests/test.h"

#include <poll.h>

struct bench {
    struct store *store;
    struct worker *worker;
    struct conversation c;
    struct err err;
};

static char timelines[64]; /* folder of kept ones, "": none */

static inline void bench_open_db(struct bench *b, const char *path)
{
    *b = (struct bench){ 0 };
    if (store_open(&b->store, path, &b->err) < 0) {
        printf("# %s\n", b->err.text);
        exit(1);
    }
    const char *root = *timelines ? timelines : NULL;
    const struct worker_params params = { .keep_root = root };
    REQUIRE(worker_open(&b->worker, &params, &b->err) == 0);
    conversation_init(&b->c, b->store, b->worker);
    prefix_open(&b->c, root, 1 << 20);
}

/* Takes events until the condition holds or ten seconds are over. */
#define PUMP_UNTIL(b, cond)                                      \
    do {                                                         \
        uint64_t pump_end_ = clock_ns() + UINT64_C(10000000000); \
        while (!(cond) && clock_ns() < pump_end_)                \
            pump(b);                                             \
        REQUIRE(cond);                                           \
    } while (0)

static inline void pump(struct bench *b)
{
    struct pollfd fd = { .fd = worker_fd(b->worker), .events = POLLIN };
    struct worker_event e;
    poll(&fd, 1, 20);
    while (worker_next(b->worker, &e)) {
        conversation_event(&b->c, &e);
        worker_event_release(&e);
    }
    conversation_tick(&b->c, clock_ns());
}

static inline void bench_open(struct bench *b)
{
    bench_open_db(b, ":memory:");
    conversation_load(&b->c, "fake.gguf");
    PUMP_UNTIL(b, b->c.phase == MODEL_READY);
}

static inline void bench_close(struct bench *b)
{
    CHECK(worker_close(b->worker, 5000));
    conversation_release(&b->c);
    store_close(b->store);
}

static inline void say(struct bench *b, const char *text)
{
    if (conversation_send(&b->c, text, strlen(text), &b->err) < 0) {
        printf("# %s\n", b->err.text);
        exit(1);
    }
    PUMP_UNTIL(b, !conversation_busy(&b->c));
}

static inline const struct message *message_at(struct bench *b, size_t i)
{
    size_t n;
    const struct message *m = conversation_messages(&b->c, &n);
    REQUIRE(i < n);
    return &m[i];
}

static inline size_t n_messages(struct bench *b)
{
    size_t n;
    conversation_messages(&b->c, &n);
    return n;
}

static inline void check_texts(struct bench *b, const char *const *texts, size_t n)
{
    CHECK(n_messages(b) == n);
    for (size_t i = 0; i < n; i++)
        CHECK_STR(message_at(b, i)->text, texts[i]);
}
#define CHECK_TEXTS(b, ...)                                     \
    do {                                                        \
        const char *const texts_[] = { __VA_ARGS__ };           \
        check_texts(b, texts_, sizeof texts_ / sizeof *texts_); \
    } while (0)

static inline bool begins_with(const struct tokens *all, const int32_t *ids, size_t n)
{
    return all->len >= n && !memcmp(all->v, ids, n * sizeof *ids);
}

#endif
