/* product.comp - matrix times activation vectors, with the epilogue that the
 * next step needs (engine/kernel.h describes bindings and planes).
 *
 * A row is shared by LANES neighbouring invocations of a subgroup, which take
 * its units in turn; each of them works on BATCH rows at once, so that an
 * activation is loaded once for BATCH rows. A workgroup makes ROWS rows of
 * TOKENS tokens. With LANES 1 all invocations of a subgroup need the same
 * activations: integer products then load them once, spread over the subgroup,
 * and broadcast them, which suits processors whose loads are not vectors.
 *
 * SPLIT: a narrow matrix has fewer workgroups than the device could run. Then
 * SPLIT of them share each block of rows, each takes EACH rounds of its units;
 * the last to finish adds the parts up, in their order, and does the rest.
 *
 * EXPERTS: the matrix holds p.rows rows of each expert, one after the other; a
 * token uses SLOTS of them, as the selection says, and has an activation
 * vector per slot on the inner side. TOKENS is 1. SWIGLU works on one slot a
 * workgroup, RESIDUAL on the weighted sum over the slots of a token. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "ctl.glsl"
#include "act.glsl"
#include "format.glsl"

layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint ROWS = 32;
layout(constant_id = 3) const uint TOKENS = 1;
layout(constant_id = 4) const uint BATCH = 4;
/* 0: no norm; 1: one RMS factor for the row; 2: one per STATE_DIM columns */
layout(constant_id = 5) const uint NORM = 0;
#ifdef EXPERTS
layout(constant_id = 6) const uint SLOTS = 1;
#else
layout(constant_id = 6) const uint SPLIT = 1;
layout(constant_id = 7) const uint EACH = 1; /* rounds: units LANES apart */
#endif

layout(push_constant) uniform push_block { push_product p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
#ifdef ACT_int8
layout(set = 0, binding = 3, std430) readonly buffer act_x { uvec4 xq[]; };
layout(set = 0, binding = 3, std430) readonly buffer act_words { uint xw[]; };
#else
layout(set = 0, binding = 3, std430) readonly buffer act_x { vec4 xf[]; };
#endif
#ifdef ACT_stream
layout(set = 0, binding = 4, std430) readonly buffer act_w { vec4 xn[]; };
#else
layout(set = 0, binding = 4, std430) readonly buffer act_s { vec2 xs[]; };
#endif
layout(set = 0, binding = 5, std430) readonly buffer act_ss { float xss[]; };

#ifdef EPILOGUE_store
layout(set = 0, binding = 6, std430) writeonly buffer out_block_ { float result[]; };
#elif defined(EPILOGUE_residual)
layout(set = 0, binding = 6, std430) buffer out_block_ { float result[]; };
#define NEXT_X 7
#define NEXT_S 8
#define NEXT_SS 9
layout(set = 0, binding = 10, std430) readonly buffer weight_block { float norm_w[]; };
#define SELECTION 11
#else
#define NEXT_X 6
#define NEXT_S 7
#define NEXT_SS 8
#define SELECTION 9
#endif
#ifndef EPILOGUE_store
#include "next.glsl"
shared float made[ROWS * TOKENS];
#endif
#if defined(EPILOGUE_residual) && !defined(EXPERTS)
/* Workgroups that have come, a counter a block of rows; then the parts. */
layout(set = 0, binding = 11, std430) coherent buffer parts_block { uint parts[]; };
shared uint come;
#endif
#ifdef EXPERTS
#include "selection.glsl"
#ifdef EPILOGUE_residual
layout(set = 0, binding = 12, std430) readonly buffer shared_block { float shared_y[]; };
#endif
#endif

/* Vectors of the result: one a token, or one a slot. */
#if defined(EXPERTS) && defined(EPILOGUE_swiglu)
#define VECTORS (ctl.n_tokens * SLOTS)
#define TOKEN_OF(vector) ((vector) / SLOTS)
#else
#define VECTORS ctl.n_tokens
#define TOKEN_OF(vector) (vector)
#endif

#ifdef ACT_int8
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"],
                  capabilities = [6019, 6018], id = 4450)
int dot_4x8(uint a, uint b, spirv_literal int packed_4x8);
#endif

