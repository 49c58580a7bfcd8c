/* test_timeline.c - timelines written to files and read back: the same greedy
 * ids as without the restart, nothing evaluated again, nothing written twice. */
#include "tests/engine/timeline.h"

enum { NEW = 64 };

/* Two turns, written; everything closed; then the third turn, with and without
 * what was written. */
static void restart(enum math_path math, enum kv_type kv)
{
    struct folder f = folder_make();
    struct whole w = whole_open(MODEL, math);
    struct session_params params = { .kv = kv, .ctx_tokens = 1024 };
    struct session *s = whole_session(&w, &params);
    struct tokens t = { 0 };
    int32_t want[NEW], got[NEW];
    ids_add(&t, 100, 1);
    turn(s, &t, 20);
    struct session_write_result first = write_dir(s, f.dir);
    CHECK(first.tokens == t.len - 1);
    ids_add(&t, 30, 2);
    turn(s, &t, 20);
    struct session_write_result second = write_dir(s, f.dir);
    const size_t kept = t.len - 1;
    CHECK(second.tokens == kept && second.kv_bytes > first.kv_bytes);
    ids_add(&t, 25, 3);
    size_t n = whole_greedy(s, t.v, t.len, NEW, 8, want);
    session_close(s);
    whole_close(&w);

    /* Another context and chunk size are no reason to read anything again. */
    w = whole_open(MODEL, math);
    params.ctx_tokens = 700;
    params.chunk_tokens = 13;
    s = whole_session(&w, &params);
    struct session_read_result r = read_dir(s, f.dir, &t);
    CHECK(r.tokens == kept && r.n_removed == 0 && r.bytes > 0);
    CHECK(session_tokens(s, NULL) == kept);
    struct sync_result sync = sync_ids(s, &t, 0);
    CHECK(sync.reused == kept && sync.evaluated == t.len - 1 - kept);
    CHECK(whole_greedy(s, t.v, t.len, NEW, 8, got) == n);
    CHECK(!memcmp(got, want, n * sizeof *got));
    CHECK(fresh_greedy(&w, &params, &t, NEW, got) == n);
    CHECK(!memcmp(got, want, n * sizeof *got));
    session_close(s);
    whole_close(&w);
    tokens_release(&t);
    folder_remove(&f);
}

static void test_restart_f16_int8(void)
{
    restart(MATH_INT8, KV_F16);
}

static void test_restart_f16_float(void)
{
    restart(MATH_FLOAT, KV_F16);
}

static void test_restart_f32_int8(void)
{
    restart(MATH_INT8, KV_F32);
}

static void test_restart_f32_float(void)
{
    restart(MATH_FLOAT, KV_F32);
}

/* What one kind of session wrote is invisible to the others in the same folder. */
static void test_kinds_lie_beside_each_other(void)
{
    struct folder f = folder_make();
    struct tokens t = { 0 };
    ids_add(&t, 50, 9);
    for (int math = 0; math < 2; math++) {
        struct whole w = whole_open(MODEL, math ? MATH_INT8 : MATH_FLOAT);
        for (int i = 0; i < 4; i++) {
            struct session *s =
                whole_session(&w, &(struct session_params){ .kv = i & 1 ? KV_F32 : KV_F16,
                                                            .ctx_tokens = 256 });
            struct session_read_result r = read_dir(s, f.dir, &t);
            CHECK(r.tokens == (i < 2 ? 0 : t.len - 1) && r.n_removed == 0);
            sync_ids(s, &t, 0);
            write_dir(s, f.dir);
            session_close(s);
        }
        whole_close(&w);
    }
    CHECK(folder_count(f.dir, ".kv", NULL) == 4);
    CHECK(folder_count(f.dir, ".state", NULL) == 4);
    tokens_release(&t);
    folder_remove(&f);
}

/* The common beginning, then one of three continuations. */
static void branch(struct tokens *t, size_t common, uint32_t which)
{
    t->len = common;
    ids_add(t, 30, 100 + which);
}

