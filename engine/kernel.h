/* kernel.h - the table of compute kernels and what each one is bound to.
 *
 * Common rules. Binding 0 is always the control block (shaders/push.h); a
 * kernel returns at once when ctl.stop is set or its token is not below
 * ctl.n_tokens. Specialization constant 0 is the workgroup size in x; the
 * others are listed per kernel. Kernels use subgroups of any size from 8 to
 * 64 (gl_SubgroupSize), no clustered operations, at most 16 KiB of workgroup
 * memory, and stay below 65,535 loop rounds an invocation.
 *
 * An activation vector of n values per token (n a multiple of ACT_BLOCK) has
 * three planes, token after token:
 *   x   int8 path: n int8, four to a uint, element 4i+b in byte b of word i;
 *       float path: n f32
 *   s   int8 path: vec2 per block of 32: scale, scale * (sum of the block's
 *       int8 values); unused by the float path (still bound)
 *   ss  one f32 per block of 32: sum of squares of the raw values
 * Value c of block i stands for x * scale. Where the vector is still to be
 * RMS-normalised, x holds raw * weight and the consumer multiplies its result
 * by rsqrt(sum(ss over the group) / group + eps).
 * Rounding to int8: scale = max|v| / 127, q = roundEven(v / scale), 0 if all
 * values are 0. */
#ifndef ENGINE_KERNEL_H
#define ENGINE_KERNEL_H

#include "engine/gpu.h"
#include "engine/quant.h"
#include "shaders/push.h"

