/* test_timeline_bad.c - files of timelines that are cut, changed, foreign or half
 * written: never a crash, never a wrong answer, never a second attempt. */
#include "tests/engine/timeline.h"

#include "base/fault.h"
#include "base/file.h"
#include "engine/snapshot_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <time.h>

enum { NEW = 6, FILE_MAX = 64 << 20 };

/* A conversation of two turns on disk, and the truth about its continuation. */
struct scene {
    struct folder f;
    struct whole w;
    struct session *s;
    struct tokens t; /* the prompt that comes next */
    size_t kept[2];  /* points on disk */
    size_t kv_first; /* bytes of the rows of the first */
    char kv[256], state[2][256];
    struct buf kv_good, state_good[2];
    int32_t want[NEW];
    size_t n_want;
};

static void slurp(const char *path, struct buf *b)
{
    struct err err = { "" };
    OK(file_read_all(path, FILE_MAX, b, &err), &err);
}

static void spill(const char *path, const void *bytes, size_t n)
{
    struct err err = { "" };
    OK(file_write_atomic(path, bytes, n, &err), &err);
}

static void state_path(struct scene *c, const struct session_write_result *r, int i)
{
    c->kept[i] = r->tokens;
    snprintf(c->state[i], sizeof c->state[i], "%s/%s", c->f.dir, r->state_name);
    snprintf(c->kv, sizeof c->kv, "%s/%s", c->f.dir, r->kv_name);
    slurp(c->state[i], &c->state_good[i]);
}

static struct scene scene_open(void)
{
    struct scene c = { .f = folder_make(), .w = whole_open(MODEL, MATH_FLOAT) };
    struct session_write_result r;
    c.s = whole_session(&c.w, &(struct session_params){ .ctx_tokens = 128 });
    ids_add(&c.t, 20, 1);
    sync_ids(c.s, &c.t, 0);
    r = write_dir(c.s, c.f.dir);
    state_path(&c, &r, 0);
    c.kv_first = (size_t)r.kv_bytes;
    ids_add(&c.t, 12, 2);
    sync_ids(c.s, &c.t, 0);
    r = write_dir(c.s, c.f.dir);
    state_path(&c, &r, 1);
    slurp(c.kv, &c.kv_good);
    ids_add(&c.t, 3, 3);
    c.n_want = whole_greedy(c.s, c.t.v, c.t.len, NEW, NEW, c.want);
    return c;
}

static void scene_close(struct scene *c)
{
    session_close(c->s);
    whole_close(&c->w);
    tokens_release(&c->t);
    buf_release(&c->kv_good);
    buf_release(&c->state_good[0]);
    buf_release(&c->state_good[1]);
    folder_remove(&c->f);
}

