/* combine.comp - what the chosen experts and the shared one made of a token,
 * weighted and added to the residual stream, in the order of the slots; then the
 * stream as the next step's input. A subgroup takes 32 values. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "act.glsl"

layout(constant_id = 1) const uint INT8 = 1;
layout(constant_id = 2) const uint SLOTS = 1;

layout(push_constant) uniform push_block { push_combine p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer made_block { float made[]; };
layout(set = 0, binding = 2, std430) buffer stream_block { float stream[]; };
#define NEXT_X 3
#define NEXT_S 4
#define NEXT_SS 5
layout(set = 0, binding = 6, std430) readonly buffer weight_block { float norm_w[]; };
#define SELECTION 7
layout(set = 0, binding = 8, std430) readonly buffer shared_block { float shared_y[]; };
#include "next.glsl"
#include "selection.glsl"

void main()
{
    uint token = gl_WorkGroupID.y;
    uint block = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID;
    if (ctl.stop != 0 || token >= ctl.n_tokens || block >= p.cols / ACT_BLOCK)
        return;
    float v[NEXT_EACH], w[NEXT_EACH];
    [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
        uint i = next_index(k), at = block * ACT_BLOCK + i;
        v[k] = 0.0;
        w[k] = 0.0;
        if (i < ACT_BLOCK) {
            v[k] = stream[token * p.cols + at] +
                   selected_weight(token, SLOTS) * shared_y[token * p.cols + at];
            for (uint s = 0; s < SLOTS; s++)
                v[k] += selected_weight(token, s) *
                        made[(token * SLOTS + s) * p.cols + at];
            stream[token * p.cols + at] = v[k];
            w[k] = norm_w[at];
        }
    }
    next_write(token, block, p.cols, v, w);
}
