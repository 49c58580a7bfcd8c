/* test_clock.c - the system's clock is set back by years, and forth again, in the
 * middle of everything: nothing waits for it, and no order hangs on it. */
#define _GNU_SOURCE
#include "tests/app/chat_bench.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

static atomic_llong offset_s; /* of the wall clock, in this program */

/* In place of the C library's; the declaration is its own. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    if (syscall(SYS_clock_gettime, id, t) != 0)
        return -1;
    if (id == CLOCK_REALTIME)
        t->tv_sec += atomic_load(&offset_s);
    return 0;
}

enum { YEAR = 365 * 86400 };

static int64_t wall(void)
{
    return clock_wall_ms();
}

static void test_the_clock_is_set(void)
{
    int64_t now = wall();
    atomic_store(&offset_s, -YEAR);
    int64_t then = wall();
    CHECK(now - then > (int64_t)YEAR * 999 && now - then < (int64_t)YEAR * 1001);
    uint64_t a = clock_ns();
    atomic_store(&offset_s, 0);
    CHECK(clock_ns() - a < 1000000000u);
}

/* Turns and chats are in the order in which they were written. */
static void test_order(void)
{
    struct bench b;
    struct chat_list chats;
    char path[64];
    snprintf(path, sizeof path, "/tmp/tern-clock-%d.db", (int)getpid());
    fake.answers[0] = "an answer";
    bench_open_db(&b, path);
    conversation_load(&b.c, "fake.gguf");
    PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
    say(&b, "first");
    int64_t first = b.c.chat.id;
    atomic_store(&offset_s, -3 * YEAR);
    say(&b, "second");
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    say(&b, "third");
    int64_t second = b.c.chat.id;
    atomic_store(&offset_s, -9 * YEAR);
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    CHECK_TEXTS(&b, "first", "an answer", "second", "an answer");
    REQUIRE(store_chat_list(b.store, &chats, &b.err) == 0 && chats.len == 2);
    CHECK(chats.v[0].id == second && chats.v[1].id == first);
    chat_list_release(&chats);
    say(&b, "fourth");
    REQUIRE(store_chat_list(b.store, &chats, &b.err) == 0);
    CHECK(chats.v[0].id == first);
    chat_list_release(&chats);
    bench_close(&b);
    atomic_store(&offset_s, 5 * YEAR);
    bench_open_db(&b, path);
    int64_t last;
    REQUIRE(store_chat_last(b.store, &last, &b.err) == 0 && last == first);
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    CHECK(n_messages(&b) == 6);
    bench_close(&b);
    unlink(path);
}

/* An answer is saved, shown and timed as ever while the clock jumps. */
static void test_while_an_answer_grows(void)
{
    struct bench b;
    char text[301];
    memset(text, 'x', 300);
    text[300] = 0;
    fake.answers[0] = text;
    fake.step_s = 0.01;
    bench_open(&b);
    REQUIRE(conversation_send(&b.c, "q", 1, &b.err) == 0);
    PUMP_UNTIL(&b, b.c.answer.generated > 20);
    atomic_store(&offset_s, -7 * YEAR);
    uint32_t before = b.c.answer.generated;
    PUMP_UNTIL(&b, b.c.answer.generated > before + 150);
    struct message_list l;
    REQUIRE(store_path(b.store, b.c.answer.m.id, &l, &b.err) == 0 && l.len == 2);
    CHECK(l.v[1].text_bytes >= 20 && l.v[1].state == STATE_PARTIAL);
    message_list_release(&l);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    const struct message *m = message_at(&b, 1);
    const struct message_stats *s = &m->stats;
    CHECK(m->state == STATE_COMPLETE);
    CHECK(s->decode_tps > 80 && s->decode_tps < 110 && s->ttft_ms >= 0 &&
          s->ttft_ms < 2000);
    bench_close(&b);
}

/* The end of the program waits for a driver that does not come back by a clock
 * that nobody sets. */
static void test_close(void)
{
    struct worker *w;
    struct err err;
    fake.load_s = 3;
    REQUIRE(worker_open(&w, &(struct worker_params){ 0 }, &err) == 0);
    worker_load(w, "fake.gguf");
    nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
    atomic_store(&offset_s, YEAR);
    uint64_t from = clock_ns();
    CHECK(!worker_close(w, 300));
    CHECK(clock_ns() - from < 1500000000u);
    _exit(test_failures ? 1 : 0);
}

/* Kept timelines whose last use lies in the future still go in some order. */
static void test_kept_timelines(void)
{
    struct bench b;
    char path[64], command[160];
    snprintf(path, sizeof path, "/tmp/tern-clock-%d.db", (int)getpid());
    snprintf(timelines, sizeof timelines, "/tmp/tern-clock-%d", (int)getpid());
    fake.kv_bytes = 1000;
    fake.state_bytes = 200000;
    bench_open_db(&b, path);
    b.c.keep_bytes = 500000;
    conversation_load(&b.c, "fake.gguf");
    PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
    for (int i = 0; i < 6; i++) {
        atomic_store(&offset_s, (i % 2 ? -1 : 1) * 4 * (long long)YEAR);
        REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
        say(&b, "a question that is worth keeping");
        PUMP_UNTIL(&b, !b.c.keeping);
        struct snapshot_list l;
        uint64_t bytes = 0;
        REQUIRE(store_snapshot_list(b.store, 0, &l, &b.err) == 0);
        for (size_t k = 0; k < l.len; k++)
            bytes += l.v[k].bytes;
        CHECK((i == 0 || l.len >= 2) && bytes <= 500000);
        snapshot_list_release(&l);
    }
    bench_close(&b);
    snprintf(command, sizeof command, "rm -rf %s %s*", timelines, path);
    CHECK(system(command) == 0);
}

TEST_MAIN(T(test_the_clock_is_set), T(test_order), T(test_while_an_answer_grows),
          T(test_close), T(test_kept_timelines))
