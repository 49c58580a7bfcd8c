/* rotate.comp - activations for matrices whose columns were rotated: signs, then
 * the Walsh-Hadamard transform of each BLOCK columns (engine/rotation.h). A
 * workgroup takes a block of a token. UNROTATE: looked-up rows of a rotated
 * embedding become what they stand for, in place: transform, then signs. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "act.glsl"

layout(constant_id = 1) const uint INT8 = 0;
/* What the activations come from, ROTATE_x in push.h. */
layout(constant_id = 2) const uint SOURCE = 0;

layout(push_constant) uniform push_block { push_rotate p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
#ifdef UNROTATE
layout(set = 0, binding = 1, std430) buffer stream_block { float source[]; };
#else
layout(set = 0, binding = 1, std430) readonly buffer source_block { float source[]; };
#endif
layout(set = 0, binding = 2, std430) readonly buffer norm_block { float norm_w[]; };
layout(set = 0, binding = 3, std430) readonly buffer sign_block { float sign_of[]; };
#define NEXT_X 4
#define NEXT_S 5
#define NEXT_SS 6
layout(set = 0, binding = 7, std430) readonly buffer squares_block { float squares[]; };
#include "next.glsl"

const uint BLOCK = 1024;
shared float v_s[BLOCK];

/* RMS factor of the head that holds a column of the source. */
float head_factor(uint token, uint column)
{
    uint i = (token * p.cols + column / STATE_DIM * STATE_DIM) / ACT_BLOCK;
    float sum = squares[i] + squares[i + 1] + squares[i + 2] + squares[i + 3];
    return inversesqrt(sum / float(STATE_DIM) + p.eps);
}

/* Column c of what the matrix was made for, before signs and transform. */
float column(uint token, uint c)
{
    if (SOURCE == ROTATE_STREAM)
        return source[token * p.cols + c] * norm_w[c];
    if (SOURCE == ROTATE_SWIGLU) {
        uint at = token * 2 * p.cols + c / ACT_BLOCK * 2 * ACT_BLOCK + c % ACT_BLOCK;
        float gate = source[at];
        return gate / (1.0 + exp(-gate)) * source[at + ACT_BLOCK];
    }
    if (SOURCE == ROTATE_HEADS) {
        if (p.n_v != 0) { /* the matrix has grouped heads, the source tiled ones */
            uint head = c / STATE_DIM, each = p.n_v / p.n_k;
            c = (head % each * p.n_k + head / each) * STATE_DIM + c % STATE_DIM;
        }
        return source[token * p.cols + c] * head_factor(token, c);
    }
    return source[token * p.cols + c];
}

/* The butterflies, without the factor 1 / sqrt(BLOCK). */
void transform()
{
    for (uint h = 1; h < BLOCK; h *= 2) {
        for (uint i = 0; i < BLOCK / 2; i += gl_WorkGroupSize.x) {
            uint k = i + gl_LocalInvocationID.x, at = k / h * 2 * h + k % h;
            float a = v_s[at], b = v_s[at + h];
            v_s[at] = a + b;
            v_s[at + h] = a - b;
        }
        barrier();
    }
}

void main()
{
    uint token = gl_WorkGroupID.y, first = gl_WorkGroupID.x * BLOCK;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    for (uint i = 0; i < BLOCK; i += gl_WorkGroupSize.x) {
        uint k = i + gl_LocalInvocationID.x;
#ifdef UNROTATE
        v_s[k] = source[token * p.cols + first + k];
#else
        v_s[k] = column(token, first + k) * sign_of[first + k];
#endif
    }
    barrier();
    transform();
    for (uint b = gl_SubgroupID; b < BLOCK / ACT_BLOCK; b += gl_NumSubgroups) {
        float v[NEXT_EACH], w[NEXT_EACH];
        [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
            uint i = next_index(k), at = b * ACT_BLOCK + i;
            v[k] = 0.0;
            w[k] = 1.0;
            if (i < ACT_BLOCK) {
                v[k] = v_s[at] * inversesqrt(float(BLOCK));
#ifdef UNROTATE
                v[k] *= sign_of[first + at];
                w[k] = norm_w[first + at];
                source[token * p.cols + first + at] = v[k];
#endif
            }
        }
        uint block = first / ACT_BLOCK + b;
        next_write(token, block, p.cols, v, w);
#ifndef UNROTATE
        /* The RMS factor of a row is that of what was not rotated yet. */
        if (SOURCE == ROTATE_STREAM && subgroupElect()) {
            uint at = token * (p.cols / ACT_BLOCK) + block;
            next_ss[at] = squares[at];
        }
#endif
    }
}
