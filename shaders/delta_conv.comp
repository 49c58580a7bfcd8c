/* delta_conv.comp - the chunked delta rule, step 1 of 4: causal convolution,
 * SiLU and the l2 norms of q and k, all tokens of a pass at once; and the conv
 * history that the next pass begins with.
 *
 * A strip is the channels of one head for STRIP tokens; 32 neighbouring
 * invocations hold four channels each of it in registers. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "reduce.glsl"

layout(constant_id = 2) const uint STRIPS = 4; /* a workgroup; a divisor of CHUNK / 8 */

layout(push_constant) uniform push_block { push_delta p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer proj_block { vec4 proj[]; };
layout(set = 0, binding = 2, std430) buffer history_block { vec4 history[]; };
layout(set = 0, binding = 3, std430) readonly buffer taps_block { vec4 taps[]; };
layout(set = 0, binding = 4, std430) writeonly buffer kq_block { vec4 kq[]; };
layout(set = 0, binding = 5, std430) writeonly buffer k_block { vec4 k_rows[]; };
layout(set = 0, binding = 6, std430) writeonly buffer v_block { vec4 v_rows[]; };
#include "delta_chunk.glsl"

const uint STRIP = 8; /* tokens */

/* Sums of squares of four tokens, by quarter of the head. */
shared vec4 square_s[STRIPS * 4 * STRIP / 4];

/* Raw channels of token t; t < 0 is before this pass. Nothing follows it. */
vec4 channels(int t, uint quad)
{
    if (t < 0)
        return history[(ctl.side * 3 + uint(3 + t)) * (p.conv_dim / 4) + quad];
    return t < int(ctl.n_tokens) ? proj[uint(t) * (p.proj_stride / 4) + quad] : vec4(0.0);
}

vec4[STRIP] convolve(uint first, uint quad)
{
    vec4 x[STRIP + 3], y[STRIP];
    [[unroll]] for (uint i = 0; i < STRIP + 3; i++)
        x[i] = channels(int(first + i) - 3, quad);
    mat4 w = transpose(mat4(taps[4 * quad], taps[4 * quad + 1], taps[4 * quad + 2],
                            taps[4 * quad + 3]));
    [[unroll]] for (uint i = 0; i < STRIP; i++) {
        y[i] = w[0] * x[i] + w[1] * x[i + 1] + w[2] * x[i + 2] + w[3] * x[i + 3];
        y[i] = first + i < ctl.n_tokens ? y[i] / (1.0 + exp(-y[i])) : vec4(0.0);
    }
    return y;
}

/* The strip with the last token of the pass keeps the last three inputs. */
void keep_history(uint first, uint quad)
{
    if (first >= ctl.n_tokens || ctl.n_tokens > first + STRIP)
        return;
    [[unroll]] for (uint i = 0; i < 3; i++)
        history[((1 - ctl.side) * 3 + i) * (p.conv_dim / 4) + quad] =
            channels(int(ctl.n_tokens + i) - 3, quad);
}

/* Factors that normalise each token's vector. All invocations call it. */
float[STRIP] norms(vec4 y[STRIP], uint strip, uint lane)
{
    float f[STRIP];
    [[unroll]] for (uint i = 0; i < STRIP / 4; i++) {
        vec4 s = vec4(dot(y[4 * i], y[4 * i]), dot(y[4 * i + 1], y[4 * i + 1]),
                      dot(y[4 * i + 2], y[4 * i + 2]), dot(y[4 * i + 3], y[4 * i + 3]));
        s = lanes_add(s, 8);
        if (lane % 8 == 0)
            square_s[(strip * 4 + lane / 8) * (STRIP / 4) + i] = s;
    }
    barrier();
    [[unroll]] for (uint i = 0; i < STRIP / 4; i++) {
        vec4 s = vec4(0.0);
        [[unroll]] for (uint part = 0; part < 4; part++)
            s += square_s[(strip * 4 + part) * (STRIP / 4) + i];
        [[unroll]] for (uint c = 0; c < 4; c++)
            f[4 * i + c] = 1.0 / max(sqrt(s[c]), p.eps);
    }
    return f;
}

/* Keys beside each other for every token: k of the head, or q. */
void store_keys(vec4 y[STRIP], uint first, uint head, uint lane)
{
    uint k_head = head % p.n_k; /* q heads come first */
    uint row = first % CHUNK / 4 + (head < p.n_k ? CHUNK_QUADS : 0);
    uint at = (first / CHUNK * p.n_k + k_head) * STATE_DIM;
    [[unroll]] for (uint c = 0; c < 4; c++)
        [[unroll]] for (uint i = 0; i < STRIP; i += 4)
            kq[(at + 4 * lane + c) * (2 * CHUNK_QUADS) + row + i / 4] =
                vec4(y[i][c], y[i + 1][c], y[i + 2][c], y[i + 3][c]);
    if (head >= p.n_k)
        [[unroll]] for (uint i = 0; i < STRIP; i++)
            k_rows[((first + i) * p.n_k + k_head) * HEAD_QUADS + lane] = y[i];
}

void main()
{
    if (ctl.stop != 0)
        return;
    uint begin = gl_WorkGroupID.y * STRIPS * STRIP;
    if (begin >= (ctl.n_tokens + CHUNK - 1) / CHUNK * CHUNK)
        return;
    uint local = local_index();
    uint strip = local / HEAD_QUADS, lane = local % HEAD_QUADS;
    uint head = gl_WorkGroupID.x, first = begin + strip * STRIP;
    uint quad = head * HEAD_QUADS + lane;
    vec4 y[STRIP] = convolve(first, quad);
    keep_history(first, quad);
    if (head >= 2 * p.n_k) {
        uint at = first * p.n_v + head - 2 * p.n_k;
        [[unroll]] for (uint i = 0; i < STRIP; i++)
            v_rows[(at + i * p.n_v) * HEAD_QUADS + lane] = y[i];
        return; /* the whole workgroup */
    }
    float f[STRIP] = norms(y, strip, lane);
    float scale = head < p.n_k ? inversesqrt(float(STATE_DIM)) : 1.0;
    [[unroll]] for (uint i = 0; i < STRIP; i++)
        y[i] *= f[i] * scale;
    store_keys(y, first, head, lane);
}
