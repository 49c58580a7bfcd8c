/* test_qwen3.c - models without recurrent layers: numbers computed elsewhere in
 * double precision, device against reference in both arithmetics, scaled
 * rotation, timelines that go back to any position. */
#include "tests/engine/random_model.h"
#include "tests/engine/timeline.h"

enum { N_IDS = 12, MORE = 3 };

static void yarn_keys(struct gguf_writer *w)
{
    gw_str(w, "qwen3.rope.scaling.type", "yarn");
    gw_f32(w, "qwen3.rope.scaling.factor", 4);
    gw_u32(w, "qwen3.rope.scaling.original_context_length", 64);
}

/* As small as the numbers below were computed with. */
static const struct random_model tied = { .arch = "qwen3",
                                          .layers = 3,
                                          .embd = 64,
                                          .ff = 96,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .dim = 128,
                                          .type = QUANT_F32,
                                          .tied = true,
                                          .keys = yarn_keys,
                                          .noise = 7 };
static const struct random_model untied = { .arch = "qwen3",
                                            .layers = 3,
                                            .embd = 64,
                                            .ff = 96,
                                            .heads = 4,
                                            .kv_heads = 2,
                                            .dim = 128,
                                            .type = QUANT_F32,
                                            .noise = 7 };
/* Rows long enough for blocks of 128. */
static const struct random_model ternary = { .arch = "qwen3",
                                             .layers = 3,
                                             .embd = 256,
                                             .ff = 384,
                                             .heads = 4,
                                             .kv_heads = 2,
                                             .dim = 128,
                                             .type = QUANT_PQ2_0,
                                             .tied = true,
                                             .keys = yarn_keys,
                                             .noise = 11 };

static void make_ids(int32_t *ids, size_t n, int first)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (17 * (int32_t)i + first) % 251;
}

static const char *written(const struct random_model *m, char path[256])
{
    random_write(m, gw_path(path, "random.gguf"), NULL);
    return path;
}

/* ---- numbers from elsewhere ---------------------------------------------- */

/* The logits of some ids after the last of 12. */
static const struct outside {
    const struct random_model *m;
    int32_t best;
    float logits[8];
} outside[] = {
    { &tied,
      213,
      { 1.2732435f, -0.2978642f, 0.0307236f, 0.1827782f, -0.6663129f, -1.0905697f,
        -0.0156754f, 1.4310861f } },
    { &untied,
      255,
      { 1.0746556f, 0.7402561f, -2.3315737f, -0.0893242f, 0.8506687f, -2.1170966f,
        -1.0007492f, -0.9925586f } },
};

static void check_outside(const struct outside *o, const float *got, float most)
{
    static const int at[8] = { 0, 1, 2, 3, 100, 257, 258, 259 };
    int best = 0;
    float worst = 0;
    for (int i = 0; i < 8; i++)
        worst = fmaxf(worst, fabsf(got[at[i]] - o->logits[i]));
    for (int i = 1; i < TOKENS; i++)
        best = got[i] > got[best] ? i : best;
    if (!(worst <= most))
        printf("# largest difference %g, allowed %g\n", (double)worst, (double)most);
    CHECK(worst <= most && best == o->best);
}

static void test_outside_values(void)
{
    char path[256];
    int32_t ids[N_IDS];
    float logits[TOKENS];
    const struct random_question q = { ids, N_IDS, 0 };
    make_ids(ids, N_IDS, 3);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        written(outside[i].m, path);
        random_reference(path, &q, logits);
        check_outside(&outside[i], logits, 2e-6f);
        random_device(path, MATH_FLOAT, true, &q, logits);
        check_outside(&outside[i], logits, 2e-5f);
    }
}

/* ---- device and reference ------------------------------------------------ */

static void test_device_agrees(void)
{
    char path[256];
    int32_t ids[N_IDS];
    const struct random_question q = { ids, N_IDS, MORE };
    make_ids(ids, N_IDS, 5);
    written(&ternary, path);
    CHECK(random_agrees(path, MATH_FLOAT, true, &q, 2e-5));
    CHECK(random_agrees(path, MATH_FLOAT, false, &q, 2e-5));
    CHECK(random_agrees(path, MATH_INT8, true, &q, 0.05));
    CHECK(random_agrees(path, MATH_INT8, false, &q, 0.05));
}

