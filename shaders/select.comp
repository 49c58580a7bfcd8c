/* select.comp - which experts a token uses, and how much of each: the SLOTS
 * best router logits, equal ones in the order of their ids; weights from the
 * softmax over all experts, normalised over the chosen. A workgroup a token:
 * all of it fetches the logits, its first subgroup chooses.
 *
 * The best of what is behind the one before are sought SLOTS times, by
 * comparing logits: the choice does not depend on how exp rounds, and it is
 * the same for a chunk and for one token. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"

layout(constant_id = 1) const uint SLOTS = 1;

layout(push_constant) uniform push_block { push_select p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer logits_block { float logits[]; };
layout(set = 0, binding = 2, std430) writeonly buffer selection_block { uint selection[]; };

const uint NONE = 0xffffffffu;
const uint LEAST = 0xff800000u; /* minus infinity, as bits */
/* Smallest sum of probabilities that weights are divided by. */
const float MIN_SUM = 1.0 / 16384.0;

/* All logits, four a word, with others that come after them all at the end. */
shared vec4 kept[SELECT_MAX_EXPERTS / 4];
shared float chosen[SELECT_MAX_SLOTS];

/* Invocations of the one subgroup that chooses. */
uint width()
{
    return min(gl_SubgroupSize, gl_WorkGroupSize.x);
}

void keep(uint from, uint quads)
{
    for (uint i = gl_LocalInvocationIndex; i < 4 * quads; i += gl_WorkGroupSize.x)
        kept[i / 4][i & 3] = i < p.experts ? logits[from + i] : uintBitsToFloat(LEAST);
}

/* The best expert that comes after (logit, id) in the order of choice. */
uint next_best(uint quads, float logit, uint id, out float top)
{
    uint at = NONE;
    float best = uintBitsToFloat(LEAST);
    for (uint q = gl_SubgroupInvocationID; q < quads; q += width()) {
        vec4 v = kept[q];
        [[unroll]] for (uint c = 0; c < 4; c++) {
            uint i = 4 * q + c;
            bool after = id == NONE || v[c] < logit || (v[c] == logit && i > id);
            if (after && (at == NONE || v[c] > best)) {
                best = v[c];
                at = i;
            }
        }
    }
    top = subgroupMax(best);
    return subgroupMin(best == top ? at : NONE);
}

/* The denominator of the softmax. */
float sum_exp(uint quads, float top)
{
    float sum = 0.0;
    for (uint q = gl_SubgroupInvocationID; q < quads; q += width())
        sum += dot(exp(kept[q] - top), vec4(1.0));
    return subgroupAdd(sum);
}

/* Fills chosen; returns the sum of the probabilities in it. */
float choose(uint quads, uint to)
{
    float top = 0.0, logit = 0.0, all = 0.0, sum = 0.0;
    uint id = NONE;
    for (uint slot = 0; slot < SLOTS; slot++) {
        float best;
        /* Logits that are not numbers have no order: some expert, then. */
        id = min(next_best(quads, logit, id, best), p.experts - 1);
        logit = best;
        if (slot == 0) {
            top = logit;
            all = sum_exp(quads, top);
        }
        float probability = exp(logit - top) / all;
        sum += probability;
        if (gl_SubgroupInvocationID == 0) {
            chosen[slot] = probability;
            selection[to + slot] = id;
        }
    }
    return sum;
}

void main()
{
    uint token = gl_WorkGroupID.y, quads = (p.experts + 3) / 4;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    uint from = token * (p.experts + 1), to = token * (2 * SLOTS + 1);
    keep(from, quads);
    barrier();
    if (gl_SubgroupID != 0)
        return;
    float sum = choose(quads, to);
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    for (uint slot = gl_SubgroupInvocationID; slot <= SLOTS; slot += width()) {
        float gate = logits[from + p.experts];
        float weight = slot < SLOTS ? chosen[slot] / max(sum, MIN_SUM) * p.scale
                                    : 1.0 / (1.0 + exp(-gate));
        selection[to + SLOTS + slot] = floatBitsToUint(weight);
    }
}
