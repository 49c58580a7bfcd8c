/* test_sample.c - the sampler on the device, against engine/ref_sample.c and
 * against what its parameters mean. */
#include "engine/kernel.h"
#include "engine/ref_sample.h"
#include "engine/sample.h"
#include "tests/engine/harness.h"

#include <float.h>

enum { MAX_VOCAB = 300000 };
static const uint32_t widths[] = { 16, 64, 1024 };
#define N_WIDTHS (sizeof widths / sizeof *widths)

/* ---- one sampler on the device ------------------------------------------ */

struct rig {
    struct gpu *gpu;
    struct gpu_kernel kernel;
    struct gpu_commands *list;
    struct gpu_buffer ctl, logits, counts, out;
    uint32_t n_vocab; /* of the recorded list */
    bool advance;
};

static void rig_open(struct rig *r, struct gpu *gpu, uint32_t width)
{
    struct err err = { "" };
    *r = (struct rig){ .gpu = gpu };
    HARNESS_OK(
        gpu_kernel_open(&r->kernel, gpu, kernel_module(KERNEL_SAMPLE), &width, 1, &err),
        &err);
    HARNESS_OK(gpu_commands_open(&r->list, gpu, &err), &err);
    r->ctl = harness_buffer(gpu, NULL, sizeof(struct ctl_block));
    r->logits = harness_buffer(gpu, NULL, MAX_VOCAB * 4);
    r->counts = harness_buffer(gpu, NULL, MAX_VOCAB * 4);
    r->out = harness_buffer(gpu, NULL, sizeof(struct out_block));
}

static void rig_close(struct rig *r)
{
    gpu_commands_close(r->list);
    gpu_kernel_close(&r->kernel, r->gpu);
    struct gpu_buffer *all[] = { &r->ctl, &r->logits, &r->counts, &r->out };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gpu_buffer_close(all[i], r->gpu);
}

static void rig_record(struct rig *r, uint32_t n_vocab, bool advance)
{
    struct err err = { "" };
    const struct push_sample push = { .advance = advance };
    const uint64_t bytes = (uint64_t)n_vocab * 4;
    const struct gpu_dispatch d = {
        .kernel = &r->kernel,
        .bind = { gpu_span_at(&r->ctl, 0, sizeof(struct ctl_block)),
                  gpu_span_at(&r->logits, 0, bytes), gpu_span_at(&r->counts, 0, bytes),
                  gpu_span_at(&r->out, 0, sizeof(struct out_block)) },
        .push = &push,
        .groups = { 1, 1, 1 },
    };
    HARNESS_OK(gpu_record_begin(r->list, &err), &err);
    HARNESS_OK(gpu_record(r->list, &d, &err), &err);
    HARNESS_OK(gpu_record_end(r->list, &err), &err);
    r->n_vocab = n_vocab;
    r->advance = advance;
}

static void upload(struct rig *r, const struct gpu_buffer *b, const void *v,
                   uint64_t bytes)
{
    struct err err = { "" };
    HARNESS_OK(gpu_upload(r->gpu, gpu_span_at(b, 0, bytes), v, &err), &err);
}

/* Everything that the kernel reads and writes. */
struct timeline {
    struct ctl_block ctl;
    struct out_block out;
    float *logits;
    uint32_t *counts;
};

static void run_device(struct rig *r, struct timeline *t, uint32_t steps, bool advance)
{
    struct err err = { "" };
    const uint64_t bytes = (uint64_t)t->ctl.n_vocab * 4;
    if (r->n_vocab != t->ctl.n_vocab || r->advance != advance)
        rig_record(r, t->ctl.n_vocab, advance);
    upload(r, &r->ctl, &t->ctl, sizeof t->ctl);
    upload(r, &r->out, &t->out, sizeof t->out);
    upload(r, &r->logits, t->logits, bytes);
    upload(r, &r->counts, t->counts, bytes);
    HARNESS_OK(gpu_submit(r->gpu, &r->list, 1, steps, &err), &err);
    HARNESS_OK(gpu_wait(r->gpu, 0, &err), &err);
    harness_read(r->gpu, &r->ctl, &t->ctl, sizeof t->ctl);
    harness_read(r->gpu, &r->out, &t->out, sizeof t->out);
    harness_read(r->gpu, &r->counts, t->counts, bytes);
}