/*      id      SPIR-V name   bindings  written bindings     push constants   */
#define KERNEL_LIST(X)                                                         \
    /* 1 proj f32[t][proj_stride]  2 conv history f32[2][3][conv_dim] (side    \
     * ctl.side is current: row 2 the newest; the other side is written)       \
     * 3 conv weights f32[conv_dim][4]  4 dt bias f32[n_v]  5 ssm_a f32[n_v]   \
     * 6 ssm_norm f32[128]  7 state f32[n_v][128 values][128 keys]             \
     * 8, 9, 10 activation planes of n_v*128, RMS group 128, weight ssm_norm   \
     * and silu(z) already multiplied in. proj_stride is a multiple of 8.      \
     * WIDE: the same for devices with 64-bit integers in shaders.             \
     * Spec: tuning_delta. Grid: (n_v * 128 / delta_columns, 1, 1) */          \
    X(DELTA, delta, 11, 1u << 2 | 1u << 7 | 7u << 8, struct push_delta)        \
    X(DELTA_WIDE, delta_wide, 11, 1u << 2 | 1u << 7 | 7u << 8, struct push_delta) \
    /* The same for many tokens, in four steps (engine/delta_chunk.h), with    \
     * scratch between them (shaders/delta_chunk.glsl). CONV: 1 proj           \
     * 2 conv history  3 conv weights  4 kq  5 k  6 v.                         \
     * Grid: (2 n_k + n_v, tokens / (8 strips), 1) */                          \
    X(DELTA_CONV, delta_conv, 7, 1u << 2 | 7u << 4, struct push_delta)         \
    /* 1 proj  2 dt bias  3 ssm_a  4 kq  5 solved  6 pace.                     \
     * Grid: (n_v, sub-chunks, 1) */                                           \
    X(DELTA_SOLVE, delta_solve, 7, 3u << 5, struct push_delta)                 \
    /* 1 kq  2 k  3 solved  4 pace  5 v, where the readout takes its place     \
     * 6 state. Grid: (n_v * 128 / (columns * heads), 1, 1) */                 \
    X(DELTA_SCAN, delta_scan, 7, 3u << 5, struct push_delta)                   \
    /* 1 proj  2 ssm_norm  3 readout  4, 5, 6 activation planes.               \
     * Grid: (n_v * 32 / size, tokens, 1) */                                   \
    X(DELTA_EMIT, delta_emit, 7, 7u << 4, struct push_delta)                   \
    /* 1 proj  2 q_norm f32[D]  3 k_norm f32[D]  4 RoPE table                  \
     * vec2(cos, sin)[ctx][rope_pairs]  5 q f32[t][n_head][D]  6 K cache       \
     * 7 V cache [ctx][n_head_kv][D] (f16 pairs in uints, or f32).             \
     * Spec 1: D. Grid: (n_head + n_head_kv, tokens, 1) */                     \
    X(QK_F16, qk_f16, 8, 7u << 5, struct push_qk)                              \
    X(QK_F32, qk_f32, 8, 7u << 5, struct push_qk)                              \
    /* 1 q  2 K cache  3 V cache  4 partials f32[t][n_head][splits][D + 2]:    \
     * sum of exp(s - m) v, then m, then sum of exp(s - m). Token t sees       \
     * positions 0..pos+t. Spec 1: D, 2: query heads a kv head.                \
     * Grid: (n_head_kv, splits, tokens) */                                    \
    X(ATTEND_F16, attend_f16, 5, 1u << 4, struct push_attend)                  \
    X(ATTEND_F32, attend_f32, 5, 1u << 4, struct push_attend)                  \
    /* 1 partials  2 proj  3, 4, 5 activation planes of n_head * D, no norm,   \
     * sigmoid(gate) multiplied in if there is one. Spec 1: int8 path, 2: D.   \
     * Grid: (n_head, tokens, 1) */                                            \
    X(MERGE, merge, 6, 7u << 3, struct push_merge)                             \
    /* A product of FORMAT_F32 with EPILOGUE_STORE (below) that reads the       \
     * residual stream itself: 3 stream f32[t][cols]  4 norm weight f32[cols]  \
     * 5 the ss plane of the stream. Rows: a logit an expert, then the shared  \
     * expert's gate */                                                        \
    X(ROUTER, router, 7, 1u << 6, struct push_product)                         \
    /* 1, 2, 3 activation planes of `vectors` a token  4 the same as f16, cols padded with zeros to a \
     * multiple of HALF_COLS, divided by a power of two  5 f32[t] factor of the results: that power, times the RMS factor \
     * of the row. Spec 1: int8 path, 2: RMS factor as of products.            \
     * Grid: (1, tokens, 1) */                                                 \
    X(TO_HALF, to_half, 6, 3u << 4, struct push_half)                          \
    /* 1 source, as spec 2 says  2 norm weight f32[cols]  3 signs f32[cols]     \
     * 4, 5, 6 activation planes, for a row's RMS factor where the source is   \
     * the stream, else for none  7 ss plane of the source. Spec 1: int8 path, \
     * 2: ROTATE_x. Grid: (cols / 1024, tokens, 1) */                          \
    X(ROTATE, rotate, 8, 7u << 4, struct push_rotate)                          \
    /* 1 residual stream, changed in place  2 norm weight  3 signs  4, 5, 6     \
     * planes as EMBED makes them  7 not used. Spec 1: int8 path */            \
    X(UNROTATE, unrotate, 8, 1u << 1 | 7u << 4, struct push_rotate)            \
    /* 1 uvec4[units]  2 uint, added to: the sum of their words.               \
     * Grid: (any, 1, 1) */                                                     \
    X(READ, read, 3, 1u << 2, struct push_read)                                \
    /* 1 selection  2 groups, see push_group, with room for pairs / tile tokens  \
     * + experts tiles. Spec 1: slots, 2: tokens a tile. Grid: (1, 1, 1) */     \
    X(GROUP, group, 3, 1u << 2, struct push_group)                             \
    /* 1 f32[t][slots][cols] of the experts  2 residual stream, added to        \
     * 3, 4, 5 planes of the new stream  6 norm weight f32[cols] multiplied into \
     * them  7 selection  8 shared expert's result f32[t][cols]. Spec 1: int8   \
     * path, 2: slots. Grid: (ceil(cols / 32 / subgroups), tokens, 1) */        \
    X(COMBINE, combine, 9, 15u << 2, struct push_combine)                      \
    /* 1 logits f32[t][experts + 1]  2 selection, per token uint ids[slots],   \
     * f32 weights[slots + 1], the last the shared expert's. Spec 1: slots.    \
     * Grid: (1, tokens, 1) */                                                 \
    X(SELECT, select, 3, 1u << 2, struct push_select)                          \
    /* 1 logits f32[n_vocab]  2 counts uint[n_vocab]: occurrences in the       \
     * timeline, advanced by the drawn id  3 out block.                        \
     * Grid: (1, 1, 1) */                                                      \
    X(SAMPLE, sample, 4, 1u << 0 | 3u << 2, struct push_sample)

