/* merge.comp - joins the splits of a head's attention, applies the sigmoid
 * gate and writes the activation planes of the out product. One workgroup a
 * head and token. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "act.glsl"

layout(constant_id = 1) const uint INT8 = 0;
layout(constant_id = 2) const uint D = 256;

layout(push_constant) uniform push_block { push_merge p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer partial_block { float partial[]; };
layout(set = 0, binding = 2, std430) readonly buffer proj_block { float proj[]; };
#define NEXT_X 3
#define NEXT_S 4
#define NEXT_SS 5
#include "next.glsl"

void main()
{
    uint head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    uint first = (token * p.n_head + head) * p.splits * (D + 2);
    float m = -1e30, l = 0.0;
    for (uint s = 0; s < p.splits; s++)
        m = max(m, partial[first + s * (D + 2) + D]);
    for (uint s = 0; s < p.splits; s++)
        l += partial[first + s * (D + 2) + D + 1] * exp(partial[first + s * (D + 2) + D] - m);
    for (uint b = gl_SubgroupID; b < D / ACT_BLOCK; b += gl_NumSubgroups) {
        float v[NEXT_EACH], w[NEXT_EACH];
        [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
            uint i = next_index(k), c = b * ACT_BLOCK + i;
            v[k] = 0.0;
            w[k] = 1.0;
            if (i >= ACT_BLOCK)
                continue;
            for (uint s = 0; s < p.splits; s++) {
                uint at = first + s * (D + 2);
                v[k] += partial[at + c] * exp(partial[at + D] - m);
            }
            float gate = proj[token * p.proj_stride + head * 2 * D + D + c];
            v[k] = v[k] / l / (1.0 + exp(-gate));
        }
        next_write(token, head * (D / ACT_BLOCK) + b, p.n_head * D, v, w);
    }
}