/* ---- random cases -------------------------------------------------------- */

struct rng {
    uint64_t state;
};

/* SplitMix64 (Steele et al., 2014), the upper half. */
static uint32_t rng_u32(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static float rng_unit(struct rng *r)
{
    return (float)(rng_u32(r) >> 8) / 16777216.0f;
}

/* Roughly normal. */
static float rng_normal(struct rng *r)
{
    float sum = 0;
    for (int i = 0; i < 6; i++)
        sum += rng_unit(r);
    return (sum - 3) * 1.41f;
}

/* Logits of many kinds: smooth, coarse (many ties), of a confident model,
 * with holes, with special values. Halves and quarters keep the arithmetic of
 * penalties exact where the case is compared bit by bit. */
static void random_logits(struct rng *r, float *v, uint32_t n)
{
    static const float special[] = { NAN,  -NAN,  INFINITY, -INFINITY,
                                     0.0f, -0.0f, FLT_MAX,  -FLT_MAX };
    const uint32_t kind = rng_u32(r) % 6;
    for (uint32_t i = 0; i < n; i++) {
        float x = rng_normal(r);
        switch (kind) {
        case 0:
            x *= 4;
            break;
        case 1:
            x = floorf(x * 3) / 2;
            break;
        case 2:
            x = rng_u32(r) % 97 ? x - 30 : x * 3 + 20;
            break;
        case 3:
            x = rng_u32(r) % 3 ? -INFINITY : x;
            break;
        case 4:
            x = rng_u32(r) % 9 ? x : special[rng_u32(r) % 8];
            break;
        default:
            x *= 0.01f;
            break;
        }
        v[i] = x;
    }
}

static float one_of(struct rng *r, const float *v, uint32_t n)
{
    return v[rng_u32(r) % n];
}

/* All but the logits. */
static void random_case(struct rng *r, struct timeline *t, uint32_t n, bool greedy)
{
    static const float temperatures[] = { 1e-6f, 0.1f, 0.7f, 1, 1.5f, 20, 1e6f };
    static const float top_ps[] = { 0, 0.001f, 0.5f, 0.8f, 0.95f, 1 };
    static const float min_ps[] = { 0, 0, 0.01f, 0.05f, 0.5f, 1 };
    static const uint32_t top_ks[] = { 0, 1, 2, 3, 20, 40, 64, 255, 256 };
    static const float repeats[] = { 0, 0, 1, 2, 0.5f, 4 };
    static const float presents[] = { 0, 0, 0.5f, 1.5f, -1 };
    struct sampler_params p = {
        .temperature = greedy ? 0 : one_of(r, temperatures, 7),
        .top_k = top_ks[rng_u32(r) % 9],
        .top_p = one_of(r, top_ps, 6),
        .min_p = one_of(r, min_ps, 6),
        .repeat_penalty = one_of(r, repeats, 6),
        .presence_penalty = one_of(r, presents, 5),
        .frequency_penalty = one_of(r, presents, 5),
        .seed = (uint64_t)rng_u32(r) << 32 | rng_u32(r),
    };
    struct err err = { "" };
    t->ctl = (struct ctl_block){ .pos = rng_u32(r) % 100000,
                                 .n_tokens = 1 + rng_u32(r) % 9,
                                 .n_vocab = n,
                                 .side = rng_u32(r) & 1,
                                 .n_eog = 2 };
    t->ctl.eog[0] = n;
    t->ctl.eog[1] = rng_u32(r) % n;
    t->out = (struct out_block){ 0 };
    HARNESS_OK(sample_configure(&t->ctl, &p, &err), &err);
    for (uint32_t i = 0; i < n; i++)
        t->counts[i] = rng_u32(r) % 11 ? 0 : rng_u32(r) % 4;
}

static void timeline_alloc(struct timeline *t, uint32_t n)
{
    *t = (struct timeline){ .logits = calloc(n, 4), .counts = calloc(n, 4) };
    REQUIRE(t->logits && t->counts);
}

static void timeline_copy(struct timeline *to, const struct timeline *from)
{
    to->ctl = from->ctl;
    to->out = from->out;
    memcpy(to->logits, from->logits, (size_t)from->ctl.n_vocab * 4);
    memcpy(to->counts, from->counts, (size_t)from->ctl.n_vocab * 4);
}

static void timeline_free(struct timeline *t)
{
    free(t->logits);
    free(t->counts);
}

static bool timeline_equal(const struct timeline *a, const struct timeline *b)
{
    return !memcmp(&a->ctl, &b->ctl, sizeof a->ctl) &&
           !memcmp(&a->out, &b->out, sizeof a->out) &&
           !memcmp(a->counts, b->counts, (size_t)a->ctl.n_vocab * 4);
}

/* Runs t on the device and by the reference; every byte must agree. */
static bool same_as_reference(struct rig *r, const struct timeline *t,
                              struct timeline *got, struct timeline *want)
{
    timeline_copy(got, t);
    timeline_copy(want, t);
    run_device(r, got, 1, true);
    ref_sample(&want->ctl, &want->out, want->logits, want->counts, true);
    if (timeline_equal(got, want))
        return true;
    printf("# n_vocab %u top_k %u 1/T %g top_p %g min_p %g penalties %g %g %g: id %u, "
           "want %u\n",
           t->ctl.n_vocab, t->ctl.top_k, (double)t->ctl.inv_temperature,
           (double)t->ctl.top_p, (double)t->ctl.min_p, (double)t->ctl.repeat_penalty,
           (double)t->ctl.presence_penalty, (double)t->ctl.frequency_penalty,
           got->out.ids[0], want->out.ids[0]);
    return false;
}

static void compare_random(bool greedy, uint32_t rounds)
{
    static const uint32_t sizes[] = { 1,   2,    3,    4,    5,    7,   8,   31,
                                      63,  64,   65,   127,  255,  256, 257, 300,
                                      511, 1000, 1023, 2049, 4097, 8192 };
    enum { N = sizeof sizes / sizeof *sizes };
    struct gpu *gpu = harness_open();
    struct timeline t, got, want;
    timeline_alloc(&t, 8192);
    timeline_alloc(&got, 8192);
    timeline_alloc(&want, 8192);
    struct rng rng = { greedy };
    for (size_t w = 0; w < N_WIDTHS; w++) {
        struct rig rig;
        uint32_t wrong = 0;
        rig_open(&rig, gpu, widths[w]);
        for (uint32_t i = 0; i < rounds * N && wrong < 5; i++) {
            random_case(&rng, &t, sizes[i / rounds], greedy);
            random_logits(&rng, t.logits, t.ctl.n_vocab);
            wrong += !same_as_reference(&rig, &t, &got, &want);
        }
        if (wrong)
            printf("# workgroup of %u\n", widths[w]);
        CHECK(wrong == 0);
        rig_close(&rig);
    }
    timeline_free(&t);
    timeline_free(&got);
    timeline_free(&want);
    harness_close(gpu);
}

static void test_greedy_equals_reference(void)
{
    compare_random(true, 10);
}

static void test_sampling_equals_reference(void)
{
    compare_random(false, 25);
}

/* ---- long vocabularies, lists that do not fit ---------------------------- */

enum shape { ALL_EQUAL, ALL_NEG_INF, STEPS, ONE_GROUP, ONE_BIN, NORMAL, SHAPES };

static void shape_logits(struct rng *rng, enum shape shape, float *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = 0.5f;
        if (shape == ALL_NEG_INF)
            x = -INFINITY;
        if (shape == STEPS) /* 150 above, then ties over the list's end */
            x = i % 2003 == 7 ? 3 : i & 1 ? 2 : 1;
        if (shape == ONE_GROUP) /* the best all fall to the same group */
            x = i / 4 % 1024 == 5 ? 10 + rng_unit(rng) : rng_normal(rng);
        if (shape == ONE_BIN) /* differ in the last bits only */
            x = 1 + (float)(rng_u32(rng) % 64) * FLT_EPSILON;
        if (shape == NORMAL)
            x = rng_normal(rng) * 3;
        v[i] = x;
    }
}