/* Good files again, and a session that knows nothing of the conversation. */
static void scene_reset(struct scene *c)
{
    const struct tokens other = { .v = (int32_t[]){ 4 }, .len = 1 };
    spill(c->kv, c->kv_good.v, c->kv_good.len);
    for (int i = 0; i < 2; i++)
        spill(c->state[i], c->state_good[i].v, c->state_good[i].len);
    sync_ids(c->s, &other, 0);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Reads; then the answer must be right, and a second read finds nothing bad. */
static struct session_read_result read_and_answer(struct scene *c, bool answer)
{
    int32_t got[NEW];
    struct session_read_result r = read_dir(c->s, c->f.dir, &c->t);
    const struct tokens other = { .v = (int32_t[]){ 4 }, .len = 1 };
    CHECK(!strchr(r.reason.text, '\n'));
    CHECK((r.n_removed > 0) == (r.reason.text[0] != 0));
    if (answer) {
        size_t n = whole_greedy(c->s, c->t.v, c->t.len, NEW, NEW, got);
        CHECK(n == c->n_want && !memcmp(got, c->want, n * sizeof *got));
    }
    sync_ids(c->s, &other, 0);
    struct session_read_result again = read_dir(c->s, c->f.dir, &c->t);
    CHECK(again.n_removed == 0 && again.tokens == r.tokens);
    return r;
}

/* A state file changed like this is removed; the point before it serves. */
static void state_is_removed(struct scene *c, const struct buf *bad, const char *why,
                             bool answer)
{
    scene_reset(c);
    spill(c->state[1], bad->v ? bad->v : "", bad->len);
    struct session_read_result r = read_and_answer(c, answer);
    CHECK(r.tokens == c->kept[0] && r.n_removed == 1 && !exists(c->state[1]));
    CHECK(exists(c->state[0]) && exists(c->kv));
    if (!strstr(r.reason.text, why) || !strstr(r.reason.text, c->state[1]))
        printf("# \"%s\" lacks \"%s\"\n", r.reason.text, why);
    CHECK(strstr(r.reason.text, why) && strstr(r.reason.text, c->state[1]));
}

/* A KV file changed like this is removed, with the states that need it. */
static void kv_is_removed(struct scene *c, const struct buf *bad, const char *why,
                          bool answer)
{
    scene_reset(c);
    spill(c->kv, bad->v, bad->len);
    struct session_read_result r = read_and_answer(c, answer);
    CHECK(r.tokens == 0 && r.n_removed == 3);
    CHECK(!exists(c->kv) && !exists(c->state[0]) && !exists(c->state[1]));
    if (!strstr(r.reason.text, why))
        printf("# \"%s\" lacks \"%s\"\n", r.reason.text, why);
    CHECK(strstr(r.reason.text, why) && strstr(r.reason.text, c->kv));
}

static struct buf copy(const struct buf *b)
{
    struct buf c = BUF_INIT;
    buf_add(&c, b->v, b->len);
    return c;
}

static void test_cut_files(void)
{
    struct scene c = scene_open();
    size_t n = c.state_good[1].len;
    const size_t ends[] = {
        0, 1, 8, 111, 112, 113, 200, n / 3, n / 2, n - 9, n - 8, n - 1
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct buf bad = copy(&c.state_good[1]);
        buf_truncate(&bad, ends[i]);
        state_is_removed(&c, &bad, "ends too early", i % 4 == 0);
        buf_release(&bad);
    }
    /* A file of segments that ends in one was being written: what is whole in
     * it serves on, the rest is cut off. */
    n = c.kv_good.len;
    const size_t kv_ends[] = {
        0, 1, 111, 112, 150, n / 4, n / 2, n * 2 / 3, n - 8, n - 1
    };
    for (size_t i = 0; i < sizeof kv_ends / sizeof *kv_ends; i++) {
        scene_reset(&c);
        spill(c.kv, c.kv_good.v, kv_ends[i]);
        struct session_read_result r = read_and_answer(&c, true);
        CHECK(r.n_removed >= 1 && !exists(c.state[1]));
        CHECK(strstr(r.reason.text, "lost its KV rows"));
        CHECK(r.tokens == (exists(c.state[0]) ? c.kept[0] : 0));
        if (kv_ends[i] > n * 3 / 5)
            CHECK(r.tokens == c.kept[0]);
    }
    scene_close(&c);
}

static void test_flipped_bits(void)
{
    struct scene c = scene_open();
    enum { FLIPS = 24 };
    for (size_t i = 0; i < FLIPS; i++) {
        struct buf bad = copy(&c.state_good[1]);
        size_t at = i < 12 ? i * 10 : (bad.len - 1) * (i - 11) / (FLIPS - 12);
        bad.v[at] ^= (char)(1 << i % 8);
        state_is_removed(&c, &bad, "", i % 6 == 0);
        buf_release(&bad);
        bad = copy(&c.kv_good);
        at = i < 12 ? i * 10 : (bad.len - 1) * (i - 11) / (FLIPS - 12);
        bad.v[at] ^= (char)(1 << i % 8);
        kv_is_removed(&c, &bad, "", i % 6 == 0);
        buf_release(&bad);
    }
    scene_close(&c);
}

/* Changes a header in a way of which its checksum knows. */
static struct buf forged(const struct buf *from,
                         void (*change)(struct snapshot_header *h))
{
    struct buf b = copy(from);
    struct snapshot_header h;
    memcpy(&h, b.v, sizeof h);
    const size_t n = (size_t)(h.to - h.from);
    int32_t *ids = mem_array(n, sizeof *ids);
    memcpy(ids, b.v + sizeof h, n * sizeof *ids);
    change(&h);
    h.checksum = snapshot_checksum(&h, ids, n);
    memcpy(b.v, &h, sizeof h);
    free(ids);
    return b;
}

static void zero(struct snapshot_header *h)
{
    *h = (struct snapshot_header){ 0 };
}

static void other_weights(struct snapshot_header *h)
{
    h->id.weights ^= 1;
}

static void other_tokenizer(struct snapshot_header *h)
{
    h->id.tokenizer++;
}

static void other_kv(struct snapshot_header *h)
{
    h->id.kv_type = KV_F32;
}

static void other_rows(struct snapshot_header *h)
{
    h->id.row_bytes *= 2;
}

static void newer(struct snapshot_header *h)
{
    h->id.version = 77;
}

static void swapped(struct snapshot_header *h)
{
    h->id.endian = 0x0d0c0b0a;
}

static void no_end(struct snapshot_header *h)
{
    h->to = UINT64_MAX;
}

static void backwards(struct snapshot_header *h)
{
    h->from = h->to + 1;
}

static void short_payload(struct snapshot_header *h)
{
    h->payload_bytes -= 4;
}

static void huge_payload(struct snapshot_header *h)
{
    h->payload_bytes = UINT64_MAX - 7;
}

static void test_foreign_headers(void)
{
    static const struct {
        void (*change)(struct snapshot_header *h);
        const char *why;
    } cases[] = { { zero, "no snapshot" },
                  { other_weights, "other weights" },
                  { other_tokenizer, "another tokenizer" },
                  { other_kv, "another layout" },
                  { other_rows, "another layout" },
                  { newer, "version 77" },
                  { swapped, "byte order" },
                  { no_end, "sizes" },
                  { backwards, "sizes" },
                  { short_payload, "sizes" },
                  { huge_payload, "sizes" } };
    struct scene c = scene_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf bad = forged(&c.state_good[1], cases[i].change);
        state_is_removed(&c, &bad, cases[i].why, i == 0);
        buf_release(&bad);
        bad = forged(&c.kv_good, cases[i].change);
        kv_is_removed(&c, &bad, cases[i].why, i == 0);
        buf_release(&bad);
    }
    scene_close(&c);
}

