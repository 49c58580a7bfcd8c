/* to_half.comp - an activation vector per token, from its planes to f16 for
 * tile.comp. A workgroup takes a token. Values are divided by a power of two
 * that brings the largest to between 512 and 1024; the token's factor undoes
 * it, and has the RMS factor of the row in it, too. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"

layout(constant_id = 1) const uint INT8 = 1;
/* 0: no norm; 1: one RMS factor for the row; 2: one per STATE_DIM columns */
layout(constant_id = 2) const uint NORM = 0;

layout(push_constant) uniform push_block { push_half p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer act_x { uvec2 xq[]; };
layout(set = 0, binding = 1, std430) readonly buffer act_f { vec4 xf[]; };
layout(set = 0, binding = 2, std430) readonly buffer act_s { vec2 xs[]; };
layout(set = 0, binding = 3, std430) readonly buffer act_ss { float xss[]; };
layout(set = 0, binding = 4, std430) writeonly buffer halves_block { uvec4 halves[]; };
layout(set = 0, binding = 5, std430) writeonly buffer factors_block { float factors[]; };

shared float largest[64], squares[64]; /* a subgroup each */

/* RMS factor of the STATE_DIM columns that hold a block. */
float head_factor(uint token, uint block)
{
    const uint n = STATE_DIM / ACT_BLOCK;
    uint i = token * (p.cols / ACT_BLOCK) + block / n * n;
    float sum = xss[i] + xss[i + 1] + xss[i + 2] + xss[i + 3];
    return inversesqrt(sum / float(STATE_DIM) + p.eps);
}

/* Values 8i .. 8i+7 of the token. */
void eight(uint token, uint i, out vec4 a, out vec4 b)
{
    uint at = token * (p.cols / 8) + i, block = i / (ACT_BLOCK / 8);
    if (INT8 != 0) {
        uvec2 q = xq[at];
        float s = xs[token * (p.cols / ACT_BLOCK) + block].x;
        a = s * vec4(ivec4(q.x << 24, q.x << 16, q.x << 8, q.x) >> 24);
        b = s * vec4(ivec4(q.y << 24, q.y << 16, q.y << 8, q.y) >> 24);
    } else {
        a = xf[2 * at];
        b = xf[2 * at + 1];
    }
    if (NORM == 2) {
        float f = head_factor(token, block);
        a *= f;
        b *= f;
    }
}

/* The largest magnitude of the row and the sum of its squares, for all. */
void row_sums(uint token, out float most, out float sum)
{
    most = 0.0;
    sum = 0.0;
    for (uint i = gl_LocalInvocationIndex; i < p.cols / 8; i += gl_WorkGroupSize.x) {
        vec4 a, b;
        eight(token, i, a, b);
        vec4 m = max(abs(a), abs(b));
        most = max(most, max(max(m.x, m.y), max(m.z, m.w)));
    }
    for (uint i = gl_LocalInvocationIndex; i < p.cols / ACT_BLOCK; i += gl_WorkGroupSize.x)
        sum += xss[token * (p.cols / ACT_BLOCK) + i];
    most = subgroupMax(most);
    sum = subgroupAdd(sum);
    if (subgroupElect()) {
        largest[gl_SubgroupID] = most;
        squares[gl_SubgroupID] = sum;
    }
    barrier();
    most = 0.0;
    sum = 0.0;
    for (uint i = 0; i < gl_NumSubgroups; i++) {
        most = max(most, largest[i]);
        sum += squares[i];
    }
}

void main()
{
    uint token = gl_WorkGroupID.y;
    if (ctl.stop != 0 || token >= ctl.n_tokens * p.vectors)
        return;
    float most, sum;
    row_sums(token, most, sum);
    /* 2^(exponent of most - 9); of 0 and of the smallest numbers 2^-126 */
    uint exponent = clamp(floatBitsToUint(most) >> 23, 10u, 254u) - 9;
    float scale = uintBitsToFloat(exponent << 23);
    uint stride = (p.cols + HALF_COLS - 1) / HALF_COLS * (HALF_COLS / 8);
    for (uint i = gl_LocalInvocationIndex; i < stride; i += gl_WorkGroupSize.x) {
        vec4 a = vec4(0.0), b = vec4(0.0);
        if (i < p.cols / 8)
            eight(token, i, a, b);
        a /= scale;
        b /= scale;
        halves[token * stride + i] = uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw),
                                           packHalf2x16(b.xy), packHalf2x16(b.zw));
    }
    if (gl_LocalInvocationIndex == 0)
        factors[token] =
            NORM == 1 ? scale * inversesqrt(sum / float(p.cols) + p.eps) : scale;
}
