/* group.comp - which experts a chunk uses: the pairs of token and slot sorted by
 * expert, and cut into tiles of TILE_TOKENS pairs of one expert. One workgroup.
 *
 * Pairs of an expert come in any order: each is computed by itself. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "ctl.glsl"

layout(constant_id = 1) const uint SLOTS = 1;
layout(constant_id = 2) const uint TILE_TOKENS = 32;

layout(push_constant) uniform push_block { push_group p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
#define SELECTION 1
#include "selection.glsl"
layout(set = 0, binding = 2, std430) writeonly buffer groups_block { uint groups[]; };

shared uint counts[SELECT_MAX_EXPERTS]; /* pairs */
shared uint taken[SELECT_MAX_EXPERTS];

uint local()
{
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

uint tiles_of(uint pairs)
{
    return (pairs + TILE_TOKENS - 1) / TILE_TOKENS;
}

/* The tiles of one expert, behind those of the experts before it; returns where
 * its pairs start. */
uint write_tiles(uint expert)
{
    uint first = 0, tile = 0;
    for (uint e = 0; e < expert; e++) {
        first += counts[e];
        tile += tiles_of(counts[e]);
    }
    uint n = counts[expert];
    for (uint i = 0; i < tiles_of(n); i++) {
        uint at = GROUP_HEAD + GROUP_TILE * (tile + i);
        groups[at] = expert;
        groups[at + 1] = first + i * TILE_TOKENS;
        groups[at + 2] = min(n - i * TILE_TOKENS, TILE_TOKENS);
    }
    if (expert + 1 == p.experts)
        groups[0] = tile + tiles_of(n);
    return first;
}

void main()
{
    if (ctl.stop != 0)
        return;
    uint pairs = ctl.n_tokens * SLOTS;
    for (uint e = local(); e < p.experts; e += gl_WorkGroupSize.x)
        counts[e] = 0;
    barrier();
    for (uint i = local(); i < pairs; i += gl_WorkGroupSize.x)
        atomicAdd(counts[selected_expert(i / SLOTS, i % SLOTS)], 1);
    barrier();
    for (uint e = local(); e < p.experts; e += gl_WorkGroupSize.x)
        taken[e] = write_tiles(e);
    barrier();
    for (uint i = local(); i < pairs; i += gl_WorkGroupSize.x) {
        uint at = atomicAdd(taken[selected_expert(i / SLOTS, i % SLOTS)], 1);
        groups[p.list_at + at] = i;
    }
}
