/* delta_emit.comp - the chunked delta rule, step 4 of 4: the gated readout as
 * the next activation vector, an invocation four values. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "act.glsl"
#include "reduce.glsl"

layout(constant_id = 1) const uint INT8 = 0;
layout(constant_id = 2) const uint GROUP = 256; /* as spec constant 0 */

layout(push_constant) uniform push_block { push_delta p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer proj_block { vec4 proj[]; };
layout(set = 0, binding = 2, std430) readonly buffer norm_block { vec4 ssm_norm[]; };
layout(set = 0, binding = 3, std430) readonly buffer readout_block { vec4 readout[]; };
#define BLOCK_X 4
#define BLOCK_S 5
#define BLOCK_SS 6
#include "block.glsl"

void main()
{
    uint token = gl_WorkGroupID.y, quads = p.n_v * STATE_DIM / 4;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    uint i = gl_WorkGroupID.x * GROUP + local_index();
    bool mine = i < quads;
    i = mine ? i : 0;
    vec4 o = readout[token * quads + i];
    vec4 z = proj[token * (p.proj_stride / 4) + p.z_offset / 4 + i];
    vec4 gate = ssm_norm[i % (STATE_DIM / 4)] * (z / (1.0 + exp(-z)));
    block_write(token * quads + i, o * gate, o, mine);
}