static void test_long_vocabularies(void)
{
    static const uint32_t sizes[] = { 5000, 99999, 248320, MAX_VOCAB };
    struct gpu *gpu = harness_open();
    struct timeline t, got, want;
    timeline_alloc(&t, MAX_VOCAB);
    timeline_alloc(&got, MAX_VOCAB);
    timeline_alloc(&want, MAX_VOCAB);
    struct rng rng = { 99 };
    for (size_t w = 0; w < N_WIDTHS; w++) {
        struct rig rig;
        rig_open(&rig, gpu, widths[w]);
        for (uint32_t i = 0; i < 2 * SHAPES; i++) {
            random_case(&rng, &t, sizes[(i + i / SHAPES + w) % 4], false);
            shape_logits(&rng, i % SHAPES, t.logits, t.ctl.n_vocab);
            t.ctl.top_k = i < SHAPES ? 256 : 1 + rng_u32(&rng) % 256;
            CHECK(same_as_reference(&rig, &t, &got, &want));
        }
        rig_close(&rig);
    }
    timeline_free(&t);
    timeline_free(&got);
    timeline_free(&want);
    harness_close(gpu);
}

/* ---- meaning, without the reference -------------------------------------- */

/* Sets up n logits for one draw at position 0. */
static void begin(struct timeline *t, const float *logits, uint32_t n,
                  const struct sampler_params *p)
{
    struct err err = { "" };
    t->ctl = (struct ctl_block){ .n_tokens = 1, .n_vocab = n };
    t->out = (struct out_block){ 0 };
    HARNESS_OK(sample_configure(&t->ctl, p, &err), &err);
    memcpy(t->logits, logits, n * sizeof *logits);
    memset(t->counts, 0, n * sizeof *t->counts);
}