static void test_described(void)
{
    char path[256];
    struct model *m;
    struct err err = { "" };
    OK(model_open(&m, written(&tied, path), &err), &err);
    const struct model_info *info = model_info(m);
    CHECK(info->computes && !info->refusal);
    CHECK(info->n_layers == 3 && info->n_attention == 3 && info->n_recurrent == 0);
    CHECK(info->state_bytes == 0 && info->kv_bytes_per_token == 3 * 2 * 128 * 2 * 2);
    CHECK_STR(info->architecture, "qwen3");
    model_close(m);
}

/* ---- rotation ------------------------------------------------------------ */

/* The scaling that published small models have. */
static void test_frequencies(void)
{
    static const struct {
        int pair;
        double radians;
    } rows[] = { { 0, 1 },
                 { 1, 0.8058421877614819 },
                 { 17, 0.025482967479793464 },
                 { 18, 0.01962928334113449 },
                 { 25, 0.0029322011772711177 },
                 { 30, 0.0006567333714077245 },
                 { 33, 0.00023701240816514175 },
                 { 34, 0.0001623454078940528 },
                 { 50, 5.133812566142866e-06 },
                 { 63, 3.102344401879299e-07 } };
    const struct rope_scaling s = { 4, 8192, 32, 1, 1 }, none = { 0 };
    double f[64];
    float turns[128];
    rope_frequencies(&s, 1e6, 64, f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(fabs(f[rows[i].pair] / rows[i].radians - 1) < 1e-12);
    rope_turns(&s, f, 64, 3, turns);
    CHECK(fabs(turns[0] - 1.138629436111989 * cos(3)) < 1e-6);
    CHECK(fabs(turns[1] - 1.138629436111989 * sin(3)) < 1e-6);
    rope_frequencies(&none, 1e6, 64, f);
    for (int i = 0; i < 64; i++)
        CHECK(fabs(f[i] / pow(1e6, -i / 64.0) - 1) < 1e-12);
    rope_turns(&none, f, 64, 0, turns);
    CHECK(turns[0] == 1 && turns[1] == 0);
}

/* A plain model with these keys too: NULL if it runs, else the refusal. */
static void check_keys(void (*keys)(struct gguf_writer *w), const char *want, int line)
{
    char path[256];
    struct model *m;
    struct err err = { "" };
    struct random_model r = untied;
    r.keys = keys;
    OK(model_open(&m, written(&r, path), &err), &err);
    if (want)
        check_text(m->refusal, want, "refused", line);
    else if (m->refusal)
        printf("# line %d: %s\n", line, m->refusal);
    CHECK(want || !m->refusal);
    model_close(m);
}

static void no_scaling(struct gguf_writer *w)
{
    gw_str(w, "qwen3.rope.scaling.type", "none");
    gw_f32(w, "qwen3.rope.scaling.factor", 4);
}

static void factor_of_one(struct gguf_writer *w)
{
    gw_str(w, "qwen3.rope.scaling.type", "yarn");
    gw_f32(w, "qwen3.rope.scaling.factor", 1);
}

static void usual_method(struct gguf_writer *w)
{
    yarn_keys(w);
    gw_f32(w, "qwen3.rope.scaling.yarn_ext_factor", 1);
    gw_f32(w, "qwen3.rope.scaling.yarn_log_multiplier", 0);
    gw_f32(w, "qwen3.rope.scaling.yarn_beta_fast", 32);
    gw_f32(w, "qwen3.rope.scaling.attn_factor", 0.9f);
}

static void no_factor(struct gguf_writer *w)
{
    gw_str(w, "qwen3.rope.scaling.type", "yarn");
    gw_u32(w, "qwen3.rope.scaling.original_context_length", 64);
}

static void no_context(struct gguf_writer *w)
{
    gw_str(w, "qwen3.rope.scaling.type", "yarn");
    gw_f32(w, "qwen3.rope.scaling.factor", 4);
}

static void betas_crossed(struct gguf_writer *w)
{
    yarn_keys(w);
    gw_f32(w, "qwen3.rope.scaling.yarn_beta_slow", 40);
}

static void other_method(struct gguf_writer *w)
{
    yarn_keys(w);
    gw_f32(w, "qwen3.rope.scaling.yarn_ext_factor", 0.5f);
}

static void linear(struct gguf_writer *w)
{
    gw_str(w, "qwen3.rope.scaling.type", "linear");
}

static void only_factor(struct gguf_writer *w)
{
    gw_f32(w, "qwen3.rope.scaling.factor", 2);
}

static void test_scaling_keys(void)
{
    check_keys(NULL, NULL, __LINE__);
    check_keys(no_scaling, NULL, __LINE__);
    check_keys(factor_of_one, NULL, __LINE__);
    check_keys(yarn_keys, NULL, __LINE__);
    check_keys(usual_method, NULL, __LINE__);
    check_keys(no_factor, "not described in full", __LINE__);
    check_keys(no_context, "not described in full", __LINE__);
    check_keys(betas_crossed, "not described in full", __LINE__);
    check_keys(other_method, "yarn_ext_factor 0.5 is not supported", __LINE__);
    check_keys(linear, "rope scaling \"linear\" is not supported", __LINE__);
    check_keys(only_factor, "rope scaling \"linear\" is not supported", __LINE__);
}

/* ---- timelines ----------------------------------------------------------- */

/* Every common prefix is reused, with no snapshot anywhere. */
static void test_goes_back_anywhere(void)
{
    enum { LONG = 40, KEEP = 23 };
    char path[256];
    int32_t ids[LONG], other[LONG];
    float want[TOKENS], got[TOKENS];
    struct err err = { "" };
    struct sync_result r;
    make_ids(ids, LONG, 1);
    make_ids(other, LONG, 1);
    for (int i = KEEP; i < LONG; i++)
        other[i] = (5 * i + 2) % 251;
    struct whole w = whole_open(written(&ternary, path), MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .chunk_tokens = 16 });
    const size_t marks[] = { 5, 20 };
    OK(session_sync(s, ids, LONG, &(struct sync_params){ .marks = marks, .n_marks = 2 },
                    &r, &err),
       &err);
    OK(session_sync(s, other, LONG, NULL, &r, &err), &err);
    CHECK(r.reused == KEEP && r.evaluated == LONG - 1 - KEEP);
    CHECK(session_snapshot_bytes(s) == 0);
    whole_first(s, other, LONG, got);
    session_close(s);
    s = whole_session(&w, NULL);
    whole_first(s, other, LONG, want);
    CHECK(!memcmp(got, want, sizeof want));
    session_close(s);
    whole_close(&w);
}