/* Products, one row per epilogue; each exists for every device format and
 * for float and int8 activations (shaders/variants.mk).
 *   1 codes  2 scales  3, 4, 5 activation planes, then
 *   STORE     6 out f32[t][out_stride], rows from out_offset on
 *   RESIDUAL  6 residual stream f32[t][rows], added to; 7, 8, 9 planes of the
 *             new stream; 10 norm weight f32[rows] multiplied into them;
 *             11 with spec 6 over 1: uint[workgroups of x * y], zeros before and
 *             after, then f32[workgroups of x * y * z][rows a group]
 *   SWIGLU    matrix rows come in blocks of 32 gate, 32 up; 6, 7, 8 planes of
 *             rows / 2 values silu(gate) * up
 * Spec 1: lanes that share a row (a power of two, at most the subgroup size),
 * 2: rows a group, 3: tokens a group, 4: rows an invocation works on at once,
 * 5: RMS factor: 0 none, 1 over the row, 2 per STATE_DIM columns, 6: groups that
 * share the columns of the same rows, one a z (RESIDUAL of one token), 7: rounds
 * of units that each of them takes. Rows a group
 * is a multiple of (size / lanes) * rows at once, and with an epilogue of 32
 * (SWIGLU: 64); p.rows is then a multiple of 32 (64) too.
 * Grid: (ceil(rows / rows a group), ceil(tokens / tokens a group), spec 6 or 1)
 * With experts: codes and scales hold all experts' p.rows rows one after the
 * other; spec 6: slots, spec 3 is 1.
 *   SWIGLU    9 selection; planes per token and slot. Grid y: tokens * slots
 *   RESIDUAL  11 selection  12 shared expert's result f32[t][rows]; adds the
 *             weighted sum over the slots, whose planes it reads, and the
 *             weighted shared result. Grid y: tokens
 * TILE, the same products for many tokens, in f16: 3 activations and 4 factors
 * as TO_HALF makes them, from 5 on what products have from 6 on. Spec:
 * tuning_tile, 8: int8 path. The activations have room for whole tiles. Grid:
 * (ceil(tokens / tile tokens), ceil(rows / tile rows), 1)
 * With experts, STORE (to f32[t][slots][out_stride]; 6 groups) and SWIGLU (planes
 * per token and slot; 8 groups); spec 9: slots. Grid: (tiles at most,
 * ceil(an expert's rows / tile rows), 1)
 * EMBED   1 codes  2 scales  3 residual stream f32[t][cols]  4, 5, 6 planes
 *   7 norm weight f32[cols]. Spec 1: int8 path. Grid: (1, tokens, 1) */
enum { SPLIT_MAX = 16 };
enum epilogue { EPILOGUE_STORE, EPILOGUE_RESIDUAL, EPILOGUE_SWIGLU, EPILOGUE_COUNT };

/* Formats that the device computes with, after repacking (engine/pack.h). */
#define DEVICE_FORMATS(X) X(F32, f32) X(F16, f16) X(BF16, bf16) X(Q8_0, q8_0) \
    X(Q4_0, q4_0) X(Q4_1, q4_1) X(Q5_0, q5_0) X(Q5_1, q5_1) X(Q2_0, q2_0)       \
    X(PQ2_0, pq2_0) X(TQ2_0, tq2_0) X(Q1_0, q1_0) X(IQ4_NL, iq4_nl)             \
    X(IQ4_XS, iq4_xs) X(MXFP4, mxfp4) X(NVFP4, nvfp4) X(Q2_K, q2_k)             \
    X(Q3_K, q3_k) X(Q4_K, q4_k) X(Q5_K, q5_k) X(Q6_K, q6_k)
#define FORMAT_ROW(id, name) FORMAT_##id,
enum device_format { DEVICE_FORMATS(FORMAT_ROW) FORMAT_COUNT };
#undef FORMAT_ROW

#define KERNEL_ROW(id, name, bindings, writes, push) KERNEL_##id,
enum kernel_id { KERNEL_LIST(KERNEL_ROW) KERNEL_COUNT };
#undef KERNEL_ROW

/* SPIR-V and bindings; static storage. */
const struct gpu_module *kernel_module(enum kernel_id id);
const struct gpu_module *kernel_product_module(enum device_format f, bool int8,
                                               enum epilogue e);
/* The same with experts; e is RESIDUAL or SWIGLU. */
const struct gpu_module *kernel_experts_module(enum device_format f, bool int8,
                                               enum epilogue e);
/* matrix: for devices with cooperative matrices. */
const struct gpu_module *kernel_tile_module(enum device_format f, bool matrix,
                                            enum epilogue e);
/* The same for a chunk's experts; e is STORE or SWIGLU. */
const struct gpu_module *kernel_expert_tile_module(enum device_format f, bool matrix,
                                                   enum epilogue e);
const struct gpu_module *kernel_embed_module(enum device_format f);
/* Of all of them. */
uint64_t kernel_fingerprint(void);

#endif