/* RMS factor over all columns of a token; every subgroup computes its own. */
float row_factor(uint token)
{
    uint blocks = p.cols / ACT_BLOCK;
    float sum = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < blocks; i += gl_SubgroupSize)
        sum += xss[token * blocks + i];
    return inversesqrt(subgroupAdd(sum) / float(p.cols) + p.eps);
}

/* RMS factor of the STATE_DIM columns that hold a block. */
float head_factor(uint token, uint block)
{
    const uint n = STATE_DIM / ACT_BLOCK;
    uint i = token * (p.cols / ACT_BLOCK) + block / n * n;
    float sum = xss[i] + xss[i + 1] + xss[i + 2] + xss[i + 3];
    return inversesqrt(sum / float(STATE_DIM) + p.eps);
}

/* Elements whose products are summed before they are scaled. */
const uint GROUP = SCALE_GROUP < ACT_BLOCK ? SCALE_GROUP : ACT_BLOCK;

#if defined(ACT_int8) && defined(INTEGER_CODES)
#ifdef MINIMA
const bool TOTALS = GROUP < ACT_BLOCK;
#else
const bool TOTALS = GROUP < ACT_BLOCK && OFFSET != 0;
#endif

/* A pair of the s plane, with the RMS factor of its columns in it. */
vec2 normed(vec2 pair, uint token, uint block)
{
    return NORM == 2 ? pair * head_factor(token, block) : pair;
}

/* Adds the integer sums of a group of a unit to the rows' results. total: the
 * group's sum of activations if TOTALS; pair: of the block it is in. */
void add_group(int sum[BATCH], int total, weight_unit w[BATCH], uint group, vec2 pair,
               inout float acc[BATCH])
{
    float t = TOTALS ? pair.x * float(total) : pair.y;
    [[unroll]] for (uint r = 0; r < BATCH; r++)
        acc[r] += scaled(w[r].scale[group * GROUP / SCALE_GROUP],
                         pair.x * float(sum[r]) - float(OFFSET) * t, t);
}

/* One unit, each invocation loading the activations of its own columns. Inner
 * loops have constant bounds: drivers then unroll the outer ones, too. */
void unit_loaded(weight_unit w[BATCH], uint token, uint unit, inout float acc[BATCH])
{
    [[unroll]] for (uint g = 0; g < UNIT / GROUP; g++) {
        int sum[BATCH], total = 0;
        [[unroll]] for (uint r = 0; r < BATCH; r++)
            sum[r] = 0;
        [[unroll]] for (uint i = 0; i < GROUP / 16; i++) {
            uvec4 a = xq[(token * p.cols + unit * UNIT + g * GROUP) / 16 + i];
            [[unroll]] for (uint k = 0; k < 4; k++) {
                uint q = g * (GROUP / 4) + i * 4 + k;
                if (TOTALS)
                    total += dot_4x8(0x01010101u, a[k], 0);
                [[unroll]] for (uint r = 0; r < BATCH; r++)
                    sum[r] += dot_4x8(quad_bytes(w[r], q), a[k], 0);
            }
        }
        uint block = (unit * UNIT + g * GROUP) / ACT_BLOCK;
        vec2 pair = xs[token * (p.cols / ACT_BLOCK) + block];
        add_group(sum, total, w, g, normed(pair, token, block), acc);
    }
}

/* One unit of the same columns in all invocations: invocation i holds word
 * i % (GROUP / 4) of a group, and the scales of block i % blocks. */
void unit_broadcast(weight_unit w[BATCH], uint token, uint unit, inout float acc[BATCH])
{
    const uint blocks = (UNIT + ACT_BLOCK - 1) / ACT_BLOCK, words = GROUP / 4;
    uint first = unit * UNIT / ACT_BLOCK, lane = gl_SubgroupInvocationID;
    vec2 pairs = xs[token * (p.cols / ACT_BLOCK) + first + lane % blocks];
    [[unroll]] for (uint g = 0; g < UNIT / GROUP; g++) {
        uint word = xw[token * (p.cols / 4) + unit * QUADS + g * words + lane % words];
        int sum[BATCH], total = 0;
        [[unroll]] for (uint r = 0; r < BATCH; r++)
            sum[r] = 0;
        [[unroll]] for (uint q = 0; q < words; q++) {
            uint a = subgroupBroadcast(word, q);
            if (TOTALS)
                total += dot_4x8(0x01010101u, a, 0);
            [[unroll]] for (uint r = 0; r < BATCH; r++)
                sum[r] += dot_4x8(quad_bytes(w[r], g * words + q), a, 0);
        }
        uint b = g * GROUP / ACT_BLOCK;
        vec2 pair = subgroupBroadcast(pairs, b);
        add_group(sum, total, w, g, normed(pair, token, first + b), acc);
    }
}

