/* test_rotate.c - the Walsh-Hadamard transform, and the kernel from each source
 * against it. */
#include "engine/kernel.h"
#include "engine/ref.h"
#include "engine/ref_product.h"
#include "tests/engine/blocks.h"
#include "tests/engine/harness.h"

enum { WIDE = 1024 };

/* ---- the transform ------------------------------------------------------- */

static void test_transform(void)
{
    static const double want[8] = {
        12.727922061, -1.414213562, -2.828427125, 0, -5.656854249, 0, 0, 0
    };
    double x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, y[8], back[8];
    ref_hadamard(x, 8, y);
    for (int i = 0; i < 8; i++)
        CHECK(fabs(y[i] - want[i]) < 1e-8);
    ref_hadamard(y, 8, back);
    for (int i = 0; i < 8; i++)
        CHECK(fabs(back[i] - x[i]) < 1e-12);
}

/* ---- the kernel ---------------------------------------------------------- */

enum { TOKENS_RUN = 3, COLS = 2 * WIDE, N_K = 2, N_V = COLS / STATE_DIM };

struct rotate_case {
    uint32_t source;
    bool int8, regroup, unrotate;
};

/* Everything that the kernel may read. */
struct rotate_data {
    float source[TOKENS_RUN * 2 * COLS], norm[COLS], signs[COLS];
    float squares[TOKENS_RUN * COLS / ACT_BLOCK];
};

static struct rotate_data *random_data(void)
{
    struct rotate_data *d = mem_zalloc(sizeof *d);
    uint32_t noise = 5;
    for (size_t i = 0; i < sizeof d->source / sizeof *d->source; i++)
        d->source[i] = 2 * block_value(&noise);
    for (size_t i = 0; i < COLS; i++) {
        d->norm[i] = 1 + 0.3f * block_value(&noise);
        d->signs[i] = block_value(&noise) < 0 ? -1 : 1;
    }
    for (size_t i = 0; i < sizeof d->squares / sizeof *d->squares; i++)
        d->squares[i] = 20 + 10 * block_value(&noise);
    return d;
}

/* A column of what is to be rotated. */
static double column(const struct rotate_case *c, const struct rotate_data *d, size_t t,
                     size_t i)
{
    if (c->source == ROTATE_SWIGLU) {
        const float *gate = d->source + t * 2 * COLS + i / 32 * 64 + i % 32;
        return gate[0] / (1 + exp(-(double)gate[0])) * gate[32];
    }
    if (c->regroup) {
        size_t head = i / STATE_DIM, each = N_V / N_K;
        i = (head % each * N_K + head / each) * STATE_DIM + i % STATE_DIM;
    }
    double v = d->source[t * COLS + i];
    if (c->source == ROTATE_STREAM)
        return v * d->norm[i];
    if (c->source != ROTATE_HEADS)
        return v;
    const float *squares = d->squares + (t * COLS + i / STATE_DIM * STATE_DIM) / 32;
    double sum = (double)squares[0] + squares[1] + squares[2] + squares[3];
    return v / sqrt(sum / STATE_DIM + 1e-6);
}

/* The rotated vector of a token; for unrotate, the embedding. */
static void rotated(const struct rotate_case *c, const struct rotate_data *d, size_t t,
                    float *out)
{
    for (size_t first = 0; first < COLS; first += WIDE) {
        double in[WIDE], made[WIDE];
        for (size_t i = 0; i < WIDE; i++)
            in[i] = c->unrotate ? d->source[t * COLS + first + i]
                                : column(c, d, t, first + i) * d->signs[first + i];
        ref_hadamard(in, WIDE, made);
        for (size_t i = 0; i < WIDE; i++)
            out[first + i] = (float)(made[i] * (c->unrotate ? d->signs[first + i] : 1));
    }
}