static void far_parent(struct snapshot_header *h)
{
    h->parent = 5;
}

static void test_false_contents(void)
{
    struct scene c = scene_open();
    /* Good files under names of others. */
    state_is_removed(&c, &c.state_good[0], "other tokens", true);
    state_is_removed(&c, &c.kv_good, "no snapshot", false);
    kv_is_removed(&c, &c.state_good[1], "no snapshot", false);
    struct buf bad = forged(&c.kv_good, far_parent);
    kv_is_removed(&c, &bad, "without its beginning", true);
    buf_release(&bad);
    bad = copy(&c.state_good[1]);
    buf_add(&bad, "more", 4);
    state_is_removed(&c, &bad, "other tokens", false);
    buf_release(&bad);
    /* Names that mean nothing, and things that are no files. */
    scene_reset(&c);
    char path[300];
    static const char *const names[] = { "x.state", "0-0-0.state", "-.kv", ".state" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", c.f.dir, names[i]);
        spill(path, "?", 1);
    }
    struct session_read_result r = read_and_answer(&c, true);
    CHECK(r.tokens == c.kept[1] && r.n_removed == 0);
    scene_close(&c);
}

/* Whatever operation fails: the session goes on, and what is on disk serves. */
static void test_failing_operations(void)
{
    static const enum fault_kind kinds[] = { FAULT_OPEN, FAULT_WRITE, FAULT_FSYNC,
                                             FAULT_RENAME };
    struct scene c = scene_open();
    struct err err = { "" };
    unsigned fired = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (unsigned n = 1;; n++) {
            scene_reset(&c);
            unlink(c.state[1]);
            spill(c.kv, c.kv_good.v, c.kv_first); /* the second turn is lacking */
            sync_ids(c.s, &c.t, 0);
            struct session_write_result w;
            struct session_write_params p = { .dir = c.f.dir };
            fault_arm(kinds[k], n);
            int rc = session_write(c.s, &p, &w, &err);
            bool hit = fault_disarm(kinds[k]);
            fired += hit;
            CHECK((rc < 0) == hit && (w.tokens > 0) == !hit);
            if (hit)
                CHECK(strstr(err.text, c.f.dir));
            CHECK(folder_count(c.f.dir, "", NULL) <= 3); /* nothing half written */
            /* A rename that was not synced may be there or not. */
            bool there = folder_count(c.f.dir, ".state", NULL) == 2;
            CHECK(there || hit);
            int32_t got[NEW];
            size_t made = whole_greedy(c.s, c.t.v, c.t.len, NEW, NEW, got);
            CHECK(made == c.n_want && !memcmp(got, c.want, made * sizeof *got));
            struct session_read_result r = read_and_answer(&c, false);
            CHECK(r.tokens == (there ? c.t.len - 1 : c.kept[0]) && r.n_removed == 0);
            sync_ids(c.s, &c.t, 0);
            w = write_dir(c.s, c.f.dir);
            CHECK(w.tokens == c.t.len - 1);
            CHECK(write_dir(c.s, c.f.dir).written_bytes == 0);
            struct buf path = BUF_INIT;
            buf_printf(&path, "%s/%s", c.f.dir, w.state_name);
            CHECK(unlink(path.v) == 0);
            buf_release(&path);
            if (!hit)
                break;
        }
    CHECK(fired > 12); /* each kind had several operations to fail */
    scene_close(&c);
}

