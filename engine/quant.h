/* quant.h - the block formats of tensors in model files: one row a format, and
 * plain C decoding of each. Formulas: the public GGUF block layouts. */
#ifndef ENGINE_QUANT_H
#define ENGINE_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, type id in files, elements and bytes of a block, decoder, and whether
 * the device has kernels for it. A format without decoder is known by size
 * only, so that a file which has it can be read and refused by name. Id 42
 * stands for two layouts in files; gguf.c tells them apart and gives the one
 * with groups of 128 as PQ2_0. */
#define QUANTS(X)                                                              \
    X(F32, 0, 1, 4, block_f32, true)                                           \
    X(F16, 1, 1, 2, block_f16, true)                                           \
    X(BF16, 30, 1, 2, block_bf16, true)                                        \
    X(Q8_0, 8, 32, 34, block_q8_0, true)                                       \
    X(Q4_0, 2, 32, 18, block_q4_0, true)                                       \
    X(Q4_1, 3, 32, 20, block_q4_1, true)                                       \
    X(Q5_0, 6, 32, 22, block_q5_0, true)                                       \
    X(Q5_1, 7, 32, 24, block_q5_1, true)                                       \
    X(Q2_0, 42, 64, 18, block_q2_0, true)                                      \
    X(PQ2_0, 142, 128, 34, block_pq2_0, true)                                  \
    X(PTQ1_0, 143, 128, 28, block_ptq1_0, true)                                \
    X(Q1_0, 41, 128, 18, block_q1_0, true)                                     \
    X(IQ4_NL, 20, 32, 18, block_iq4_nl, true)                                  \
    X(IQ4_XS, 23, 256, 136, block_iq4_xs, true)                                \
    X(MXFP4, 39, 32, 17, block_mxfp4, true)                                    \
    X(NVFP4, 40, 64, 36, block_nvfp4, true)                                    \
    X(Q2_K, 10, 256, 84, block_q2_k, true)                                     \
    X(Q3_K, 11, 256, 110, block_q3_k, true)                                    \
    X(Q4_K, 12, 256, 144, block_q4_k, true)                                    \
    X(Q5_K, 13, 256, 176, block_q5_k, true)                                    \
    X(Q6_K, 14, 256, 210, block_q6_k, true)                                    \
    X(TQ1_0, 34, 256, 54, block_tq1_0, true)                                   \
    X(TQ2_0, 35, 256, 66, block_tq2_0, true)                                   \
    X(Q8_1, 9, 32, 36, NULL, false)                                            \
    X(Q8_K, 15, 256, 292, NULL, false)                                         \
    X(IQ1_S, 19, 256, 50, NULL, false)                                         \
    X(IQ1_M, 29, 256, 56, NULL, false)                                         \
    X(IQ2_XXS, 16, 256, 66, NULL, false)                                       \
    X(IQ2_XS, 17, 256, 74, NULL, false)                                        \
    X(IQ2_S, 22, 256, 82, NULL, false)                                         \
    X(IQ3_XXS, 18, 256, 98, NULL, false)                                       \
    X(IQ3_S, 21, 256, 110, NULL, false)                                        \
    X(I8, 24, 1, 1, NULL, false)                                               \
    X(I16, 25, 1, 2, NULL, false)                                              \
    X(I32, 26, 1, 4, NULL, false)                                              \
    X(I64, 27, 1, 8, NULL, false)                                              \
    X(F64, 28, 1, 8, NULL, false)

#define QUANT_ENUM(name, id, elements, bytes, decode, runs) QUANT_##name,
enum quant { QUANTS(QUANT_ENUM) QUANT_COUNT };
#undef QUANT_ENUM

struct quant_format {
    const char *name;
    void (*decode)(const uint8_t *block, float *dst); /* NULL: size only */
    uint32_t file_id;
    uint32_t elements, bytes; /* of one block; blocks have no padding */
    bool runs;                /* the device has kernels for it */
};

const struct quant_format *quant_format(enum quant q);
/* The format with this type id in files; -1 if there is none. */
int quant_from_ggml(uint32_t file_id);
/* Bytes of n elements; n must be a multiple of the block's elements. */
size_t quant_bytes(enum quant q, size_t n);
/* Decodes n elements (a multiple of the block's) of a format that has a
 * decoder. src needs no alignment. */
void quant_dequantize(enum quant q, const void *src, size_t n, float *dst);

/* IEEE binary16. To float is exact; to half rounds to nearest even, overflows
 * to infinity and keeps NaN a NaN. */
float quant_f16_to_f32(uint16_t h);
uint16_t quant_f32_to_f16(float f);

#endif