static uint32_t greedy_id(struct rig *r, const float *logits, uint32_t n)
{
    struct timeline t;
    timeline_alloc(&t, n);
    begin(&t, logits, n, &(struct sampler_params){ .temperature = 0 });
    run_device(r, &t, 1, true);
    timeline_free(&t);
    return t.out.ids[0];
}

static void test_greedy_special_values(void)
{
    struct gpu *gpu = harness_open();
    struct rig rig;
    rig_open(&rig, gpu, 64);
    static const float first_of_equals[] = { 1, 3, 2, 3, 3 };
    static const float not_a_number[] = { NAN, -5, NAN, -4, -NAN };
    static const float infinite[] = { 1, -INFINITY, INFINITY, FLT_MAX, INFINITY };
    static const float nothing[] = { NAN, -INFINITY, NAN };
    static const float zeros[] = { -1, -0.0f, 0.0f };
    static const float lowest[] = { -INFINITY, -FLT_MAX };
    CHECK(greedy_id(&rig, first_of_equals, 5) == 1);
    CHECK(greedy_id(&rig, not_a_number, 5) == 3);
    CHECK(greedy_id(&rig, infinite, 5) == 2);
    CHECK(greedy_id(&rig, nothing, 3) == 0);
    CHECK(greedy_id(&rig, zeros, 3) == 1);
    CHECK(greedy_id(&rig, lowest, 2) == 1);
    rig_close(&rig);
    harness_close(gpu);
}

/* Draws `steps` ids in each of `rounds` submits from unchanging logits, and
 * counts them. Positions go on, so that every draw has its own number. */
static void count_draws(struct rig *r, struct timeline *t, uint32_t rounds,
                        uint32_t *seen)
{
    for (uint32_t i = 0; i < rounds; i++) {
        t->ctl.n_out = 0;
        run_device(r, t, CTL_MAX_IDS, true);
        REQUIRE(t->out.n_out == CTL_MAX_IDS);
        for (uint32_t j = 0; j < CTL_MAX_IDS; j++)
            seen[t->out.ids[j]]++;
    }
}

/* Chi-square of the draws against probabilities p, over n - 1 degrees of
 * freedom; 4.5 standard deviations are allowed. */
