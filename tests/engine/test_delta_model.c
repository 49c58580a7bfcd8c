/* test_delta_model.c - whole models whose prompts go through the chunked delta
 * rule: golden logits, any cut of the prompt into passes, and decoding from
 * the state that it leaves. */
#include "engine/device_model.h"
#include "tests/engine/whole.h"

#include <math.h>

/* The golden models, evaluated one token at a time and many at once. */
static const char *const names[] = { "dense_qwen35", "moe_qwen35", "next" };

static const struct delta_tuning small = { .from = 2,
                                           .chunk = 32,
                                           .strips = 2,
                                           .solve_size = 64,
                                           .rows = 8,
                                           .ahead = 4,
                                           .emit_size = 64,
                                           .columns = 32,
                                           .heads = 1 };

/* What GPUs use, from the second token on. */
static struct delta_tuning of_gpu(const struct whole *w)
{
    struct device_info info = *gpu_info(w->engine->gpu);
    struct tuning t;
    snprintf(info.kind, sizeof info.kind, "discrete");
    tuning_choose(&t, &info);
    t.delta_many.from = 2;
    return t.delta_many;
}

static struct whole open_chunked(const char *name, enum math_path math, bool gpu)
{
    char path[256];
    snprintf(path, sizeof path, "tests/data/%s.gguf", name);
    struct whole w = whole_open(path, math);
    CHECK(w.engine->tune.delta_many.from == 0); /* each token by itself */
    w.engine->tune.delta_many = gpu ? of_gpu(&w) : small;
    return w;
}

static struct json read_cases(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "tests/data/%s.json", name);
    return json_read(path);
}

static float worst_of(const float *got, const struct json *want)
{
    float worst = 0;
    for (size_t i = 0; i < want->n; i++)
        worst = fmaxf(worst, fabsf(got[i] - (float)json_number(json_at(want, i))));
    return isnan(worst) ? INFINITY : worst;
}

/* Golden logits after each prompt, in passes of `chunk` tokens. */
static void check_golden(const char *name, bool gpu, uint32_t chunk)
{
    struct whole w = open_chunked(name, MATH_FLOAT, gpu);
    struct json j = read_cases(name);
    const struct json *cases = json_get(&j, "cases");
    struct session *s = whole_session(
        &w, &(struct session_params){ .kv = KV_F32, .chunk_tokens = chunk });
    float *logits = mem_array(w.n_vocab, sizeof *logits);
    REQUIRE(cases && cases->n == 6);
    for (size_t c = 0; c < cases->n; c++) {
        const struct json *one = json_at(cases, c), *ids = json_get(one, "ids");
        int32_t *prompt = json_ids(ids);
        whole_first(s, prompt, ids->n, logits);
        float worst = worst_of(logits, json_get(one, "last_logits"));
        if (!(worst <= 0.002f))
            printf("# %s, %zu tokens, chunks of %u: off by %g\n", name, ids->n, chunk,
                   worst);
        CHECK(worst <= 0.002f);
        free(prompt);
    }
    free(logits);
    session_close(s);
    json_release(&j);
    whole_close(&w);
}

/* Each model with both, in one pass with the one and in several with the other. */
static void test_golden_whole(void)
{
    check_golden(names[0], true, 150);
    check_golden(names[1], true, 150);
    check_golden(names[2], false, 150);
}

static void test_golden_in_passes(void)
{
    check_golden(names[0], false, 9);
    check_golden(names[1], false, 33);
    check_golden(names[2], true, 65);
}

/* The steps really are other ones: logits differ from those of single tokens,
 * by little, and stay as near over 24 tokens decoded from the state. */
static void check_decoding(const char *name, enum math_path math, float tolerance)
{
    enum { IDS = 100, MORE = 24 };
    int32_t ids[IDS + MORE];
    struct whole plain = whole_open(name, math), w = whole_open(name, math);
    w.engine->tune.delta_many = of_gpu(&w);
    for (int i = 0; i < IDS + MORE; i++)
        ids[i] = (i * 7919 + 13) % (int)w.n_vocab;
    struct session *a = whole_session(&plain, NULL), *b = whole_session(&w, NULL);
    float *want = mem_array(w.n_vocab, 4), *got = mem_array(w.n_vocab, 4), all = 0;
    for (size_t n = IDS; n <= IDS + MORE; n++) {
        float worst = 0, low = INFINITY, high = -INFINITY;
        whole_first(a, ids, n, want);
        whole_first(b, ids, n, got);
        for (uint32_t i = 0; i < w.n_vocab; i++) {
            worst = fmaxf(worst, fabsf(got[i] - want[i]));
            low = fminf(low, want[i]);
            high = fmaxf(high, want[i]);
            CHECK(!isnan(got[i]));
        }
        if (!(worst <= tolerance * (high - low)))
            printf("# %s, %zu tokens: off by %g of %g\n", name, n, worst, high - low);
        CHECK(worst <= tolerance * (high - low));
        all = fmaxf(all, worst);
    }
    CHECK(all > 0);
    free(want);
    free(got);
    session_close(a);
    session_close(b);
    whole_close(&plain);
    whole_close(&w);
}

static void test_decoding_float(void)
{
    check_decoding("tests/data/dense_qwen35.gguf", MATH_FLOAT, 2e-3f);
    check_decoding("assets/tern-mini.gguf", MATH_FLOAT, 2e-3f);
}

static void test_decoding_int8(void)
{
    check_decoding("assets/tern-mini.gguf", MATH_INT8, 0.02f);
}

TEST_MAIN(T(test_golden_whole), T(test_golden_in_passes), T(test_decoding_float),
          T(test_decoding_int8))
