/* ref_moe.h - plain C references of the kernels for mixtures of experts, in
 * double inside; what the device is tested against. */
#ifndef ENGINE_REF_MOE_H
#define ENGINE_REF_MOE_H

#include "engine/ref_product.h"

/* The `slots` best of n logits, equal ones by id, and their weights: softmax
 * over all n, divided by the chosen ones' sum (at least 2^-14), times scale.
 * logits[n] is the shared expert's gate; weights[slots] its sigmoid. */
void ref_select(const float *logits, uint32_t n, uint32_t slots, float scale, uint32_t *ids,
                float *weights);

/* Experts of one format; each one's rows follow those of the one before:
 * gate and up {n_embd, width}, down {width, n_embd}, in file format. */
struct ref_experts {
    enum quant type;
    const uint8_t *gate, *up, *down;
    size_t n_embd, width;
    bool int8;          /* of the activations */
};
/* h[width] = silu(gate x) * up x of one expert; x is RMS-normalised. */
void ref_expert_hidden(const struct ref_experts *e, uint32_t expert,
                       const struct ref_planes *x, float eps, float *h);
/* y[n_embd] = sum over the slots of weight * down h, one vector a slot. */
void ref_experts_sum(const struct ref_experts *e, uint32_t slots, const uint32_t *ids,
                     const float *weights, const struct ref_planes *h, float *y);

#endif