static bool fits(const uint32_t *seen, const double *p, uint32_t n, uint32_t draws)
{
    double chi = 0;
    for (uint32_t i = 0; i < n; i++) {
        double want = p[i] * draws;
        chi += (seen[i] - want) * (seen[i] - want) / want;
    }
    double limit = (n - 1) + 4.5 * sqrt(2.0 * (n - 1));
    if (chi > limit)
        printf("# chi-square %.1f over %u, allowed %.1f\n", chi, n - 1, limit);
    return chi <= limit;
}

static void test_frequencies_are_the_probabilities(void)
{
    enum { N = 24, ROUNDS = 120, DRAWS = ROUNDS * CTL_MAX_IDS };
    struct gpu *gpu = harness_open();
    struct rig rig;
    struct timeline t;
    rig_open(&rig, gpu, 64);
    timeline_alloc(&t, N);
    static const float temperatures[] = { 0.7f, 1, 3 };
    for (int k = 0; k < 3; k++) {
        float logits[N];
        double p[N], sum = 0;
        uint32_t seen[N] = { 0 };
        for (int i = 0; i < N; i++) {
            logits[i] = (float)((i * 7) % N) * 0.15f - 2;
            sum += p[i] = exp((double)logits[i] / (double)temperatures[k]);
        }
        for (int i = 0; i < N; i++)
            p[i] /= sum;
        begin(&t, logits, N,
              &(struct sampler_params){ .temperature = temperatures[k],
                                        .seed = 4711 + (uint64_t)k });
        count_draws(&rig, &t, ROUNDS, seen);
        CHECK(fits(seen, p, N, DRAWS));
    }
    timeline_free(&t);
    rig_close(&rig);
    harness_close(gpu);
}

/* Which ids 256 draws from 8 logits can give: bit i for id i. */
static uint32_t support(struct rig *r, const float logits[8],
                        const struct sampler_params *p)
{
    struct timeline t;
    uint32_t seen[8] = { 0 }, bits = 0;
    timeline_alloc(&t, 8);
    begin(&t, logits, 8, p);
    count_draws(r, &t, 256 / CTL_MAX_IDS, seen);
    for (uint32_t i = 0; i < 8; i++)
        bits |= (uint32_t)(seen[i] != 0) << i;
    timeline_free(&t);
    return bits;
}

static void test_cuts(void)
{
    struct gpu *gpu = harness_open();
    struct rig rig;
    rig_open(&rig, gpu, 32);
    const float log2f_ = 0.69314718f;
    /* Probabilities in 16ths: 2 4 2 4 1 1 1 1. */
    float v[8] = { log2f_, 2 * log2f_, log2f_, 2 * log2f_, 0, 0, 0, 0 };
    static const float equal[8] = { 0 };
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1 }) == 0xff);
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1, .top_k = 2 }) ==
          0x0a);
    /* Ties at the last place go to the lower id. */
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1, .top_k = 3 }) ==
          0x0b);
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1, .top_k = 5 }) ==
          0x1f);
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1, .min_p = 0.4f }) ==
          0x0f);
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1, .min_p = 1 }) ==
          0x0a);
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1, .top_p = 0.6f }) ==
          0x0b);
    CHECK(support(&rig, v,
                  &(struct sampler_params){ .temperature = 1, .top_p = 1e-9f }) == 2);
    /* Exactly half of the mass is enough, the next float is not. */
    CHECK(support(&rig, equal,
                  &(struct sampler_params){ .temperature = 1, .top_p = 0.5f }) == 0x0f);
    CHECK(support(&rig, equal,
                  &(struct sampler_params){ .temperature = 1, .top_p = 0.5000001f }) ==
          0x1f);
    /* top_p is of what min_p left: 8 of 12 16ths are 2 / 3. */
    CHECK(support(&rig, v,
                  &(struct sampler_params){
                      .temperature = 1, .min_p = 0.4f, .top_p = 0.66f }) == 0x0a);
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1e-6f }) == 0x0a);
    CHECK(support(&rig, v, &(struct sampler_params){ .temperature = 1e6f }) == 0xff);
    rig_close(&rig);
    harness_close(gpu);
}

