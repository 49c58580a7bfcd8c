/* test_prefix.c - kept timelines as conversations use them, with a scripted
 * engine and a real store: what is on disk, what the index says, what goes. */
#include "app/chat.h"
#include "app/keep.h"
#include "app/prefix.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/app/fake_engine.h"

#include "tests/test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

struct bench {
    struct store *store;
    struct worker *worker;
    struct conversation c;
    struct err err;
};

static char base[64], root[96], db[96];

static void base_make(void)
{
    snprintf(base, sizeof base, "/tmp/tern-prefix-XXXXXX");
    REQUIRE(mkdtemp(base));
    snprintf(root, sizeof root, "%s/snapshots", base);
    snprintf(db, sizeof db, "%s/tern.db", base);
}

static void base_remove(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %.60s", base);
    CHECK(system(command) == 0);
}

static void pump(struct bench *b)
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

#define PUMP_UNTIL(b, cond)                                      \
    do {                                                         \
        uint64_t pump_end_ = clock_ns() + UINT64_C(10000000000); \
        while (!(cond) && clock_ns() < pump_end_)                \
            pump(b);                                             \
        REQUIRE(cond);                                           \
    } while (0)

static void bench_open(struct bench *b, uint64_t budget)
{
    *b = (struct bench){ 0 };
    REQUIRE(store_open(&b->store, db, &b->err) == 0);
    const struct worker_params params = { .keep_root = root };
    REQUIRE(worker_open(&b->worker, &params, &b->err) == 0);
    conversation_init(&b->c, b->store, b->worker);
    prefix_open(&b->c, root, budget);
    conversation_load(&b->c, "fake.gguf");
    PUMP_UNTIL(b, b->c.phase == MODEL_READY);
}

static void bench_close(struct bench *b)
{
    CHECK(worker_close(b->worker, 5000));
    conversation_release(&b->c);
    store_close(b->store);
}

static void say(struct bench *b, const char *text)
{
    REQUIRE(conversation_send(&b->c, text, strlen(text), &b->err) == 0);
    PUMP_UNTIL(b, !conversation_busy(&b->c) && !b->c.keeping);
}

static uint64_t disk_bytes(const char *folder, unsigned *n)
{
    char command[192];
    unsigned long long bytes = 0;
    snprintf(command, sizeof command,
             "find %s -type f -printf '%%s\\n' 2>/dev/null | "
             "awk '{ s += $1; n++ } END { print s + 0, n + 0 }'",
             folder);
    FILE *f = popen(command, "r");
    REQUIRE(f && fscanf(f, "%llu %u", &bytes, n) == 2);
    pclose(f);
    return bytes;
}

/* What the index says is what is there. */
static uint64_t check_index(struct bench *b)
{
    struct snapshot_list l;
    uint64_t bytes = 0;
    unsigned n;
    REQUIRE(store_snapshot_list(b->store, 0, &l, &b->err) == 0);
    for (size_t i = 0; i < l.len; i++) {
        struct stat st;
        char path[256];
        snprintf(path, sizeof path, "%s/%s", root, l.v[i].name);
        CHECK(stat(path, &st) == 0 && (uint64_t)st.st_size == l.v[i].bytes);
        CHECK_STR(l.v[i].key, "fake");
        bytes += l.v[i].bytes;
    }
    CHECK(disk_bytes(root, &n) == bytes && n == l.len);
    snapshot_list_release(&l);
    return bytes;
}

static void test_budget_holds(void)
{
    enum { BUDGET = 40000 };
    struct bench b;
    base_make();
    fake.kv_bytes = 10;
    fake.prefill_s = 0.0002;
    fake.state_bytes = 3000;
    bench_open(&b, BUDGET);
    uint64_t most = 0;
    for (int chat = 0; chat < 6; chat++) {
        REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
        for (int turn = 0; turn < 6; turn++) {
            say(&b, "a question of some length, so that there are rows");
            uint64_t bytes = check_index(&b);
            CHECK(bytes <= BUDGET);
            most = bytes > most ? bytes : most;
        }
    }
    printf("# 36 turns of %u writes: at most %llu of %d bytes\n", fake.n_writes,
           (unsigned long long)most, BUDGET);
    CHECK(fake.n_writes == 36 && most > BUDGET / 2);
    /* The newest conversation is there. */
    int64_t last = b.c.chat.id;
    bench_close(&b);
    bench_open(&b, BUDGET);
    REQUIRE(conversation_show(&b.c, last, &b.err) == 0);
    say(&b, "more");
    CHECK(b.c.answer.m.stats.evaluated_tokens < 20);
    bench_close(&b);
    base_remove();
}

static void test_no_room(void)
{
    struct bench b;
    base_make();
    fake.state_bytes = 3000;
    bench_open(&b, 2000);
    say(&b, "first");
    CHECK(fake.n_writes == 0 && check_index(&b) == 0);
    bench_close(&b);
    base_remove();
}

/* Evaluating again is faster than reading so much: it is not kept. */
static void test_not_worth_it(void)
{
    struct bench b;
    base_make();
    fake.state_bytes = 2000000000;
    fake.prefill_s = 0.001;
    bench_open(&b, UINT64_MAX);
    say(&b, "first");
    CHECK(fake.n_writes == 0);
    bench_close(&b);
    base_remove();
}