static void check_planes(const struct rotate_case *c, const struct rotate_data *d,
                         size_t t, const struct ref_planes *got)
{
    float want[COLS], squares[COLS / 32], values[COLS];
    rotated(c, d, t, want);
    for (size_t b = 0; b < COLS / 32; b++) {
        float amax = 0;
        squares[b] = 0;
        for (size_t i = b * 32; i < b * 32 + 32; i++) {
            float w = c->unrotate ? d->norm[i] : 1;
            squares[b] += want[i] * want[i];
            amax = fmaxf(amax, fabsf(want[i] * w));
            values[i] = c->int8 ? got->q[i] * got->s[2 * b] : got->f[i];
        }
        for (size_t i = b * 32; i < b * 32 + 32; i++) {
            float w = c->unrotate ? d->norm[i] : 1;
            float most = c->int8 ? 0.502f * amax / 127 : 1e-5f;
            CHECK(fabsf(values[i] - want[i] * w) <= most);
        }
        if (c->source == ROTATE_STREAM && !c->unrotate)
            squares[b] = d->squares[t * (COLS / 32) + b];
    }
    CHECK(harness_near(got->ss, squares, COLS / 32, 1e-5));
}

static void rotate_run(struct gpu *gpu, const struct rotate_case *c)
{
    enum { CTL, SOURCE, NORM, SIGNS, X, S, SS, SQUARES, BUFFERS };
    struct rotate_data *d = random_data();
    struct ctl_block ctl = { .n_tokens = TOKENS_RUN };
    struct push_rotate push = { .cols = COLS, .eps = 1e-6f };
    if (c->regroup)
        push = (struct push_rotate){ COLS, 1e-6f, N_K, N_V };
    const size_t x_bytes = TOKENS_RUN * COLS * 4, ss_bytes = x_bytes / 32;
    struct gpu_buffer b[BUFFERS] = { harness_buffer(gpu, &ctl, sizeof ctl),
                                     harness_buffer(gpu, d->source, sizeof d->source),
                                     harness_buffer(gpu, d->norm, sizeof d->norm),
                                     harness_buffer(gpu, d->signs, sizeof d->signs),
                                     harness_buffer(gpu, NULL, x_bytes),
                                     harness_buffer(gpu, NULL, 2 * ss_bytes),
                                     harness_buffer(gpu, NULL, ss_bytes),
                                     harness_buffer(gpu, d->squares, sizeof d->squares) };
    struct harness_job job = {
        .module = kernel_module(c->unrotate ? KERNEL_UNROTATE : KERNEL_ROTATE),
        .spec = { 64, c->int8, c->source },
        .n_spec = 3,
        .push = &push,
        .groups = { COLS / WIDE, TOKENS_RUN + 1, 1 } /* one token too many */
    };
    for (int i = 0; i < BUFFERS; i++)
        job.buffers[i] = &b[i];
    harness_run(gpu, &job);
    void *x = mem_alloc(x_bytes);
    float *s = mem_alloc(2 * ss_bytes), *ss = mem_alloc(ss_bytes);
    harness_read(gpu, &b[X], x, x_bytes);
    harness_read(gpu, &b[S], s, 2 * ss_bytes);
    harness_read(gpu, &b[SS], ss, ss_bytes);
    for (size_t t = 0; t < TOKENS_RUN; t++) {
        const struct ref_planes got = { (int8_t *)x + t * COLS, (float *)x + t * COLS,
                                        s + t * COLS / 16, ss + t * COLS / 32 };
        check_planes(c, d, t, &got);
    }
    if (c->unrotate) { /* the stream itself has changed, too */
        float want[COLS], *stream = mem_alloc(sizeof want);
        rotated(c, d, 1, want);
        struct err err = { "" };
        HARNESS_OK(
            gpu_download(gpu, stream, gpu_span_at(&b[SOURCE], COLS * 4, COLS * 4), &err),
            &err);
        CHECK(harness_near(stream, want, COLS, 1e-5));
        free(stream);
    }
    for (int i = 0; i < BUFFERS; i++)
        gpu_buffer_close(&b[i], gpu);
    free(x);
    free(s);
    free(ss);
    free(d);
}

static void test_kernel(void)
{
    static const struct rotate_case cases[] = {
        { .source = ROTATE_STREAM },
        { .source = ROTATE_STREAM, .int8 = true },
        { .source = ROTATE_FLOATS, .int8 = true },
        { .source = ROTATE_HEADS },
        { .source = ROTATE_HEADS, .regroup = true, .int8 = true },
        { .source = ROTATE_SWIGLU },
        { .unrotate = true },
        { .unrotate = true, .int8 = true },
    };
    struct gpu *gpu = harness_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        rotate_run(gpu, &cases[i]);
    harness_close(gpu);
}

TEST_MAIN(T(test_transform), T(test_kernel))