static void test_branches_and_edits(void)
{
    struct folder f = folder_make();
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session_params params = { .ctx_tokens = 512 };
    struct session *s = whole_session(&w, &params);
    struct tokens t = { 0 };
    int32_t want[3][16], got[16];
    size_t n[3];
    ids_add(&t, 60, 5);
    const size_t common = t.len;
    for (uint32_t b = 0; b < 3; b++) {
        branch(&t, common, b);
        sync_ids(s, &t, common);
        struct session_write_result r = write_dir(s, f.dir);
        uint64_t row = model_info(w.model)->kv_bytes_per_token;
        /* Branches share the rows of what they have in common. */
        if (b)
            CHECK(r.written_bytes - r.state_bytes < 31 * row + 1024);
        n[b] = fresh_greedy(&w, &params, &t, 16, want[b]);
    }
    session_close(s);
    s = whole_session(&w, &params);
    static const uint32_t order[] = { 0, 1, 0, 2, 1, 2 };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        uint32_t b = order[i];
        branch(&t, common, b);
        struct session_read_result r = read_dir(s, f.dir, &t);
        CHECK(r.tokens == t.len - 1 && r.n_removed == 0);
        CHECK(whole_greedy(s, t.v, t.len, 16, 8, got) == n[b]);
        CHECK(!memcmp(got, want[b], n[b] * sizeof *got));
    }
    /* An edit in the middle of what is on disk: no point before it, so that
     * nothing is restored and the answer is that of evaluating. */
    branch(&t, common, 1);
    t.v[common + 10] ^= 1;
    CHECK(read_dir(s, f.dir, &t).tokens == 0);
    n[0] = fresh_greedy(&w, &params, &t, 16, want[0]);
    CHECK(whole_greedy(s, t.v, t.len, 16, 8, got) == n[0]);
    CHECK(!memcmp(got, want[0], n[0] * sizeof *got));
    session_close(s);
    whole_close(&w);
    tokens_release(&t);
    folder_remove(&f);
}

/* A mark in memory can be written while the timeline is further on, and what is
 * in memory wins over files that would save less. */
static void test_point_in_memory(void)
{
    struct folder f = folder_make();
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .ctx_tokens = 512 });
    struct tokens t = { 0 };
    struct err err = { "" };
    struct session_write_result r;
    ids_add(&t, 90, 6);
    sync_ids(s, &t, 40);
    struct session_write_params p = { .dir = f.dir, .pos = 41 };
    CHECK(session_write(s, &p, &r, &err) < 0 && strstr(err.text, "41"));
    p.pos = 40;
    OK(session_write(s, &p, &r, &err), &err);
    CHECK(r.tokens == 40);
    CHECK(read_dir(s, f.dir, &t).tokens == 0);
    session_close(s);
    s = whole_session(&w, &(struct session_params){ .ctx_tokens = 512 });
    CHECK(read_dir(s, f.dir, &t).tokens == 40);
    int32_t want[16], got[16];
    size_t n = fresh_greedy(&w, NULL, &t, 16, want);
    CHECK(whole_greedy(s, t.v, t.len, 16, 8, got) == n);
    CHECK(!memcmp(got, want, n * sizeof *got));
    /* The whole prompt on disk: one token is left to evaluate all the same. */
    t.len = 41;
    CHECK(read_dir(s, f.dir, &t).tokens == 40);
    t.len = 40;
    CHECK(read_dir(s, f.dir, &t).tokens == 0);
    session_close(s);
    whole_close(&w);
    tokens_release(&t);
    folder_remove(&f);
}

static void test_nothing_is_written_twice(void)
{
    enum { TURNS = 50, USER = 10, ANSWER = 6 };
    struct folder f = folder_make();
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .ctx_tokens = 1024 });
    struct tokens t = { 0 };
    uint64_t written = 0, row = model_info(w.model)->kv_bytes_per_token;
    for (uint32_t i = 0; i < TURNS; i++) {
        ids_add(&t, USER, i);
        turn(s, &t, ANSWER);
        written += write_dir(s, f.dir).written_bytes;
    }
    uint64_t due = t.len * row + TURNS * model_info(w.model)->state_bytes;
    printf("# %d turns, %zu tokens: %llu bytes written, %llu of rows and states\n", TURNS,
           t.len, (unsigned long long)written, (unsigned long long)due);
    CHECK(written <= due + due / 2);
    CHECK(write_dir(s, f.dir).written_bytes == 0);
    session_close(s);
    whole_close(&w);
    tokens_release(&t);
    folder_remove(&f);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    REQUIRE(stat(path, &st) == 0);
    return st.st_mode & 07777;
}

static void test_files_are_private(void)
{
    struct folder f = folder_make();
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .ctx_tokens = 128 });
    struct tokens t = { 0 };
    char path[256];
    umask(022);
    ids_add(&t, 20, 7);
    sync_ids(s, &t, 0);
    struct session_write_result r = write_dir(s, f.dir);
    CHECK(mode_of(f.dir) == 0700);
    CHECK(folder_count(f.dir, ".kv", path) == 1 && mode_of(path) == 0600);
    CHECK(strstr(path, r.kv_name));
    CHECK(folder_count(f.dir, ".state", path) == 1 && mode_of(path) == 0600);
    CHECK(strstr(path, r.state_name));
    struct stat st;
    CHECK(stat(path, &st) == 0 && (uint64_t)st.st_size == r.state_bytes);
    session_close(s);
    whole_close(&w);
    tokens_release(&t);
    folder_remove(&f);
}

TEST_MAIN(T(test_restart_f16_int8), T(test_restart_f16_float), T(test_restart_f32_int8),
          T(test_restart_f32_float), T(test_kinds_lie_beside_each_other),
          T(test_branches_and_edits), T(test_point_in_memory),
          T(test_nothing_is_written_twice), T(test_files_are_private))
