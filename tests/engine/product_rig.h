/* product_rig.h - one product on the device beside the C reference: weights,
 * activations, what an epilogue needs, and the check of what it wrote. */
#ifndef TESTS_ENGINE_PRODUCT_RIG_H
#define TESTS_ENGINE_PRODUCT_RIG_H

#include "engine/pack.h"
#include "tests/engine/products.h"

struct shape {
    size_t rows, cols;
    uint32_t tokens, grid_tokens; /* that there are, that there is room for */
};

struct setup {
    enum device_format format;
    enum quant type;
    bool int8;
    enum epilogue epilogue;
    enum ref_norm norm;
    struct shape shape;
    uint32_t size, lanes, batch, per_group;
    uint32_t split, each; /* 0: 1 */
};

/* The weights of a job as one or two tensors, and the matrix on the device. */
struct weights_pair {
    uint8_t *data[2];
    struct tensor tensors[2];
    struct arena arena;
    struct matrix m;
};

static inline void weights_make(struct weights_pair *w, struct gpu *gpu,
                                const struct setup *u)
{
    bool two = u->epilogue == EPILOGUE_SWIGLU;
    struct pack_source src = { .n_parts = two ? 2 : 1, .interleave = two };
    for (int i = 0; i < (two ? 2 : 1); i++) {
        size_t rows = u->shape.rows / (two ? 2 : 1);
        w->data[i] = random_weights(u->type, rows, u->shape.cols);
        w->tensors[i] = tensor_of(u->type, w->data[i], rows, u->shape.cols);
        src.parts[i] = &w->tensors[i];
    }
    struct err err = { "" };
    arena_init(&w->arena, gpu, pack_matrix_bytes(&src));
    HARNESS_OK(pack_matrix(&w->m, &w->arena, &src, &err), &err);
    CHECK(w->m.format == u->format && w->m.rows == u->shape.rows);
}

