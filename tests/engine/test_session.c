/* test_session.c - the timeline: prefill equals decode for every chunk size,
 * steps per submit change nothing, rewinding and snapshots give what a fresh
 * start gives, the limits hold. On the small dense model, where a token is
 * cheap. */
#include "base/fault.h"
#include "tests/engine/whole.h"

#include <math.h>

#define MODEL "tests/data/dense_qwen35.gguf"

enum { LONG = 150, SHORT = 9 };

static void make_prompt(int32_t *ids, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (int32_t)(5 + (seed >> 10) % 500);
    }
}

static bool same(const float *a, const float *b, uint32_t n)
{
    return !memcmp(a, b, n * sizeof *a);
}

/* Logits after a prompt on a session of its own. */
static void fresh_logits(const struct whole *w, const int32_t *ids, size_t n,
                         float *logits)
{
    struct session *s = whole_session(w, NULL);
    whole_first(s, ids, n, logits);
    session_close(s);
}

/* Both paths run the same kernels in the same order per token, so that equal
 * means bit for bit, where rows are added alike. */
static void chunks_agree(enum math_path math)
{
    struct whole w = whole_open(MODEL, math);
    int32_t ids[LONG];
    make_prompt(ids, LONG, 3);
    float *want = mem_array(w.n_vocab, 4), *got = mem_array(w.n_vocab, 4);
    fresh_logits(&w, ids, LONG, want);
    static const uint32_t chunks[] = { 1, 2, 3, 7, 31, 32, 33 };
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct session *s =
            whole_session(&w, &(struct session_params){ .chunk_tokens = chunks[i] });
        whole_first(s, ids, LONG, got);
        if (!whole_agree(&w, got, want))
            printf("# chunks of %u differ\n", chunks[i]);
        CHECK(whole_agree(&w, got, want));
        session_close(s);
    }
    free(want);
    free(got);
    whole_close(&w);
}

static void test_chunks_agree_float(void)
{
    chunks_agree(MATH_FLOAT);
}

static void test_chunks_agree_int8(void)
{
    chunks_agree(MATH_INT8);
}

/* Tiles of f16 round otherwise: logits move by little, whatever the chunks. */
static void tiles_agree(enum tile_path tiles)
{
    int32_t ids[LONG];
    struct whole plain = whole_open(MODEL, MATH_INT8);
    struct whole w = whole_open_tiles(MODEL, MATH_INT8, tiles);
    make_prompt(ids, LONG, 3);
    float *want = mem_array(w.n_vocab, 4), *got = mem_array(w.n_vocab, 4);
    fresh_logits(&plain, ids, LONG, want);
    float low = want[0], high = want[0];
    for (uint32_t i = 0; i < w.n_vocab; i++) {
        low = fminf(low, want[i]);
        high = fmaxf(high, want[i]);
    }
    static const uint32_t chunks[] = { 2, 31, 64, 150 };
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct session *s =
            whole_session(&w, &(struct session_params){ .chunk_tokens = chunks[i] });
        float worst = 0;
        whole_first(s, ids, LONG, got);
        for (uint32_t k = 0; k < w.n_vocab; k++)
            worst = fmaxf(worst, fabsf(got[k] - want[k]));
        if (!(worst > 0 && worst <= 0.02f * (high - low)))
            printf("# chunks of %u: off by %g of %g\n", chunks[i], worst, high - low);
        CHECK(worst > 0 && worst <= 0.02f * (high - low));
        session_close(s);
    }
    free(want);
    free(got);
    whole_close(&plain);
    whole_close(&w);
}

static void test_tiles_agree(void)
{
    tiles_agree(TILES_PLAIN);
    struct whole w = whole_open(MODEL, MATH_INT8);
    struct engine_info info;
    engine_info(w.engine, &info);
    whole_close(&w);
    if (info.device.coopmat)
        tiles_agree(TILES_MATRIX);
}

