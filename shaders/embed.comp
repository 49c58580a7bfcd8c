/* embed.comp - looks a token's row up in the embedding matrix: residual stream
 * and the first layer's activation planes. One workgroup a token. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "act.glsl"
#include "format.glsl"

layout(constant_id = 1) const uint INT8 = 0;

layout(push_constant) uniform push_block { push_embed p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 3, std430) writeonly buffer out_block_ { float result[]; };
#define NEXT_X 4
#define NEXT_S 5
#define NEXT_SS 6
layout(set = 0, binding = 7, std430) readonly buffer weight_block { float norm_w[]; };
#include "next.glsl"

/* Element c of a row of the matrix. */
float element(uint row, uint c)
{
    uint e = c % UNIT;
    weight_unit w = unit_load(row, c / UNIT, p.units);
    return scaled(w.scale[e / SCALE_GROUP], quad_float(w, e / 4)[e % 4], 1.0);
}

void main()
{
    uint token = gl_WorkGroupID.y;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    uint row = min(ctl.tokens[token], ctl.n_vocab - 1);
    uint blocks = p.cols / ACT_BLOCK;
    for (uint b = gl_SubgroupID; b < blocks; b += gl_NumSubgroups) {
        float v[NEXT_EACH], w[NEXT_EACH];
        [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
            uint i = next_index(k);
            uint c = b * ACT_BLOCK + i;
            v[k] = 0.0;
            w[k] = 0.0;
            if (i < ACT_BLOCK) {
                v[k] = element(row, c);
                w[k] = norm_w[c];
                result[token * p.cols + c] = v[k];
            }
        }
        next_write(token, b, p.cols, v, w);
    }
}