/* Products of one unit of BATCH rows with one token, in integers. */
void unit_product(weight_unit w[BATCH], uint token, uint unit, inout float acc[BATCH])
{
    if (LANES == 1)
        unit_broadcast(w, token, unit, acc);
    else
        unit_loaded(w, token, unit, acc);
}
#else
/* Four activations of a token, as floats. */
vec4 act_quad(uint token, uint quad)
{
#ifdef ACT_int8
    uint i = token * (p.cols / 4) + quad;
    uint word = xq[i / 4][i & 3];
    float s = xs[token * (p.cols / ACT_BLOCK) + quad / (ACT_BLOCK / 4)].x;
    return s * vec4(ivec4(word << 24, word << 16, word << 8, word) >> 24);
#elif defined(ACT_stream)
    return xf[token * (p.cols / 4) + quad] * xn[quad];
#else
    return xf[token * (p.cols / 4) + quad];
#endif
}

/* Products of one unit of BATCH rows with one token, in floats. */
void unit_product(weight_unit w[BATCH], uint token, uint unit, inout float acc[BATCH])
{
    [[unroll]] for (uint g = 0; g < UNIT / GROUP; g++) {
        float sum[BATCH], total = 0.0;
        [[unroll]] for (uint r = 0; r < BATCH; r++)
            sum[r] = 0.0;
        [[unroll]] for (uint i = 0; i < GROUP / 4; i++) {
            uint q = g * (GROUP / 4) + i;
            vec4 a = act_quad(token, unit * QUADS + q);
            total += dot(vec4(1.0), a);
            [[unroll]] for (uint r = 0; r < BATCH; r++)
                sum[r] += dot(quad_float(w[r], q), a);
        }
        float f = 1.0;
        if (NORM == 2)
            f = head_factor(token, (unit * UNIT + g * GROUP) / ACT_BLOCK);
        [[unroll]] for (uint r = 0; r < BATCH; r++)
            acc[r] += f * scaled(w[r].scale[g * GROUP / SCALE_GROUP], sum[r], total);
    }
}
#endif

/* Sum over the LANES invocations that share a row. */
float row_sum(float v)
{
    if (LANES == gl_SubgroupSize)
        return subgroupAdd(v);
    for (uint d = LANES / 2; d > 0; d /= 2)
        v += subgroupShuffleXor(v, d);
    return v;
}

/* A finished value of this workgroup. */
void emit(uint row, uint vector, uint first, float v)
{
#ifdef EPILOGUE_store
    if (gl_WorkGroupID.x * ROWS + row < p.rows)
        result[vector * p.out_stride + p.out_offset + gl_WorkGroupID.x * ROWS + row] = v;
#else
    made[(vector - first) * ROWS + row] = v;
#endif
}

/* Unit u of BATCH rows of the workgroup from `row` on; beyond the last row or
 * unit the last one. `base` is the first row of the matrix to count from. */
void load_units(uint base, uint row, uint u, out weight_unit w[BATCH])
{
    [[unroll]] for (uint r = 0; r < BATCH; r++)
        w[r] = unit_load(base + min(gl_WorkGroupID.x * ROWS + row + r, p.rows - 1),
                         min(u, p.units - 1), p.units);
}

/* Adds units u times the activations act[t]. */
void add_unit(weight_unit w[BATCH], uint u, uint act[TOKENS],
              inout float acc[TOKENS][BATCH])
{
    [[unroll]] for (uint t = 0; t < TOKENS; t++)
        unit_product(w, act[t], u, acc[t]);
}