static void test_cancel_and_lock(void)
{
    struct scene c = scene_open();
    struct err err = { "" };
    atomic_bool stop = true;
    struct session_write_result w;
    struct session_write_params p = { .dir = c.f.dir, .cancel = &stop };
    size_t before = c.kv_good.len;
    OK(session_write(c.s, &p, &w, &err), &err);
    CHECK(w.cancelled && w.tokens == 0 && w.kv_bytes == before);
    CHECK(folder_count(c.f.dir, "", NULL) == 3);
    scene_reset(&c);
    struct session_read_params rp = {
        .dir = c.f.dir, .ids = c.t.v, .n = c.t.len, .cancel = &stop
    };
    struct session_read_result r;
    OK(session_read(c.s, &rp, &r, &err), &err);
    CHECK(r.tokens == 0 && r.n_removed == 0 && exists(c.state[1]));
    /* Another program writes this conversation: it is left alone. */
    int fd = open(c.kv, O_RDWR);
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX) == 0);
    CHECK(read_dir(c.s, c.f.dir, &c.t).tokens == 0);
    sync_ids(c.s, &c.t, 0);
    p.cancel = NULL;
    CHECK(session_write(c.s, &p, &w, &err) < 0 && strstr(err.text, "another program"));
    close(fd);
    scene_reset(&c);
    r = read_and_answer(&c, true);
    CHECK(r.tokens == c.kept[1] && r.n_removed == 0);
    scene_close(&c);
}

/* Writes turn after turn until it is killed. */
static _Noreturn void write_until_killed(const char *dir, int fd)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .ctx_tokens = 512 });
    struct tokens t = { 0 };
    for (uint32_t i = 0; i < 40; i++) {
        ids_add(&t, 10, i);
        sync_ids(s, &t, 0);
        write_dir(s, dir);
        if (write(fd, &t.len, sizeof t.len) != sizeof t.len)
            _exit(3);
    }
    for (;;)
        pause();
}

static void test_killed_while_writing(void)
{
    enum { KILLS = 4 };
    struct folder f[KILLS];
    size_t turns[KILLS];
    for (int k = 0; k < KILLS; k++) {
        int fds[2];
        f[k] = folder_make();
        REQUIRE(pipe(fds) == 0);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            write_until_killed(f[k].dir, fds[1]);
        close(fds[1]);
        size_t len = 0;
        for (int i = 0; i < 2 + 3 * k; i++)
            REQUIRE(read(fds[0], &len, sizeof len) == sizeof len);
        nanosleep(&(struct timespec){ .tv_nsec = 1700000L * (k + 1) }, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        while (read(fds[0], &len, sizeof len) == sizeof len)
            ;
        close(fds[0]);
        turns[k] = len;
    }
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .ctx_tokens = 512 });
    struct tokens t = { 0 };
    for (uint32_t i = 0; i < 40; i++)
        ids_add(&t, 10, i);
    for (int k = 0; k < KILLS; k++) {
        const struct tokens other = { .v = (int32_t[]){ 4 }, .len = 1 };
        int32_t want[NEW], got[NEW];
        sync_ids(s, &other, 0);
        struct session_read_result r = read_dir(s, f[k].dir, &t);
        printf("# killed after %zu tokens: restored %zu\n", turns[k], r.tokens);
        /* All that it said to be written is there, and no part of what was not. */
        CHECK(r.n_removed == 0 && r.tokens + 1 >= turns[k] && (r.tokens + 1) % 10 == 0);
        struct tokens short_t = { .v = t.v, .len = turns[k] + 15 };
        size_t n = fresh_greedy(&w, NULL, &short_t, NEW, want);
        CHECK(whole_greedy(s, short_t.v, short_t.len, NEW, NEW, got) == n);
        CHECK(!memcmp(got, want, n * sizeof *got));
        CHECK(write_dir(s, f[k].dir).tokens > 0);
        folder_remove(&f[k]);
    }
    session_close(s);
    whole_close(&w);
    tokens_release(&t);
}

TEST_MAIN(T(test_cut_files), T(test_flipped_bits), T(test_foreign_headers),
          T(test_false_contents), T(test_failing_operations), T(test_cancel_and_lock),
          T(test_killed_while_writing))