static void test_restored_while_reading(void)
{
    struct bench b;
    base_make();
    bench_open(&b, 1 << 20);
    say(&b, "in the first");
    int64_t first = b.c.chat.id;
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    say(&b, "in the second");
    int64_t second = b.c.chat.id;
    CHECK(fake.n_reads == 0);
    /* Looking at the first brings it back, without a question. */
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    PUMP_UNTIL(&b, fake.n_reads == 1);
    say(&b, "more in the first");
    CHECK(b.c.answer.m.stats.evaluated_tokens < 30 && fake.n_reads == 1);
    CHECK(b.c.answer.m.stats.reused_tokens > 10);
    /* At once works, too. */
    REQUIRE(conversation_show(&b.c, second, &b.err) == 0);
    say(&b, "more in the second");
    CHECK(b.c.answer.m.stats.evaluated_tokens < 30 && fake.n_reads == 2);
    bench_close(&b);

    /* After a restart: when the model is ready, whatever came first. */
    struct worker *w;
    bench_open(&b, 1 << 20);
    w = b.worker;
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    PUMP_UNTIL(&b, fake.n_reads == 3);
    CHECK(w == b.worker && check_index(&b) > 0);
    bench_close(&b);
    base_remove();
}

/* Another conversation is opened while an answer is written: both are kept, and
 * each under its own name. */
static void test_look_elsewhere_meanwhile(void)
{
    struct bench b;
    base_make();
    bench_open(&b, 1 << 20);
    say(&b, "in the first");
    int64_t first = b.c.chat.id;
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    fake.step_s = 0.05;
    REQUIRE(conversation_send(&b.c, "slow", 4, &b.err) == 0);
    int64_t second = b.c.chat.id;
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    PUMP_UNTIL(&b, !conversation_busy(&b.c) && !b.c.keeping);
    CHECK(fake.n_writes == 2);
    PUMP_UNTIL(&b, fake.n_reads == 1); /* the first is what is looked at */
    say(&b, "more in the first");
    CHECK(b.c.answer.m.stats.evaluated_tokens < 30);
    REQUIRE(conversation_show(&b.c, second, &b.err) == 0);
    say(&b, "more in the second");
    CHECK(b.c.answer.m.stats.evaluated_tokens < 30);
    check_index(&b);
    bench_close(&b);
    base_remove();
}

static void put(const char *name, const char *text, int age_s)
{
    char path[256];
    struct err err;
    struct timespec times[2] = { { time(NULL) - age_s, 0 }, { time(NULL) - age_s, 0 } };
    snprintf(path, sizeof path, "%s/%s", root, name);
    REQUIRE(file_mkdirs_above(path, 0700, &err) == 0);
    REQUIRE(file_write_atomic(path, text, strlen(text), &err) == 0);
    REQUIRE(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static bool there(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

/* What a killed program left: files without rows, rows without files, files that
 * were never finished, a conversation that is gone. */
static void test_left_over(void)
{
    struct bench b;
    char link[160];
    base_make();
    bench_open(&b, 1 << 20);
    say(&b, "first");
    CHECK(b.c.chat.id == 1);
    bench_close(&b);
    put("1/fake-7.state", "adopted", 0);
    put("1/fake-9.state.tmp-AbCdEf", "of a moment ago", 0);
    put("1/fake-9.state.tmp-GhIjKl", "old", 3600);
    put("77/fake.kv", "of no conversation", 0);
    put("notes/fake.kv", "not ours", 0);
    put("outside/precious", "not ours", 0);
    snprintf(link, sizeof link, "%s/2", root);
    REQUIRE(symlink("outside", link) == 0);
    snprintf(link, sizeof link, "%s/1/fake.kv", root);
    CHECK(unlink(link) == 0);
    bench_open(&b, 1 << 20);
    struct snapshot_list l;
    REQUIRE(store_snapshot_list(b.store, 0, &l, &b.err) == 0);
    CHECK(l.len == 2 && l.v[0].state && l.v[0].tokens == 7 && l.v[0].bytes == 7);
    snapshot_list_release(&l);
    CHECK(there("1/fake-9.state.tmp-AbCdEf") && !there("1/fake-9.state.tmp-GhIjKl"));
    CHECK(!there("77") && there("notes/fake.kv") && there("outside/precious"));
    bench_close(&b);
    base_remove();
}

static void test_delete_and_bad_file(void)
{
    struct bench b;
    base_make();
    bench_open(&b, 1 << 20);
    say(&b, "first");
    int64_t first = b.c.chat.id;
    struct snapshot_list l;
    REQUIRE(store_snapshot_list(b.store, first, &l, &b.err) == 0);
    REQUIRE(l.len == 2 && l.v[1].state);
    put(l.v[1].name, "bad!", 0);
    snapshot_list_release(&l);
    bench_close(&b);
    bench_open(&b, 1 << 20);
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    say(&b, "second");
    CHECK(b.c.answer.m.stats.reused_tokens == 0);
    check_index(&b);
    REQUIRE(conversation_delete(&b.c, first, &b.err) == 0);
    PUMP_UNTIL(&b, !there("1"));
    CHECK(check_index(&b) == 0);
    bench_close(&b);
    base_remove();
}

TEST_MAIN(T(test_budget_holds), T(test_no_room), T(test_not_worth_it),
          T(test_restored_while_reading), T(test_look_elsewhere_meanwhile),
          T(test_left_over), T(test_delete_and_bad_file))
