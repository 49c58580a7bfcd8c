/* rope.h - rotary position embedding: by how much each pair of dims turns from
 * one position to the next, and the table that the kernels read.
 * Thread-safety: pure functions. */
#ifndef ENGINE_ROPE_H
#define ENGINE_ROPE_H

#include <stdint.h>

/* How a model reads contexts longer than those it was first trained with (YaRN:
 * Peng et al., "YaRN: Efficient Context Window Extension of Large Language
 * Models", 2023). factor 0: not at all. */
struct rope_scaling {
    float factor;               /* how many times longer, above 1 */
    uint32_t trained;           /* context of the first training, tokens */
    float beta_fast, beta_slow; /* pairs that turn more often than beta_fast in the
                                 * trained context are left alone, those that turn
                                 * less than beta_slow are slowed down by factor */
    float magnitude;            /* of cos and sin alike, besides the 1 + 0.1 ln(factor)
                                 * that belongs to the method */
};

/* Radians a position for each of `pairs` pairs: base^(-i / pairs), scaled. */
void rope_frequencies(const struct rope_scaling *s, double base, uint32_t pairs,
                      double *out);
/* cos and sin of each pair at a position: out[pairs][2]. */
void rope_turns(const struct rope_scaling *s, const double *frequencies, uint32_t pairs,
                uint32_t position, float *out);

#endif