static inline void reference(const struct setup *u, const struct weights_pair *w,
                             const struct ref_planes *act, float *y)
{
    size_t half = u->shape.rows / 2;
    if (u->epilogue != EPILOGUE_SWIGLU) {
        ref_product(
            &(struct ref_matrix){ u->type, w->data[0], u->shape.rows, u->shape.cols },
            act, u->int8, u->norm, 1e-6f, y);
        return;
    }
    float *gate = mem_array(half, sizeof *gate), *up = mem_array(half, sizeof *up);
    ref_product(&(struct ref_matrix){ u->type, w->data[0], half, u->shape.cols }, act,
                u->int8, u->norm, 1e-6f, gate);
    ref_product(&(struct ref_matrix){ u->type, w->data[1], half, u->shape.cols }, act,
                u->int8, u->norm, 1e-6f, up);
    for (size_t i = 0; i < half; i++)
        y[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
    free(gate);
    free(up);
}

/* Everything that a product is bound to. Results of STORE have a stride of
 * their own and start at an offset. */
struct rig {
    struct gpu *gpu;
    const struct setup *u;
    size_t n_out, stride, offset;
    struct acts a;
    struct weights_pair w;
    float *start, *norm;
    struct gpu_buffer ctl, out, norms, next[3], parts;
    struct push_product push;
};

static inline void rig_open(struct rig *r, struct gpu *gpu, const struct setup *u)
{
    const uint32_t grid = u->shape.grid_tokens;
    const size_t rows = u->shape.rows;
    *r = (struct rig){ .gpu = gpu, .u = u, .stride = rows + 5, .offset = 3 };
    r->n_out = u->epilogue == EPILOGUE_SWIGLU ? rows / 2 : rows;
    acts_make(&r->a, gpu, u->shape.cols, grid, u->int8);
    weights_make(&r->w, gpu, u);
    r->start = mem_zalloc(grid * r->stride * 4);
    r->norm = mem_array(r->n_out, 4);
    for (size_t i = 0; i < grid * r->stride; i++)
        r->start[i] = 2.0f * random_value();
    for (size_t i = 0; i < r->n_out; i++)
        r->norm[i] = 1.0f + 0.25f * random_value();
    struct ctl_block ctl = { .n_tokens = u->shape.tokens };
    r->ctl = harness_buffer(gpu, &ctl, sizeof ctl);
    r->out = harness_buffer(gpu, r->start, grid * r->stride * 4);
    r->norms = harness_buffer(gpu, r->norm, r->n_out * 4);
    r->next[0] = harness_buffer(gpu, NULL, grid * r->n_out * 4 + 16);
    r->next[1] = harness_buffer(gpu, NULL, grid * r->n_out / 4 + 16);
    r->next[2] = harness_buffer(gpu, NULL, grid * r->n_out / 8 + 16);
    r->parts = harness_buffer(gpu, NULL, (rows + 256) * (SPLIT_MAX + 1) * 4);
    r->push = (struct push_product){ .rows = (uint32_t)rows,
                                     .cols = (uint32_t)u->shape.cols,
                                     .units = r->w.m.units,
                                     .eps = 1e-6f,
                                     .out_stride = (uint32_t)r->stride,
                                     .out_offset = (uint32_t)r->offset };
}

/* Binds weights, and from binding `at` on what the epilogue writes. */
static inline void rig_bind(struct rig *r, struct harness_job *job, uint32_t at)
{
    job->buffers[0] = &r->ctl;
    job->spans[1] = r->w.m.codes;
    job->spans[2] = r->w.m.scales;
    job->push = &r->push;
    if (r->u->epilogue != EPILOGUE_SWIGLU)
        job->buffers[at++] = &r->out;
    for (int i = 0; r->u->epilogue != EPILOGUE_STORE && i < 3; i++)
        job->buffers[at++] = &r->next[i];
    if (r->u->epilogue == EPILOGUE_RESIDUAL)
        job->buffers[at++] = &r->norms;
    if (at == 11)
        job->buffers[at] = &r->parts;
}

/* Compares what was written with the reference, and what was not with what was
 * there before. tol: relative to the result and to the rms of all. */
static inline void rig_check(struct rig *r, double tol)
{
    const struct setup *u = r->u;
    const uint32_t grid = u->shape.grid_tokens, tokens = u->shape.tokens;
    const size_t rows = u->shape.rows, n = grid * r->stride;
    float *got = mem_zalloc(n * 4), *want = mem_zalloc(n * 4);
    float *values = mem_zalloc(grid * r->n_out * 4);
    memcpy(want, r->start, n * 4);
    for (uint32_t t = 0; t < tokens; t++) {
        float *y = values + t * r->n_out;
        reference(u, &r->w, &r->a.planes[t], y);
        if (u->epilogue == EPILOGUE_STORE)
            memcpy(want + t * r->stride + r->offset, y, rows * 4);
        for (size_t i = 0; u->epilogue == EPILOGUE_RESIDUAL && i < rows; i++)
            y[i] = want[t * rows + i] += y[i];
    }
    harness_read(r->gpu, &r->out, got, n * 4);
    CHECK(harness_near(got, want, n, tol));
    if (u->epilogue != EPILOGUE_STORE)
        check_planes(r->gpu, r->next,
                     &(struct planes_want){
                         .tokens = grid,
                         .written = tokens,
                         .n = r->n_out,
                         .int8 = u->int8,
                         .slack = tol - 1e-4,
                         .values = values,
                         .w = u->epilogue == EPILOGUE_RESIDUAL ? r->norm : NULL });
    free(got);
    free(want);
    free(values);
}

static inline void rig_close(struct rig *r)
{
    struct gpu_buffer *all[] = { &r->ctl,     &r->out,     &r->norms, &r->next[0],
                                 &r->next[1], &r->next[2], &r->parts };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gpu_buffer_close(all[i], r->gpu);
    acts_free(&r->a, r->gpu, r->u->shape.grid_tokens);
    arena_release(&r->w.arena);
    free(r->w.data[0]);
    free(r->w.data[1]);
    free(r->start);
    free(r->norm);
}

#define QUANT_OF(id, name) QUANT_##id,
static const enum quant quants[] = { DEVICE_FORMATS(QUANT_OF) };

#endif
