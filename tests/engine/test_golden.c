/* test_golden.c - whole models against results computed elsewhere in double
 * precision: last logits, greedy ids, and the best id after every position. */
#include "tests/engine/whole.h"

#include <math.h>

struct tolerance {
    float logits; /* largest difference of a logit */
    float tie;    /* greedy ids may differ where the two best are closer */
};

/* The gap between the best logit and that of another id. */
static float gap(const float *logits, uint32_t n, int32_t id)
{
    float best = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        best = fmaxf(best, logits[i]);
    return best - logits[id];
}

static void check_logits(const float *got, const struct json *want, float tolerance)
{
    float worst = 0;
    for (size_t i = 0; i < want->n; i++)
        worst = fmaxf(worst, fabsf(got[i] - (float)json_number(json_at(want, i))));
    if (!(worst <= tolerance))
        printf("# largest logit difference %g, allowed %g\n", worst, tolerance);
    CHECK(worst <= tolerance);
}

/* Ids must be equal up to the first near tie. */
static void check_greedy(struct session *s, const struct whole *w, const int32_t *prompt,
                         size_t n_prompt, const struct json *want, struct tolerance tol)
{
    struct err err = { "" };
    struct tokens all = { 0 };
    float *logits = mem_array(w->n_vocab, sizeof *logits);
    tokens_add(&all, prompt, n_prompt);
    for (size_t i = 0; i < want->n; i++) {
        int32_t id, expected = (int32_t)json_number(json_at(want, i));
        size_t got;
        OK(session_sync(s, all.v, all.len, NULL, NULL, &err), &err);
        OK(session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &got, &err), &err);
        OK(session_logits(s, logits, &err), &err);
        float lead = gap(logits, w->n_vocab, expected);
        if (id != expected && !(lead <= tol.tie)) {
            printf("# new token %zu: got %d, want %d, %g behind\n", i, id, expected,
                   lead);
            CHECK(id == expected);
            break;
        }
        tokens_push(&all, expected);
    }
    free(logits);
    tokens_release(&all);
}

/* The best id after each prefix, each token evaluated as a decode step. */
static void check_each(struct session *s, const struct whole *w, const int32_t *prompt,
                       size_t n, const struct json *want, struct tolerance tol)
{
    struct err err = { "" };
    float *logits = mem_array(w->n_vocab, sizeof *logits);
    for (size_t i = 0; i < n; i++) {
        struct sync_result r;
        int32_t id, expected = (int32_t)json_number(json_at(want, i));
        size_t got;
        OK(session_sync(s, prompt, i + 1, NULL, &r, &err), &err);
        CHECK(i == 0 || (r.reused == i && r.evaluated == 0));
        OK(session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &got, &err), &err);
        if (id == expected)
            continue;
        OK(session_logits(s, logits, &err), &err);
        if (!(gap(logits, w->n_vocab, expected) <= tol.tie))
            printf("# position %zu: got %d, want %d\n", i, id, expected);
        CHECK(gap(logits, w->n_vocab, expected) <= tol.tie);
    }
    free(logits);
}

static void run_tiles(const char *name, enum math_path math, enum kv_type kv,
                      enum tile_path tiles, struct tolerance tol)
{
    char path[256];
    snprintf(path, sizeof path, "tests/data/%s.gguf", name);
    struct whole w = whole_open_tiles(path, math, tiles);
    snprintf(path, sizeof path, "tests/data/%s.json", name);
    struct json j = json_read(path);
    const struct json *cases = json_get(&j, "cases");
    REQUIRE(cases && cases->n == 6);
    struct session *s = whole_session(&w, &(struct session_params){ .kv = kv });
    struct session *each = whole_session(&w, &(struct session_params){ .kv = kv });
    float *logits = mem_array(w.n_vocab, sizeof *logits);
    for (size_t c = 0; c < cases->n; c++) {
        const struct json *one = json_at(cases, c), *ids = json_get(one, "ids");
        int32_t *prompt = json_ids(ids);
        whole_first(s, prompt, ids->n, logits);
        check_logits(logits, json_get(one, "last_logits"), tol.logits);
        check_greedy(s, &w, prompt, ids->n, json_get(one, "greedy"), tol);
        check_each(each, &w, prompt, ids->n, json_get(one, "argmax_each"), tol);
        free(prompt);
    }
    free(logits);
    session_close(s);
    session_close(each);
    json_release(&j);
    whole_close(&w);
}

static void run_golden(const char *name, enum math_path math, enum kv_type kv,
                       struct tolerance tol)
{
    run_tiles(name, math, kv, TILES_NONE, tol);
}

static void test_dense_float(void)
{
    run_golden("dense_qwen35", MATH_FLOAT, KV_F16, (struct tolerance){ 0.02f, 0.02f });
}

static void test_dense_float_kv_f32(void)
{
    run_golden("dense_qwen35", MATH_FLOAT, KV_F32, (struct tolerance){ 0.002f, 0.002f });
}

static void test_moe_float(void)
{
    run_golden("moe_qwen35", MATH_FLOAT, KV_F16, (struct tolerance){ 0.02f, 0.02f });
}

static void test_moe_float_kv_f32(void)
{
    run_golden("moe_qwen35", MATH_FLOAT, KV_F32, (struct tolerance){ 0.002f, 0.002f });
}