/* Equal logits at the last place, more of them than the list of candidates
 * holds: the lowest ids are candidates, all of them, and no other. */
static void test_ties_beyond_the_list(void)
{
    enum { N = 2500, K = 256, ROUNDS = 60 };
    struct gpu *gpu = harness_open();
    struct rig rig;
    struct timeline t;
    rig_open(&rig, gpu, 256);
    timeline_alloc(&t, N);
    for (uint32_t step = 1; step <= 3; step += 2) {
        float logits[N];
        uint32_t seen[N] = { 0 }, wrong = 0;
        for (uint32_t i = 0; i < N; i++)
            logits[i] = i % step == 0 ? 1 : 0;
        begin(&t, logits, N, &(struct sampler_params){ .temperature = 1, .top_k = K });
        count_draws(&rig, &t, ROUNDS, seen);
        for (uint32_t i = 0; i < N; i++)
            wrong += (seen[i] != 0) != (i % step == 0 && i < K * step);
        CHECK(wrong == 0);
    }
    timeline_free(&t);
    rig_close(&rig);
    harness_close(gpu);
}

static void test_penalties(void)
{
    struct gpu *gpu = harness_open();
    struct rig rig;
    rig_open(&rig, gpu, 64);
    struct timeline t;
    timeline_alloc(&t, 4);
    static const struct {
        float logits[4];
        uint32_t counts[4];
        struct sampler_params p;
        uint32_t id;
    } row[] = {
        { { 4, 3, 2, 1 }, { 1, 0, 0, 0 }, { .repeat_penalty = 2 }, 1 },
        { { 4, 3, 2, 1 }, { 9, 0, 0, 0 }, { .repeat_penalty = 1.25f }, 0 },
        { { -4, -3, -5, -9 }, { 0, 1, 0, 0 }, { .repeat_penalty = 2 }, 0 },
        { { 4, 3, 2, 1 }, { 5, 0, 0, 0 }, { .presence_penalty = 1.5f }, 1 },
        { { 4, 3, 2, 1 }, { 5, 0, 0, 0 }, { .presence_penalty = 0.5f }, 0 },
        { { 4, 3, 2, 1 }, { 5, 1, 0, 0 }, { .frequency_penalty = 0.5f }, 1 },
        { { 4, 3, 2, 1 }, { 1, 1, 0, 0 }, { .frequency_penalty = 0.5f }, 0 },
        { { 4, 3, 2, 1 }, { 0, 0, 0, 1 }, { .presence_penalty = -4 }, 3 },
        { { 4, 3, 2, 1 }, { 9, 9, 9, 9 }, { .temperature = 0 }, 0 },
        { { 4, 3, NAN, 1 }, { 1, 1, 1, 0 }, { .presence_penalty = 4 }, 3 },
        { { INFINITY, 3, 2, 1 }, { 1, 1, 1, 0 }, { .repeat_penalty = 9 }, 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        begin(&t, row[i].logits, 4, &row[i].p);
        memcpy(t.counts, row[i].counts, sizeof row[i].counts);
        run_device(&rig, &t, 1, true);
        if (t.out.ids[0] != row[i].id)
            printf("# row %zu: id %u\n", i, t.out.ids[0]);
        CHECK(t.out.ids[0] == row[i].id);
        CHECK(t.counts[row[i].id] == row[i].counts[row[i].id] + 1);
    }
    timeline_free(&t);
    rig_close(&rig);
    harness_close(gpu);
}

/* ---- the control block ---------------------------------------------------- */

static void test_division_into_steps_does_not_matter(void)
{
    enum { N = 500 };
    struct gpu *gpu = harness_open();
    struct rig rig;
    struct timeline t, together, single, want;
    timeline_alloc(&t, N);
    timeline_alloc(&together, N);
    timeline_alloc(&single, N);
    timeline_alloc(&want, N);
    rig_open(&rig, gpu, 64);
    float logits[N];
    struct rng rng = { 5 };
    for (int i = 0; i < N; i++)
        logits[i] = rng_normal(&rng);
    begin(&t, logits, N,
          &(struct sampler_params){
              .temperature = 0.8f, .top_p = 0.9f, .presence_penalty = 0.25f, .seed = 3 });
    timeline_copy(&together, &t);
    timeline_copy(&single, &t);
    timeline_copy(&want, &t);
    run_device(&rig, &together, CTL_MAX_IDS, true);
    for (int i = 0; i < CTL_MAX_IDS; i++) {
        run_device(&rig, &single, 1, true);
        ref_sample(&want.ctl, &want.out, want.logits, want.counts, true);
    }
    CHECK(timeline_equal(&together, &single));
    CHECK(timeline_equal(&together, &want));
    CHECK(together.ctl.pos == CTL_MAX_IDS && together.out.n_out == CTL_MAX_IDS);
    timeline_free(&t);
    timeline_free(&together);
    timeline_free(&single);
    timeline_free(&want);
    rig_close(&rig);
    harness_close(gpu);
}

static void test_end_of_generation_stops(void)
{
    enum { N = 40 };
    struct gpu *gpu = harness_open();
    struct rig rig;
    struct timeline t, before;
    timeline_alloc(&t, N);
    timeline_alloc(&before, N);
    rig_open(&rig, gpu, 64);
    static const float equal[N] = { 0 };
    begin(&t, equal, N, &(struct sampler_params){ .temperature = 1, .seed = 1 });
    t.ctl.n_eog = CTL_MAX_EOG;
    for (uint32_t i = 0; i < CTL_MAX_EOG; i++)
        t.ctl.eog[i] = 5 + 2 * i;
    run_device(&rig, &t, CTL_MAX_IDS, true);
    REQUIRE(t.out.n_out > 0 && t.out.n_out < CTL_MAX_IDS);
    for (uint32_t i = 0; i < t.out.n_out; i++) {
        uint32_t id = t.out.ids[i];
        CHECK((id >= 5 && id <= 35 && id % 2 == 1) == (i == t.out.n_out - 1));
    }
    CHECK(t.out.stop == 1 && t.ctl.stop == 1);
    CHECK(t.ctl.pos == t.out.n_out && t.ctl.tokens[0] == t.out.ids[t.out.n_out - 1]);
    CHECK(t.ctl.side == (t.out.n_out & 1) && t.ctl.n_out == t.out.n_out);
    timeline_copy(&before, &t);
    run_device(&rig, &t, 3, true); /* stopped: nothing changes */
    CHECK(timeline_equal(&t, &before));
    timeline_free(&t);
    timeline_free(&before);
    rig_close(&rig);
    harness_close(gpu);
}

static void test_full_out_block_is_left_alone(void)
{
    struct gpu *gpu = harness_open();
    struct rig rig;
    struct timeline t, before;
    timeline_alloc(&t, 4);
    timeline_alloc(&before, 4);
    rig_open(&rig, gpu, 64);
    static const float v[4] = { 1, 2, 3, 4 };
    begin(&t, v, 4, &(struct sampler_params){ .temperature = 0 });
    run_device(&rig, &t, CTL_MAX_IDS, true);
    CHECK(t.out.n_out == CTL_MAX_IDS && t.out.ids[CTL_MAX_IDS - 1] == 3);
    CHECK(t.counts[3] == CTL_MAX_IDS && t.ctl.pos == CTL_MAX_IDS);
    timeline_copy(&before, &t);
    run_device(&rig, &t, 2, true);
    CHECK(timeline_equal(&t, &before));
    timeline_free(&t);
    timeline_free(&before);
    rig_close(&rig);
    harness_close(gpu);
}

static void test_without_advance_the_pass_stays(void)
{
    struct gpu *gpu = harness_open();
    struct rig rig;
    struct timeline t;
    timeline_alloc(&t, 4);
    rig_open(&rig, gpu, 64);
    static const float v[4] = { 1, 2, 3, 4 };
    begin(&t, v, 4, &(struct sampler_params){ .temperature = 0 });
    t.ctl.pos = 10;
    t.ctl.n_tokens = 7;
    t.ctl.tokens[0] = 1;
    run_device(&rig, &t, 1, false);
    CHECK(t.ctl.pos == 10 && t.ctl.n_tokens == 7 && t.ctl.tokens[0] == 1);
    CHECK(t.ctl.side == 0 && t.out.n_out == 1 && t.out.ids[0] == 3 && t.counts[3] == 1);
    timeline_free(&t);
    rig_close(&rig);
    harness_close(gpu);
}

/* ---- the host's side ------------------------------------------------------ */

/* Known answers of the generator's authors. */
static void test_philox(void)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } row[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { ~0u, ~0u, ~0u, ~0u },
          { ~0u, ~0u },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t got[4];
        ref_philox(got, row[i].counter, row[i].key);
        CHECK(!memcmp(got, row[i].want, sizeof got));
    }
}

