/* selftest_data.c - inputs of products: weights of every format, and activation
 * planes; and planes that kernels made. */
#include "engine/selftest_rig.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 10000, BLOCKS = 64 };

/* A block whose values are neither lost nor huge: most random ones are, and only
 * the format's decoder knows which. */
static void block_make(struct rig *r, enum quant type, uint8_t *block)
{
    const struct quant_format *f = quant_format(type);
    float v[256];
    for (int tries = 0; tries < TRIES; tries++) {
        float most = 0;
        for (uint32_t i = 0; i < f->bytes; i++)
            block[i] = (uint8_t)(128 + 128 * rig_value(r));
        f->decode(block, v);
        for (uint32_t i = 0; i < f->elements; i++)
            most = isfinite(v[i]) ? fmaxf(most, fabsf(v[i])) : INFINITY;
        if (most > 0.02f && most < 4)
            return;
    }
}

uint8_t *rig_weights(struct rig *r, enum quant type, size_t rows, size_t cols)
{
    const size_t block = quant_format(type)->bytes;
    const size_t row = quant_bytes(type, cols) / block;
    uint8_t *w = mem_alloc(rows * row * block);
    for (size_t i = 0; i < rows * row; i++)
        if (i < BLOCKS)
            block_make(r, type, w + i * block);
        else /* blocks that were made, in an order that differs from row to row */
            memcpy(w + i * block, w + (i * 7 + i / row) % BLOCKS * block, block);
    return w;
}

struct tensor rig_tensor(enum quant type, const uint8_t *data, size_t rows, size_t cols)
{
    return (struct tensor){ .name = "self-test",
                            .type = type,
                            .n_dims = 2,
                            .ne = { cols, rows, 1, 1 },
                            .n_elements = rows * cols,
                            .bytes = rows * quant_bytes(type, cols),
                            .data = data };
}

enum quant rig_quant(enum device_format f)
{
    for (int q = 0; q < QUANT_COUNT; q++) {
        struct tensor t = { .type = (enum quant)q };
        struct pack_source s = { .parts = { &t }, .n_parts = 1 };
        if (quant_format((enum quant)q)->runs && pack_format(&s) == f)
            return (enum quant)q;
    }
    return QUANT_F32;
}

/* ---- activations -------------------------------------------------------------- */

void vectors_make(struct vectors *v, struct rig *r, size_t n, uint32_t tokens, bool int8)
{
    size_t bytes = int8 ? n : 4 * n;
    *v = (struct vectors){ .n = n, .tokens = tokens, .int8 = int8 };
    v->values = rig_values(r, n * tokens, 3);
    v->host = mem_array(tokens, sizeof *v->host);
    v->x = mem_alloc(tokens * bytes);
    v->s = mem_zalloc(tokens * n / 4);
    v->ss = mem_alloc(tokens * n / 8);
    for (uint32_t t = 0; t < tokens; t++) {
        v->host[t] = (struct ref_planes){ (int8_t *)(v->x + t * bytes),
                                          (float *)(void *)(v->x + t * bytes),
                                          v->s + t * n / 16, v->ss + t * n / 32 };
        ref_planes(v->values + t * n, NULL, n, int8, &v->host[t]);
    }
}

void vectors_release(struct vectors *v)
{
    free(v->values);
    free(v->host);
    free(v->x);
    free(v->s);
    free(v->ss);
}

void vectors_upload(const struct vectors *v, struct rig *r, struct planes *to)
{
    to->x = rig_buffer(r, v->x, v->tokens * v->n * (v->int8 ? 1 : 4));
    to->s = rig_buffer(r, v->s, v->tokens * v->n / 4);
    to->ss = rig_buffer(r, v->ss, v->tokens * v->n / 8);
}

float *rig_planes(struct rig *r, const struct planes *p, size_t n, bool int8)
{
    float *v = mem_array(n, sizeof *v), *s = mem_array(n / 16, sizeof *s);
    int8_t *q = mem_alloc(n);
    if (int8) {
        rig_read(r, &p->x, q, n);
        rig_read(r, &p->s, s, n / 4);
        for (size_t i = 0; i < n; i++)
            v[i] = (float)q[i] * s[i / 32 * 2];
    } else {
        rig_read(r, &p->x, v, n * 4);
    }
    free(s);
    free(q);
    return v;
}

struct planes rig_planes_open(struct rig *r, size_t n)
{
    return (struct planes){ rig_buffer(r, NULL, n * 4), rig_buffer(r, NULL, n / 4),
                            rig_buffer(r, NULL, n / 8) };
}