static void test_token_by_token_equals_prefill(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    int32_t ids[LONG], id;
    size_t n;
    struct err err = { "" };
    make_prompt(ids, LONG, 5);
    float *want = mem_array(w.n_vocab, 4), *got = mem_array(w.n_vocab, 4);
    fresh_logits(&w, ids, LONG, want);
    struct session *s = whole_session(&w, NULL);
    for (size_t i = 1; i <= LONG; i++) {
        struct sync_result r;
        OK(session_sync(s, ids, i, NULL, &r, &err), &err);
        CHECK(r.reused == i - 1 && r.evaluated == 0);
        OK(session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &n, &err), &err);
    }
    OK(session_logits(s, got, &err), &err);
    CHECK(whole_agree(&w, got, want));
    session_close(s);
    free(want);
    free(got);
    whole_close(&w);
}

/* n ids of a sampled continuation of SHORT ids with `steps` a submit. */
static size_t sampled(struct session *s, const int32_t *prompt,
                      const struct sampler_params *p, uint32_t steps, int32_t *ids,
                      size_t n)
{
    struct err err = { "" };
    size_t made = 0, got;
    OK(session_sync(s, prompt, SHORT, NULL, NULL, &err), &err);
    while (made < n) {
        uint32_t want = steps < n - made ? steps : (uint32_t)(n - made);
        OK(session_decode(s, want, p, ids + made, &got, &err), &err);
        made += got;
        if (got < want)
            break;
    }
    return made;
}

static void test_steps_change_nothing(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, NULL);
    static const struct sampler_params params[] = {
        { 0 },
        { .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .seed = 7 },
        { .temperature = 1.3f,
          .min_p = 0.02f,
          .presence_penalty = 1.0f,
          .repeat_penalty = 1.1f,
          .seed = 1234567890123ull },
    };
    int32_t prompt[SHORT], want[48], got[48];
    make_prompt(prompt, SHORT, 11);
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        size_t n = sampled(s, prompt, &params[i], 1, want, 48);
        static const uint32_t steps[] = { 2, 5, 16, 48 };
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
            CHECK(sampled(s, prompt, &params[i], steps[k], got, 48) == n);
            CHECK(!memcmp(got, want, n * sizeof *got));
        }
    }
    int32_t other[48];
    struct sampler_params seed = params[1];
    seed.seed++;
    size_t n = sampled(s, prompt, &params[1], 8, want, 48);
    size_t m = sampled(s, prompt, &seed, 8, other, 48);
    CHECK(n != m || memcmp(want, other, n * sizeof *want));
    session_close(s);
    whole_close(&w);
}

/* After any edit of the prompt the timeline gives what a fresh one gives. */
static void test_rewind_equals_fresh(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, NULL);
    struct err err = { "" };
    int32_t ids[LONG], id;
    float *want = mem_array(w.n_vocab, 4), *got = mem_array(w.n_vocab, 4);
    make_prompt(ids, LONG, 21);
    size_t marks[] = { 20, 64, 100 };
    struct sync_params p = { .marks = marks, .n_marks = 3 };
    struct sync_result r;
    OK(session_sync(s, ids, LONG, &p, &r, &err), &err);
    CHECK(r.reused == 0 && r.evaluated == LONG - 1);
    CHECK(session_snapshot_bytes(s) > 0);
    static const struct {
        size_t edit, reused; /* the snapshots before the edit are still there */
    } edits[] = { { 120, 100 }, { 70, 64 }, { 64, 64 }, { 21, 20 }, { 5, 0 } };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        ids[edits[i].edit] ^= 1;
        CHECK(session_reusable(s, ids, LONG) == edits[i].reused);
        OK(session_sync(s, ids, LONG, NULL, &r, &err), &err);
        if (r.reused != edits[i].reused)
            printf("# edit at %zu: reused %zu\n", edits[i].edit, r.reused);
        CHECK(r.reused == edits[i].reused && r.reused + r.evaluated == LONG - 1);
        size_t n;
        OK(session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &n, &err), &err);
        OK(session_logits(s, got, &err), &err);
        fresh_logits(&w, ids, LONG, want);
        CHECK(same(got, want, w.n_vocab));
    }
    session_close(s);
    free(want);
    free(got);
    whole_close(&w);
}