static void test_defaults(void)
{
    struct ctl_block ctl = { .pos = 5, .n_vocab = 9, .stop = 1 };
    CHECK(sample_configure(&ctl, &(struct sampler_params){ .temperature = 0 }, NULL) ==
          0);
    CHECK(ctl.top_k == 1 && ctl.inv_temperature == 1 && ctl.top_p == 1 && ctl.min_p == 0);
    CHECK(ctl.repeat_penalty == 1 && ctl.presence_penalty == 0 &&
          ctl.frequency_penalty == 0);
    CHECK(ctl.pos == 5 && ctl.n_vocab == 9 && ctl.stop == 1);
    const struct sampler_params p = { .temperature = 0.5f,
                                      .top_p = 0.25f,
                                      .min_p = 0.125f,
                                      .seed = 0x123456789abcdef0,
                                      .repeat_penalty = 3 };
    CHECK(sample_configure(&ctl, &p, NULL) == 0);
    CHECK(ctl.top_k == SAMPLE_MAX_K && ctl.inv_temperature == 2 && ctl.top_p == 0.25f);
    CHECK(ctl.min_p == 0.125f && ctl.repeat_penalty == 3);
    CHECK(ctl.seed_lo == 0x9abcdef0 && ctl.seed_hi == 0x12345678);
    CHECK(sample_configure(&ctl, &(struct sampler_params){ .temperature = 1e-30f },
                           NULL) == 0);
    CHECK(ctl.inv_temperature > 0 && isfinite(ctl.inv_temperature) && ctl.top_k > 1);
}