static void test_next_float(void)
{
    run_golden("next", MATH_FLOAT, KV_F16, (struct tolerance){ 0.02f, 0.02f });
}

static void test_next_float_kv_f32(void)
{
    run_golden("next", MATH_FLOAT, KV_F32, (struct tolerance){ 0.002f, 0.002f });
}

/* Prompts in tiles of f16, with cooperative matrices where there are any. */
static void run_both_tiles(const char *name, float most)
{
    struct device_info info[8];
    struct err err = { "" };
    size_t n;
    int chosen;
    struct tolerance tol = { most, most };
    OK(device_list(info, 8, &n, &chosen, &err), &err);
    run_tiles(name, MATH_FLOAT, KV_F16, TILES_PLAIN, tol);
    if (chosen >= 0 && chosen < 8 && info[chosen].coopmat)
        run_tiles(name, MATH_FLOAT, KV_F16, TILES_MATRIX, tol);
}

static void test_dense_tiles(void)
{
    run_both_tiles("dense_qwen35", 0.04f);
}

static void test_moe_tiles(void)
{
    run_both_tiles("moe_qwen35", 0.08f);
}

static void test_next_tiles(void)
{
    run_both_tiles("next", 0.08f);
}

/* Rounding activations to 8 bits is not exact: on random weights, which have
 * no trained robustness, the logits move by a few per cent of their spread. */
static void test_dense_int8(void)
{
    struct whole w = whole_open("tests/data/dense_qwen35.gguf", MATH_INT8);
    struct json j = json_read("tests/data/dense_qwen35.json");
    const struct json *cases = json_get(&j, "cases");
    struct session *s = whole_session(&w, NULL);
    float *logits = mem_array(w.n_vocab, sizeof *logits);
    for (size_t c = 0; c < cases->n; c++) {
        const struct json *ids = json_get(json_at(cases, c), "ids");
        const struct json *want = json_get(json_at(cases, c), "last_logits");
        int32_t *prompt = json_ids(ids);
        whole_first(s, prompt, ids->n, logits);
        double error = 0, spread = 0;
        for (size_t i = 0; i < want->n; i++) {
            double v = json_number(json_at(want, i));
            error += (logits[i] - v) * (logits[i] - v);
            spread += v * v;
        }
        if (!(sqrt(error / spread) < 0.08))
            printf("# case %zu: relative error %g\n", c, sqrt(error / spread));
        CHECK(sqrt(error / spread) < 0.08);
        free(prompt);
    }
    free(logits);
    session_close(s);
    json_release(&j);
    whole_close(&w);
}

static void check_text(const struct whole *w, const int32_t *ids, size_t n,
                       const char *want)
{
    struct buf said = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        model_detokenize(w->model, ids[i], 0, &said);
    CHECK_STR(buf_cstr(&said), want);
    buf_release(&said);
}

/* The shipped model: prompts, greedy ids and text, eight best logits. */
static void run_mini(enum math_path math, struct tolerance tol)
{
    struct whole w = whole_open("assets/tern-mini.gguf", math);
    struct json j = json_read("tests/data/tern-mini.golden.json");
    struct session *s = whole_session(&w, NULL);
    float *logits = mem_array(w.n_vocab, sizeof *logits);
    REQUIRE(j.n == 4);
    for (size_t c = 0; c < j.n; c++) {
        const struct json *one = json_at(&j, c), *want = json_get(one, "greedy");
        const struct json *top = json_get(one, "top_ids"),
                          *at = json_get(one, "top_logits");
        const struct json *text = json_get(one, "prompt");
        struct tokens prompt = { 0 };
        int32_t ids[64];
        model_tokenize(w.model, text->text, text->bytes, TOKENIZE_SPECIAL, &prompt);
        size_t n = whole_greedy(s, prompt.v, prompt.len, want->n, 8, ids);
        whole_first(s, prompt.v, prompt.len, logits);
        if (!tol.tie) {
            CHECK(n == want->n);
            check_text(&w, ids, n, json_text(json_get(one, "text")));
        }
        float worst = 0;
        for (size_t i = 0; i < top->n; i++)
            worst = fmaxf(worst, fabsf(logits[(int)json_number(json_at(top, i))] -
                                       (float)json_number(json_at(at, i))));
        if (!(worst <= tol.logits))
            printf("# \"%s\": a top logit is off by %g\n", json_text(text), worst);
        CHECK(worst <= tol.logits);
        check_greedy(s, &w, prompt.v, prompt.len, want, tol);
        tokens_release(&prompt);
    }
    free(logits);
    session_close(s);
    json_release(&j);
    whole_close(&w);
}

static void test_mini_float(void)
{
    run_mini(MATH_FLOAT, (struct tolerance){ 0.02f, 0 });
}

static void test_mini_int8(void)
{
    run_mini(MATH_INT8, (struct tolerance){ 0.3f, 0.3f });
}

TEST_MAIN(T(test_dense_float), T(test_dense_float_kv_f32), T(test_dense_tiles),
          T(test_moe_tiles), T(test_next_tiles), T(test_dense_int8), T(test_moe_float),
          T(test_moe_float_kv_f32), T(test_next_float), T(test_next_float_kv_f32),
          T(test_mini_float), T(test_mini_int8))
