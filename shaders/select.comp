/* select.comp - which experts a token uses, and how much of each: the SLOTS
 * best router logits, equal ones in the order of their ids; weights from the
 * softmax over all experts, normalised over the chosen. One subgroup a token.
 *
 * The best of what is behind the one before are sought SLOTS times, by
 * comparing logits: the choice does not depend on how exp rounds, and it is
 * the same for a chunk and for one token. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "ctl.glsl"

layout(constant_id = 1) const uint SLOTS = 1;

layout(push_constant) uniform push_block { push_select p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer logits_block { float logits[]; };
layout(set = 0, binding = 2, std430) writeonly buffer selection_block { uint selection[]; };

const uint NONE = 0xffffffffu;
/* Smallest sum of probabilities that weights are divided by. */
const float MIN_SUM = 1.0 / 16384.0;

/* Each invocation keeps the experts lane, lane + size, ... */
shared float kept[SELECT_MAX_EXPERTS];
shared float chosen[SELECT_MAX_SLOTS];

/* The best expert that comes after (logit, id) in the order of choice. */
uint next_best(float logit, uint id, out float top)
{
    uint at = NONE;
    float best = uintBitsToFloat(0xff800000u);
    for (uint i = gl_SubgroupInvocationID; i < p.experts; i += gl_SubgroupSize) {
        bool after = id == NONE || kept[i] < logit || (kept[i] == logit && i > id);
        if (after && (at == NONE || kept[i] > best)) {
            best = kept[i];
            at = i;
        }
    }
    top = subgroupMax(best);
    return subgroupMin(best == top ? at : NONE);
}

void main()
{
    uint token = gl_WorkGroupID.y, lane = gl_SubgroupInvocationID;
    if (ctl.stop != 0 || token >= ctl.n_tokens || gl_SubgroupID != 0)
        return;
    uint from = token * (p.experts + 1), to = token * (2 * SLOTS + 1);
    for (uint i = lane; i < p.experts; i += gl_SubgroupSize)
        kept[i] = logits[from + i];

    float top = 0.0, logit = 0.0, all = 0.0, sum = 0.0;
    uint id = NONE;
    for (uint slot = 0; slot < SLOTS; slot++) {
        float best;
        /* Logits that are not numbers have no order: some expert, then. */
        id = min(next_best(logit, id, best), p.experts - 1);
        logit = best;
        if (slot == 0) {
            top = logit;
            for (uint i = lane; i < p.experts; i += gl_SubgroupSize)
                all += exp(kept[i] - top);
            all = subgroupAdd(all);
        }
        float probability = exp(logit - top) / all;
        sum += probability;
        if (lane == 0) {
            chosen[slot] = probability;
            selection[to + slot] = id;
        }
    }
    if (lane != 0)
        return;
    for (uint slot = 0; slot < SLOTS; slot++)
        selection[to + SLOTS + slot] =
            floatBitsToUint(chosen[slot] / max(sum, MIN_SUM) * p.scale);
    float gate = logits[from + p.experts];
    selection[to + 2 * SLOTS] = floatBitsToUint(1.0 / (1.0 + exp(-gate)));
}