static void test_snapshot_budget(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct err err = { "" };
    uint64_t one = model_info(w.model)->state_bytes;
    struct session *s =
        whole_session(&w, &(struct session_params){ .snapshot_bytes = one * 5 });
    int32_t ids[LONG];
    size_t marks[LONG / 10];
    make_prompt(ids, LONG, 31);
    for (size_t i = 0; i < LONG / 10; i++)
        marks[i] = 10 * i + 3;
    struct sync_params p = { .marks = marks, .n_marks = LONG / 10 };
    struct sync_result r;
    OK(session_sync(s, ids, LONG, &p, &r, &err), &err);
    CHECK(session_snapshot_bytes(s) <= one * 5 && session_snapshot_bytes(s) >= one * 2);
    ids[4] ^= 1; /* the first snapshot outlives the thinning */
    OK(session_sync(s, ids, LONG, NULL, &r, &err), &err);
    CHECK(r.reused == 3);
    session_close(s);
    whole_close(&w);
}

struct counting {
    size_t calls, last_done, total;
    atomic_bool stop;
    size_t stop_after;
};

static void count(void *arg, size_t done, size_t total)
{
    struct counting *c = arg;
    CHECK(done > c->last_done && done <= total);
    c->calls++;
    c->last_done = done;
    c->total = total;
    if (c->calls == c->stop_after)
        atomic_store(&c->stop, true);
}

static void test_cancel_keeps_what_was_read(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .chunk_tokens = 16 });
    struct err err = { "" };
    int32_t ids[LONG];
    make_prompt(ids, LONG, 41);
    struct counting c = { .stop_after = 3 };
    struct sync_params p = { .progress = count, .arg = &c, .cancel = &c.stop };
    struct sync_result r;
    OK(session_sync(s, ids, LONG, &p, &r, &err), &err);
    CHECK(r.cancelled && r.evaluated == 48 && c.total == LONG - 1);
    int32_t id;
    size_t n;
    CHECK(session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &n, &err) < 0);
    OK(session_sync(s, ids, LONG, NULL, &r, &err), &err);
    CHECK(!r.cancelled && r.reused == 48 && r.evaluated == LONG - 1 - 48);
    session_close(s);
    whole_close(&w);
}

static void test_limits(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .ctx_tokens = 40 });
    struct err err = { "" };
    int32_t ids[LONG], out[DECODE_MAX_STEPS];
    size_t n;
    make_prompt(ids, LONG, 51);
    CHECK(session_decode(s, 1, &(struct sampler_params){ 0 }, out, &n, &err) < 0 &&
          n == 0);
    CHECK(session_sync(s, ids, 0, NULL, NULL, &err) < 0);
    CHECK(session_sync(s, ids, 41, NULL, NULL, &err) < 0);
    CHECK(strstr(err.text, "41") && strstr(err.text, "40"));
    int32_t bad[] = { 1, (int32_t)w.n_vocab }, negative[] = { -1 };
    CHECK(session_sync(s, bad, 2, NULL, NULL, &err) < 0);
    CHECK(session_sync(s, negative, 1, NULL, NULL, &err) < 0);
    OK(session_sync(s, ids, 37, NULL, NULL, &err), &err);
    OK(session_decode(s, 64, &(struct sampler_params){ 0 }, out, &n, &err), &err);
    CHECK(n <= 3 && session_tokens(s, NULL) == 37 + n);
    if (n == 3)
        CHECK(session_decode(s, 1, &(struct sampler_params){ 0 }, out, &n, &err) < 0);
    CHECK(session_decode(s, 1, &(struct sampler_params){ .top_p = 2 }, out, &n, &err) <
          0);
    session_close(s);
    whole_close(&w);
}

/* A prompt and some ids; -1 where the device fails. */
static int answer(struct session *s, const int32_t *prompt, size_t n_prompt, int32_t *ids,
                  struct err *err)
{
    size_t n;
    if (session_sync(s, prompt, n_prompt, NULL, NULL, err) < 0 ||
        session_decode(s, 4, &(struct sampler_params){ 0 }, ids, &n, err) < 0)
        return -1;
    return session_decode(s, 4, &(struct sampler_params){ 0 }, ids + n, &n, err);
}

