/* selftest_products.c - matrix products and embeddings: every format that the
 * device computes with, in both kinds of arithmetic. */
#include "engine/selftest_rig.h"

#include "base/mem.h"
#include "engine/ref_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, COLS = 512 /* two blocks of the longest format */ };

/* ---- products ----------------------------------------------------------------- */

struct job {
    enum device_format format;
    enum epilogue epilogue;
    uint32_t tokens;
    bool int8;
};

/* The values of a result, as the reference has them: [tokens][n]. */
static float *wanted(const struct job *j, enum quant type, const uint8_t *w,
                     const struct vectors *in, const float *stream)
{
    const struct ref_matrix m = { type, w, ROWS, COLS };
    enum ref_norm norm = j->epilogue == EPILOGUE_RESIDUAL ? REF_NORM_NONE : REF_NORM_ROW;
    size_t n = j->epilogue == EPILOGUE_SWIGLU ? ROWS / 2 : ROWS;
    float *want = mem_array(j->tokens * n, sizeof *want), y[ROWS];
    for (uint32_t t = 0; t < j->tokens; t++) {
        float *to = want + t * n;
        ref_product(&m, &in->host[t], j->int8, norm, 1e-6f, y);
        for (size_t i = 0; i < n; i++) /* rows: 32 of gate, then 32 of up */
            to[i] = j->epilogue == EPILOGUE_RESIDUAL ? stream[t * n + i] + y[i]
                    : j->epilogue == EPILOGUE_STORE
                        ? y[i]
                        : (float)(y[i] / (1 + exp(-(double)y[i])) * y[i + n]);
    }
    return want;
}

static bool in_tiles(const struct rig *r)
{
    return forward_tiles(&r->rec);
}

static const char *name_of(const struct rig *r, const struct job *j)
{
    if (in_tiles(r))
        return kernel_tile_module(j->format, r->engine.tiles == TILES_MATRIX, j->epilogue)
            ->name;
    return kernel_product_module(j->format, j->int8, j->epilogue)->name;
}

static void product_check(struct rig *r, const struct job *j, const struct planes *made,
                          const struct gpu_buffer *out, const float *want)
{
    size_t n = j->tokens * (j->epilogue == EPILOGUE_SWIGLU ? ROWS / 2 : ROWS);
    double exact = in_tiles(r) ? 4e-3 : 2e-4;
    if (j->epilogue != EPILOGUE_SWIGLU) {
        float *got = mem_array(n, sizeof *got);
        rig_read(r, out, got, n * 4);
        rig_compare(r, name_of(r, j), got, want, n, exact);
        free(got);
    }
    if (j->epilogue != EPILOGUE_STORE) {
        float *got = rig_planes(r, made, n, j->int8);
        rig_compare(r, name_of(r, j), got, want, n, exact + (j->int8 ? 0.08 : 0));
        free(got);
    }
}

static void product_test(struct rig *r, const struct job *j)
{
    enum quant type = rig_quant(j->format);
    struct vectors in;
    struct matrix m;
    struct planes made = { 0 };
    struct gpu_buffer out = { 0 };
    rig_begin(r, j->tokens);
    r->engine.int8 = j->int8;
    uint8_t *w = rig_weights(r, type, ROWS, COLS);
    float *stream = rig_values(r, (size_t)j->tokens * ROWS, 2), ones[ROWS];
    const struct tensor t = rig_tensor(type, w, ROWS, COLS);
    const struct pack_source source = { .parts = { &t }, .n_parts = 1 };
    for (int i = 0; i < ROWS; i++)
        ones[i] = 1;
    vectors_make(&in, r, COLS, j->tokens, j->int8);
    vectors_upload(&in, r, &r->session.scratch.input);
    /* Tiles read and write whole ones. */
    uint64_t room = (uint64_t)(j->tokens + 256) * (ROWS + COLS) * 4;
    uint8_t *zeros = mem_zalloc(room);
    r->session.scratch.parts = rig_buffer(r, zeros, room);
    r->session.scratch.halves = rig_buffer(r, NULL, room);
    r->session.scratch.factors = rig_buffer(r, NULL, (j->tokens + 256) * 4);
    made = (struct planes){ rig_buffer(r, NULL, room), rig_buffer(r, NULL, room),
                            rig_buffer(r, NULL, room) };
    out = rig_buffer(r, j->epilogue == EPILOGUE_RESIDUAL ? stream : NULL,
                     (uint64_t)j->tokens * ROWS * 4);
    if (r->rc == 0)
        r->rc = pack_matrix(&m, &r->arena, &source, r->err);
    struct product p = { .m = &m,
                         .in = &r->session.scratch.input,
                         .next = &made,
                         .norm = j->epilogue == EPILOGUE_RESIDUAL ? NORM_NONE : NORM_ROW,
                         .epilogue = j->epilogue,
                         .out = gpu_span_all(&out),
                         .next_norm = rig_span(r, ones, sizeof ones),
                         .out_stride = ROWS };
    if (r->rc == 0)
        r->rc = forward_product(&r->rec, &p);
    rig_run(r);
    float *want = wanted(j, type, w, &in, stream);
    product_check(r, j, &made, &out, want);
    void *owned[] = { w, stream, zeros, want };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    vectors_release(&in);
}

