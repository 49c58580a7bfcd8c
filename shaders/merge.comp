/* merge.comp - joins the shares of attend.comp, multiplies sigmoid(gate) into
 * the result where there is one, and writes it as the next activation vector.
 * One workgroup per head and token; PARTS runs of D / 4 invocations take the
 * shares in turn. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "act.glsl"
#include "reduce.glsl"

layout(constant_id = 1) const uint INT8 = 0;
layout(constant_id = 2) const uint D = 256;
layout(constant_id = 3) const uint PARTS = 1; /* workgroup: PARTS * D / 4 */

layout(push_constant) uniform push_block { push_merge p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer sums_block { vec4 sums[]; };
layout(set = 0, binding = 1, std430) readonly buffer max_block { vec2 maxima[]; };
layout(set = 0, binding = 2, std430) readonly buffer proj_block { vec4 proj[]; };
#define BLOCK_X 3
#define BLOCK_S 4
#define BLOCK_SS 5
#include "block.glsl"

const float NO_SCORE = -1.0e30;
const uint QUADS = D / 4;
const uint SHARED_QUADS = PARTS > 1 ? (PARTS - 1) * QUADS : 1;
shared vec4 sums_s[SHARED_QUADS];
shared vec2 maxima_s[PARTS];

void main()
{
    uint head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    uint local = local_index();
    uint quad = local % QUADS, part = local / QUADS;
    uint row = (token * p.n_head + head) * p.splits;
    uint maxima_at = ctl.n_tokens * p.n_head * p.splits * (D / 2) + row;
    float top = NO_SCORE, sum = 0.0;
    vec4 acc = vec4(0.0);
    uint base = 0;
    do {
        uint share = base + part, s = min(share, p.splits - 1);
        vec2 ml = maxima[maxima_at + s];
        float score = share < p.splits ? ml.x : 2.0 * NO_SCORE;
        float m = max(top, score);
        float keep = exp(top - m), w = exp(score - m);
        acc = keep * acc + w * sums[(row + s) * QUADS + quad];
        sum = keep * sum + w * ml.y;
        top = m;
        base += PARTS;
    } while (base < p.splits);
    if (PARTS > 1) {
        if (quad == 0)
            maxima_s[part] = vec2(top, sum);
        barrier();
        float all = NO_SCORE;
        [[unroll]] for (uint i = 0; i < PARTS; i++)
            all = max(all, maxima_s[i].x);
        acc *= exp(top - all);
        sum = 0.0;
        [[unroll]] for (uint i = 0; i < PARTS; i++)
            sum += exp(maxima_s[i].x - all) * maxima_s[i].y;
        if (part > 0)
            sums_s[local - QUADS] = acc;
        barrier();
        [[unroll]] for (uint i = 1; i < PARTS; i++)
            acc += sums_s[(i - 1) * QUADS + quad];
    }
    vec4 o = acc / sum;
    if (p.q_width > D) {
        vec4 gate = proj[(token * p.proj_stride + head * p.q_width + D) / 4 + quad];
        o /= 1.0 + exp(-gate);
    }
    block_write((token * p.n_head + head) * QUADS + quad, o, o, part == 0);
}
