/* read.comp - reads a buffer as fast as the device can, 16 bytes an invocation at
 * a time, neighbours beside neighbours; the sum makes the loads count. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"

layout(push_constant) uniform push_block { push_read p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer from_block { uvec4 from[]; };
layout(set = 0, binding = 2, std430) buffer sum_block { uint sums[]; };

void main()
{
    if (ctl.stop != 0)
        return;
    const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uint local = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    uint i = gl_WorkGroupID.x * gl_WorkGroupSize.x + local;
    uvec4 sum = uvec4(0);
    for (; i + 3 * step < p.units; i += 4 * step) {
        uvec4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
        sum += a + b + c + d;
    }
    for (; i < p.units; i += step)
        sum += from[i];
    uint all = subgroupAdd(sum.x + sum.y + sum.z + sum.w);
    if (subgroupElect())
        atomicAdd(sums[0], all);
}
