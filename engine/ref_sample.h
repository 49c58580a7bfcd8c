/* ref_sample.h - plain C version of shaders/sample.comp, for tests. */
#ifndef ENGINE_REF_SAMPLE_H
#define ENGINE_REF_SAMPLE_H

#include "shaders/push.h"

#include <stdbool.h>
#include <stdint.h>

/* Draws one id from logits [ctl->n_vocab] with occurrence counts [n_vocab],
 * and advances ctl, out and counts as the kernel does. The same ids as the
 * kernel's, except that the device may round the quotient of a repeat penalty
 * differently. */
void ref_sample(struct ctl_block *ctl, struct out_block *out, const float *logits,
                uint32_t *counts, bool advance);

/* Block `counter` of Philox4x32-10 (Salmon et al., "Parallel random numbers:
 * as easy as 1, 2, 3", 2011). */
void ref_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

#endif
