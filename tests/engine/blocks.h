/* blocks.h - random weights in file format whose scales have sane sizes. */
#ifndef TESTS_ENGINE_BLOCKS_H
#define TESTS_ENGINE_BLOCKS_H

#include "base/mem.h"
#include "engine/gguf.h"
#include "engine/quant.h"

#include <string.h>

/* Where a block has its f16 scale and minimum, -1: none. */
static inline void block_fields(enum quant q, int *d_at, int *m_at)
{
    *d_at = q == QUANT_Q2_K     ? 80
            : q == QUANT_Q3_K   ? 108
            : q == QUANT_Q6_K   ? 208
            : q == QUANT_TQ1_0  ? 52
            : q == QUANT_TQ2_0  ? 64
            : q == QUANT_PTQ1_0 ? 26
            : q == QUANT_MXFP4 || q == QUANT_NVFP4 || q == QUANT_F32 || q == QUANT_BF16
                ? -1
                : 0;
    *m_at = q == QUANT_Q2_K ? 82
            : q == QUANT_Q4_1 || q == QUANT_Q5_1 || q == QUANT_Q4_K || q == QUANT_Q5_K
                ? 2
                : -1;
}

static inline uint32_t block_noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* In [-1, 1). */
static inline float block_value(uint32_t *state)
{
    return (float)block_noise(state) / (float)(1 << 23) - 1.0f;
}

/* One block with values of about the size `scale` times a small factor. */
static inline void block_random(enum quant q, uint8_t *b, float scale, uint32_t *state)
{
    const struct quant_format *f = quant_format(q);
    int d_at, m_at;
    block_fields(q, &d_at, &m_at);
    for (uint32_t i = 0; i < f->bytes; i++)
        b[i] = (uint8_t)block_noise(state);
    float v = scale * block_value(state);
    uint16_t h = quant_f32_to_f16(v), m = quant_f32_to_f16(scale * block_value(state));
    uint32_t bits;
    memcpy(&bits, &v, 4);
    if (q == QUANT_F32)
        memcpy(b, &v, 4);
    if (q == QUANT_BF16)
        memcpy(b, &(uint16_t){ (uint16_t)(bits >> 16) }, 2);
    if (q == QUANT_MXFP4) /* the exponent that scale has, and three more */
        b[0] = (uint8_t)((bits >> 23 & 255) + 1 - block_noise(state) % 4);
    for (int i = 0; q == QUANT_NVFP4 && i < 4; i++) {
        int e = (int)(bits >> 23 & 255) - 120;
        b[i] = (uint8_t)((e < 0 ? 0 : e > 15 ? 15 : e) << 3 | (int)(b[i] & 7));
    }
    if (d_at >= 0)
        memcpy(b + d_at, &h, 2);
    if (m_at >= 0)
        memcpy(b + m_at, &m, 2);
}

/* n elements, a whole number of blocks; malloced. */
static inline uint8_t *blocks_random(enum quant q, size_t n, float scale, uint32_t *state)
{
    const struct quant_format *f = quant_format(q);
    size_t bytes = quant_bytes(q, n);
    uint8_t *w = mem_alloc(bytes);
    for (size_t i = 0; i < bytes; i += f->bytes)
        block_random(q, w + i, scale, state);
    return w;
}

static inline struct tensor tensor_of(enum quant q, const uint8_t *data, size_t rows,
                                      size_t cols)
{
    return (struct tensor){ .name = "test", .type = q, .n_dims = 2,
                            .ne = { cols, rows, 1, 1 }, .n_elements = rows * cols,
                            .bytes = rows * quant_bytes(q, cols), .data = data };
}

#endif