static void test_parameters_out_of_range(void)
{
    static const struct {
        const char *name;
        struct sampler_params p;
    } row[] = {
        { "temperature", { .temperature = -1 } },
        { "temperature", { .temperature = NAN } },
        { "temperature", { .temperature = INFINITY } },
        { "top_k", { .temperature = 1, .top_k = SAMPLER_MAX_K + 1 } },
        { "top_p", { .top_p = 1.01f } },
        { "top_p", { .top_p = -0.1f } },
        { "min_p", { .min_p = NAN } },
        { "min_p", { .min_p = 2 } },
        { "repeat_penalty", { .repeat_penalty = -1 } },
        { "repeat_penalty", { .repeat_penalty = INFINITY } },
        { "presence_penalty", { .presence_penalty = NAN } },
        { "frequency_penalty", { .frequency_penalty = -INFINITY } },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct err err = { "" };
        struct ctl_block ctl = { .top_k = 77 }, before = ctl;
        CHECK(sample_configure(&ctl, &row[i].p, &err) == -1);
        CHECK(strstr(err.text, row[i].name) == err.text);
        CHECK(!memcmp(&ctl, &before, sizeof ctl));
    }
}

TEST_MAIN(T(test_philox), T(test_defaults), T(test_parameters_out_of_range),
          T(test_greedy_special_values), T(test_greedy_equals_reference),
          T(test_sampling_equals_reference), T(test_long_vocabularies),
          T(test_frequencies_are_the_probabilities), T(test_cuts),
          T(test_ties_beyond_the_list), T(test_penalties),
          T(test_division_into_steps_does_not_matter), T(test_end_of_generation_stops),
          T(test_full_out_block_is_left_alone), T(test_without_advance_the_pass_stays))