#if !defined(EXPERTS)
/* First unit of this invocation: nothing has to be known to load it. */
uint first_unit(uint lane)
{
    return SPLIT == 1 ? lane : gl_WorkGroupID.z * EACH * LANES + lane;
}

/* This invocation's part of BATCH rows, w being its first units. With LANES over
 * 1 the next ones are always on their way. */
void add_units(uint row, uint lane, weight_unit w[BATCH], uint act[TOKENS],
               inout float acc[TOKENS][BATCH])
{
    uint u = first_unit(lane), end = p.units;
    if (SPLIT > 1)
        end = min(end, (gl_WorkGroupID.z + 1) * EACH * LANES);
    for (; u < end; u += LANES) {
        weight_unit next[BATCH];
        if (LANES == 1) {
            load_units(0, row, u, next);
            add_unit(next, u, act, acc);
            continue;
        }
        load_units(0, row, u + LANES, next);
        add_unit(w, u, act, acc);
        [[unroll]] for (uint r = 0; r < BATCH; r++)
            w[r] = next[r];
    }
}
#elif defined(EPILOGUE_residual)
/* The units of all slots are dealt to the lanes in one go, so that a row shorter
 * than LANES units leaves none idle. */
void add_units(uint row, uint lane, uint act[TOKENS], inout float acc[TOKENS][BATCH])
{
    uint token = act[0], slot = lane / p.units, u = lane % p.units;
    uint slot_step = LANES / p.units, u_step = LANES % p.units;
    while (slot < SLOTS) {
        uint vector[TOKENS];
        float part[TOKENS][BATCH];
        weight_unit w[BATCH];
        vector[0] = token * SLOTS + slot;
        [[unroll]] for (uint r = 0; r < BATCH; r++)
            part[0][r] = 0.0;
        load_units(selected_expert(token, slot) * p.rows, row, u, w);
        add_unit(w, u, vector, part);
        float weight = selected_weight(token, slot);
        [[unroll]] for (uint r = 0; r < BATCH; r++)
            acc[0][r] += weight * part[0][r];
        u += u_step;
        slot += slot_step;
        if (u >= p.units) {
            u -= p.units;
            slot++;
        }
    }
}
#else
void add_units(uint row, uint lane, uint act[TOKENS], inout float acc[TOKENS][BATCH])
{
    uint base = selected_expert(act[0], gl_WorkGroupID.y % SLOTS) * p.rows;
    for (uint u = lane; u < p.units; u += LANES) {
        weight_unit w[BATCH];
        load_units(base, row, u, w);
        add_unit(w, u, act, acc);
    }
}
#endif

/* RMS factor of the whole row. */
float factor_of(uint token)
{
    return NORM == 1 ? row_factor(token) : 1.0;
}

/* BATCH rows of the workgroup from `row` on, all its vectors, from their sums. */
void finish_rows(uint row, uint lane, uint first, uint act[TOKENS],
                 float acc[TOKENS][BATCH])
{
    [[unroll]] for (uint t = 0; t < TOKENS; t++) {
        float factor = factor_of(act[t]);
        [[unroll]] for (uint r = 0; r < BATCH; r++) {
            float v = row_sum(acc[t][r]) * factor;
            if (lane == 0 && first + t < VECTORS)
                emit(row + r, first + t, first, v);
        }
    }
}

#if defined(EPILOGUE_residual) && !defined(EXPERTS)
/* Whether this workgroup is the last of the SPLIT that share its rows; then
 * `made` has the sums of all. The counter is left as it was found. */
bool last_of_split()
{
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint groups = gl_NumWorkGroups.x * gl_NumWorkGroups.y;
    uint at = groups + group * SPLIT * ROWS * TOKENS;
    uint local = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    for (uint i = local; i < ROWS * TOKENS; i += gl_WorkGroupSize.x)
        parts[at + gl_WorkGroupID.z * ROWS * TOKENS + i] = floatBitsToUint(made[i]);
    memoryBarrierBuffer();
    barrier();
    if (local == 0)
        come = atomicAdd(parts[group], 1);
    barrier();
    if (come + 1 != SPLIT)
        return false;
    memoryBarrierBuffer();
    for (uint i = local; i < ROWS * TOKENS; i += gl_WorkGroupSize.x) {
        float sum = 0.0;
        [[unroll]] for (uint z = 0; z < SPLIT; z++)
            sum += uintBitsToFloat(parts[at + z * ROWS * TOKENS + i]);
        made[i] = sum;
    }
    if (local == 0)
        parts[group] = 0;
    barrier();
    return true;
}
#endif