/* Warming up leaves no trace in what follows, whether before or in between. */
static void test_warming_up(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct err err = { "" };
    int32_t prompt[60], want[8], got[8];
    make_prompt(prompt, 60, 91);
    struct session *s = whole_session(&w, NULL);
    OK(answer(s, prompt, 60, want, &err), &err);
    for (int i = 0; i < 2; i++) {
        OK(session_warm(s, &err), &err);
        CHECK(session_tokens(s, NULL) == 0 && session_snapshot_bytes(s) == 0);
        OK(answer(s, prompt, 60, got, &err), &err);
        CHECK(!memcmp(got, want, sizeof want));
    }
    session_close(s);
    s = whole_session(&w, &(struct session_params){ .ctx_tokens = 5 });
    OK(session_warm(s, &err), &err);
    session_close(s);
    whole_close(&w);
}

/* Whichever submit fails, the same session gives the right answer afterwards. */
static void test_failing_submits(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .chunk_tokens = 16 });
    struct err err = { "" };
    int32_t prompt[60], other[60], want[8], got[8];
    make_prompt(prompt, 60, 71);
    make_prompt(other, 60, 72);
    OK(answer(s, prompt, 60, want, &err), &err);
    unsigned n = 1;
    for (;; n++) {
        OK(answer(s, other, 60, got, &err), &err);
        fault_arm(FAULT_DEVICE_SUBMIT, n);
        int rc = answer(s, prompt, 60, got, &err);
        if (!fault_disarm(FAULT_DEVICE_SUBMIT))
            break;
        CHECK(rc < 0 && err.text[0]);
        OK(answer(s, prompt, 60, got, &err), &err);
        CHECK(!memcmp(got, want, sizeof want));
    }
    CHECK(n > 5);
    session_close(s);
    whole_close(&w);
}

/* A lost device fails every call from then on with the same reason, closes,
 * and a new engine works. */
static void test_lost_device(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *s = whole_session(&w, NULL);
    struct err err = { "" };
    int32_t prompt[60], want[8], got[8];
    make_prompt(prompt, 60, 81);
    OK(answer(s, prompt, 60, want, &err), &err);
    fault_arm(FAULT_DEVICE_LOST, 1);
    prompt[0] ^= 1;
    CHECK(answer(s, prompt, 60, got, &err) < 0 && strstr(err.text, "lost"));
    CHECK(fault_disarm(FAULT_DEVICE_LOST));
    CHECK(answer(s, prompt, 60, got, &err) < 0 && strstr(err.text, "lost"));
    session_close(s);
    whole_close(&w);
    w = whole_open(MODEL, MATH_FLOAT);
    s = whole_session(&w, NULL);
    prompt[0] ^= 1;
    OK(answer(s, prompt, 60, got, &err), &err);
    CHECK(!memcmp(got, want, sizeof want));
    session_close(s);
    whole_close(&w);
}

/* Two sessions of one engine do not see each other. */
static void test_sessions_are_separate(void)
{
    struct whole w = whole_open(MODEL, MATH_FLOAT);
    struct session *a = whole_session(&w, NULL), *b = whole_session(&w, NULL);
    int32_t x[40], y[40], want[20], got[20], other[20];
    make_prompt(x, 40, 61);
    make_prompt(y, 40, 62);
    size_t n = whole_greedy(a, x, 40, 20, 4, want);
    whole_greedy(b, y, 40, 20, 4, other);
    struct session *c = whole_session(&w, NULL);
    CHECK(whole_greedy(c, x, 40, 20, 4, got) == n);
    CHECK(!memcmp(got, want, n * sizeof *got));
    session_close(a);
    session_close(b);
    session_close(c);
    whole_close(&w);
}

TEST_MAIN(T(test_chunks_agree_float), T(test_chunks_agree_int8), T(test_tiles_agree),
          T(test_token_by_token_equals_prefill), T(test_steps_change_nothing),
          T(test_rewind_equals_fresh), T(test_snapshot_budget),
          T(test_cancel_keeps_what_was_read), T(test_limits), T(test_warming_up),
          T(test_failing_submits), T(test_lost_device), T(test_sessions_are_separate))