/* ---- embeddings ---------------------------------------------------------------- */

static void embed_test(struct rig *r, enum device_format f)
{
    enum { TOKENS = 2 };
    enum quant type = rig_quant(f);
    const struct gpu_module *module = kernel_embed_module(f);
    struct matrix m;
    struct planes made = { 0 };
    float want[TOKENS * COLS], got[TOKENS * COLS], ones[COLS];
    rig_begin(r, TOKENS);
    uint8_t *w = rig_weights(r, type, ROWS, COLS);
    const struct tensor t = rig_tensor(type, w, ROWS, COLS);
    const struct pack_source source = { .parts = { &t }, .n_parts = 1 };
    const struct ctl_block ctl = { .n_tokens = TOKENS, .tokens = { 3, ROWS - 1 } };
    for (int i = 0; i < COLS; i++)
        ones[i] = 1;
    for (int i = 0; i < TOKENS; i++)
        quant_dequantize(type, w + ctl.tokens[i] * quant_bytes(type, COLS), COLS,
                         want + i * COLS);
    r->session.ctl = rig_buffer(r, &ctl, sizeof ctl);
    struct gpu_buffer out = rig_buffer(r, NULL, sizeof want);
    made = (struct planes){ rig_buffer(r, NULL, sizeof want),
                            rig_buffer(r, NULL, sizeof want),
                            rig_buffer(r, NULL, sizeof want) };
    if (r->rc == 0)
        r->rc = pack_matrix(&m, &r->arena, &source, r->err);
    if (r->rc == 0) {
        struct push_embed push = { .cols = COLS, .units = m.units };
        uint32_t spec[] = { r->engine.tune.embed_size, false };
        struct gpu_dispatch d = { .bind = { [1] = m.codes,
                                            [2] = m.scales,
                                            [3] = gpu_span_all(&out),
                                            [7] = rig_span(r, ones, sizeof ones) },
                                  .push = &push,
                                  .groups = { 1, TOKENS, 1 } };
        forward_bind_planes(&d, 4, &made);
        r->rc = forward_dispatch(&r->rec, &d, module, spec, 2);
    }
    rig_run(r);
    rig_read(r, &out, got, sizeof got);
    rig_compare(r, module->name, got, want, TOKENS * COLS, 1e-6);
    free(w);
}

/* ---- all ------------------------------------------------------------------------ */

/* Epilogues are tested with every format of a model, but of all formats only with
 * some: what they do does not hang on the format. */
static bool fused_too(const struct rig *r, enum device_format f)
{
    return r->scope->formats != UINT32_MAX || f == FORMAT_F16 || f == FORMAT_Q8_0 ||
           f == FORMAT_Q2_0 || f == FORMAT_Q4_K;
}

static void format_test(struct rig *r, enum device_format f, bool int8)
{
    const bool tiles = r->engine.tiles != TILES_NONE, fused = fused_too(r, f);
    const uint32_t many = tiles ? r->engine.tune.tile_from + 1 : 3;
    for (int e = 0; e < EPILOGUE_COUNT; e++) {
        if (e == EPILOGUE_STORE || fused)
            product_test(r, &(struct job){ f, (enum epilogue)e, 1, int8 });
        if (fused || (e == EPILOGUE_STORE && tiles))
            product_test(r, &(struct job){ f, (enum epilogue)e, many, int8 });
    }
}

void selftest_products(struct rig *r)
{
    for (int f = 0; f < FORMAT_COUNT; f++) {
        if (!(r->scope->formats >> f & 1))
            continue;
        if (r->scope->floats)
            format_test(r, (enum device_format)f, false);
        if (r->scope->int8)
            format_test(r, (enum device_format)f, true);
        embed_test(r, (enum device_format)f);
    }
}