#ifdef EPILOGUE_residual
/* Adds a block of 32 rows to the residual stream and prepares it. */
void finish_block(uint block, uint t, uint token)
{
    float v[NEXT_EACH], w[NEXT_EACH];
    [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
        uint i = next_index(k);
        v[k] = 0.0;
        w[k] = 0.0;
        if (i < ACT_BLOCK) {
            uint row = gl_WorkGroupID.x * ROWS + block * ACT_BLOCK + i;
            v[k] = result[token * p.rows + row] + made[t * ROWS + block * ACT_BLOCK + i];
#ifdef EXPERTS
            v[k] += selected_weight(token, SLOTS) * shared_y[token * p.rows + row];
#endif
            result[token * p.rows + row] = v[k];
            w[k] = norm_w[row];
        }
    }
    next_write(token, gl_WorkGroupID.x * (ROWS / ACT_BLOCK) + block, p.rows, v, w);
}
#elif defined(EPILOGUE_swiglu)
/* Combines 32 gate rows with the 32 up rows that follow them. */
void finish_block(uint block, uint t, uint vector)
{
    float v[NEXT_EACH], w[NEXT_EACH];
    [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
        uint i = next_index(k);
        v[k] = 0.0;
        w[k] = 1.0;
        if (i < ACT_BLOCK) {
            float gate = made[t * ROWS + block * 2 * ACT_BLOCK + i];
            float up = made[t * ROWS + block * 2 * ACT_BLOCK + ACT_BLOCK + i];
            v[k] = gate / (1.0 + exp(-gate)) * up;
        }
    }
    uint first = gl_WorkGroupID.x * (ROWS / ACT_BLOCK / 2);
    next_write(vector, first + block, p.rows / 2, v, w);
}
#endif

void main()
{
    uint local = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    uint lane = local % LANES, slot = local / LANES, slots = gl_WorkGroupSize.x / LANES;
    uint first = gl_WorkGroupID.y * TOKENS;
#ifndef EXPERTS
    weight_unit w[BATCH];
    if (LANES > 1)
        load_units(0, slot * BATCH, first_unit(lane), w);
#endif
    if (ctl.stop != 0 || first >= VECTORS)
        return;
    uint act[TOKENS];
    [[unroll]] for (uint t = 0; t < TOKENS; t++)
        act[t] = TOKEN_OF(min(first + t, VECTORS - 1));
    for (uint row = 0; row < ROWS; row += slots * BATCH) {
        float acc[TOKENS][BATCH];
        [[unroll]] for (uint t = 0; t < TOKENS; t++)
            [[unroll]] for (uint r = 0; r < BATCH; r++)
                acc[t][r] = 0.0;
#ifdef EXPERTS
        add_units(row + slot * BATCH, lane, act, acc);
#else
        if (LANES > 1 && row > 0)
            load_units(0, row + slot * BATCH, first_unit(lane), w);
        add_units(row + slot * BATCH, lane, w, act, acc);
#endif
        finish_rows(row + slot * BATCH, lane, first, act, acc);
    }
#ifndef EPILOGUE_store
    barrier();
#if defined(EPILOGUE_residual) && !defined(EXPERTS)
    if (SPLIT > 1 && !last_of_split())
        return;
#endif
#ifdef EPILOGUE_swiglu
    const uint blocks = ROWS / ACT_BLOCK / 2;
#else
    const uint blocks = ROWS / ACT_BLOCK;
#endif
    for (uint b = gl_SubgroupID; b < blocks * TOKENS; b += gl_NumSubgroups) {
        uint t = b / blocks;
        if (first + t < VECTORS &&
            gl_WorkGroupID.x * ROWS + b % blocks * (ROWS / blocks) < p.rows)
            finish_block(b % blocks, t, first + t);
    }
#endif
}