/* Written in the middle, which hybrids can do at marks only, and read back. */
static void test_kept_on_disk(void)
{
    enum { LONG = 30, POS = 21 };
    char path[256];
    struct folder f = folder_make();
    struct tokens t = { 0 };
    struct err err = { "" };
    struct session_write_result wrote;
    float want[TOKENS], got[TOKENS];
    for (int i = 0; i < LONG; i++)
        tokens_push(&t, (13 * i + 4) % 251);
    struct whole w = whole_open(written(&ternary, path), MATH_INT8);
    struct session *s = whole_session(&w, NULL);
    whole_first(s, t.v, t.len, want);
    OK(session_write(s, &(struct session_write_params){ .dir = f.dir, .pos = POS },
                     &wrote, &err),
       &err);
    CHECK(wrote.tokens == POS && wrote.kv_bytes > 0);
    CHECK(folder_count(f.dir, ".state", NULL) == 1 &&
          folder_count(f.dir, ".kv", NULL) == 1);
    session_close(s);
    s = whole_session(&w, NULL);
    struct session_read_result read = read_dir(s, f.dir, &t);
    CHECK(read.tokens == POS && read.n_removed == 0);
    CHECK(sync_ids(s, &t, 0).reused == POS);
    whole_first(s, t.v, t.len, got);
    CHECK(!memcmp(got, want, sizeof want));
    session_close(s);
    whole_close(&w);
    tokens_release(&t);
    folder_remove(&f);
}

TEST_MAIN(T(test_outside_values), T(test_device_agrees), T(test_described),
          T(test_frequencies), T(test_scaling_keys), T(test_goes_back_anywhere),
          T(test_kept_on_disk))
