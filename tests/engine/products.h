/* products.h - weights of every format and activation planes for tests of
 * products, and checks of planes that kernels wrote. */
#ifndef TESTS_ENGINE_PRODUCTS_H
#define TESTS_ENGINE_PRODUCTS_H

#include "engine/ref_product.h"
#include "tests/engine/blocks.h"
#include "tests/engine/harness.h"

#include <stdlib.h>

enum { MAX_TOKENS = 32 };

static uint32_t random_state = 1;

static inline uint32_t random_bits(void)
{
    return block_noise(&random_state);
}

static inline float random_value(void)
{
    return block_value(&random_state);
}

/* Rows of random blocks with sane scales, in file format. */
static inline uint8_t *random_weights(enum quant type, size_t rows, size_t cols)
{
    return blocks_random(type, rows * cols, 1, &random_state);
}

/* Host and device copies of a job's activations. */
struct acts {
    size_t n;
    float *v, *w;
    struct ref_planes planes[MAX_TOKENS];
    struct gpu_buffer x, s, ss;
};

static inline struct ref_planes planes_alloc(size_t n)
{
    return (struct ref_planes){ mem_zalloc(n), mem_zalloc(n * 4), mem_zalloc(n / 4),
                                mem_zalloc(n / 8) };
}

static inline void planes_free(struct ref_planes *p)
{
    free(p->q);
    free(p->f);
    free(p->s);
    free(p->ss);
}

static inline void acts_make(struct acts *a, struct gpu *gpu, size_t n, uint32_t tokens,
                             bool int8)
{
    REQUIRE(tokens <= MAX_TOKENS);
    a->n = n;
    a->v = mem_array(n * tokens, sizeof *a->v);
    a->w = mem_array(n, sizeof *a->w);
    for (size_t i = 0; i < n; i++)
        a->w[i] = 1.0f + 0.5f * random_value();
    size_t x_bytes = int8 ? n : 4 * n;
    uint8_t *x = mem_alloc(tokens * x_bytes), *s = mem_alloc(tokens * n / 4),
            *ss = mem_alloc(tokens * n / 8);
    for (uint32_t t = 0; t < tokens; t++) {
        for (size_t i = 0; i < n; i++)
            a->v[t * n + i] = t % 3 == 2 && i < 32 ? 0 : 3.0f * random_value();
        a->planes[t] = planes_alloc(n);
        ref_planes(a->v + t * n, a->w, n, int8, &a->planes[t]);
        memcpy(x + t * x_bytes, int8 ? (void *)a->planes[t].q : (void *)a->planes[t].f,
               x_bytes);
        memcpy(s + t * n / 4, a->planes[t].s, n / 4);
        memcpy(ss + t * n / 8, a->planes[t].ss, n / 8);
    }
    a->x = harness_buffer(gpu, x, tokens * x_bytes);
    a->s = harness_buffer(gpu, s, tokens * n / 4);
    a->ss = harness_buffer(gpu, ss, tokens * n / 8);
    free(x);
    free(s);
    free(ss);
}

static inline void acts_free(struct acts *a, struct gpu *gpu, uint32_t tokens)
{
    for (uint32_t t = 0; t < tokens; t++)
        planes_free(&a->planes[t]);
    free(a->v);
    free(a->w);
    gpu_buffer_close(&a->x, gpu);
    gpu_buffer_close(&a->s, gpu);
    gpu_buffer_close(&a->ss, gpu);
}

/* What planes of n values a token should hold: values[t][n] * w, for `written`
 * of the `tokens` that there is room for; w NULL: ones. */
struct planes_want {
    uint32_t tokens, written;
    size_t n;
    bool int8;
    double slack; /* error that the values may have, relative to the largest */
    const float *values, *w;
};

/* Planes as read back; int8 values become floats. */
static inline void check_planes(struct gpu *gpu, const struct gpu_buffer next[3],
                                const struct planes_want *p)
{
    const size_t n = p->n;
    const uint32_t tokens = p->tokens, written = p->written;
    const bool int8 = p->int8;
    const float *values = p->values, *w = p->w;
    const double tol = 1e-4 + p->slack;
    uint8_t *x = mem_alloc(tokens * n * 4);
    float *s = mem_alloc(tokens * n / 4), *ss = mem_alloc(tokens * n / 8);
    harness_read(gpu, &next[0], x, tokens * n * (int8 ? 1 : 4));
    harness_read(gpu, &next[1], s, tokens * n / 4);
    harness_read(gpu, &next[2], ss, tokens * n / 8);
    struct ref_planes want = planes_alloc(n);
    float *got = mem_array(n, sizeof *got), *exact = mem_array(n, sizeof *exact);
    for (uint32_t t = 0; t < written; t++) {
        ref_planes(values + t * n, w, n, int8, &want);
        for (size_t i = 0; i < n; i++) {
            size_t at = t * n + i;
            exact[i] = values[at] * (w ? w[i] : 1);
            got[i] =
                int8 ? (float)(int8_t)x[at] * s[at / 32 * 2] : ((float *)(void *)x)[at];
            if (int8) /* off by at most half a step of the block, beside that */
                CHECK(fabs((double)got[i] - exact[i]) <=
                      (0.502 + 127 * p->slack) * s[at / 32 * 2] + 1e-6);
        }
        if (!int8)
            CHECK(harness_near(got, exact, n, tol));
        CHECK(harness_near(ss + t * n / 32, want.ss, n / 32, tol));
        for (size_t b = 0; int8 && b < n / 32; b++) {
            int sum = 0;
            for (size_t i = 0; i < 32; i++)
                sum += (int8_t)x[t * n + b * 32 + i];
            const float *pair = s + (t * n / 32 + b) * 2;
            CHECK(fabsf(pair[1] - pair[0] * (float)sum) <= 1e-4f * (1 + fabsf(pair[1])));
            CHECK(fabs((double)pair[0] - want.s[2 * b]) <= tol * want.s[2 * b] + 1e-9);
        }
    }
    free(got);
    free(exact);
    planes_free(&want);
    free(x);
    free(s);
    free(ss);
}

#endif
