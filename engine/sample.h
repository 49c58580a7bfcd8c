/* sample.h - the host's side of sampling on the device: what the caller asked
 * for, as the fields of the control block that shaders/sample.comp reads.
 *
 * In this order: penalties on the logits of ids that occur in the timeline,
 * the top_k largest, softmax at the temperature, removal of what is less than
 * min_p times as likely as the best, the smallest prefix that holds top_p of
 * the rest, one draw. The draw's random number depends on the seed and the
 * position of the token alone. */
#ifndef ENGINE_SAMPLE_H
#define ENGINE_SAMPLE_H

#include "base/err.h"
#include "engine/engine.h"
#include "shaders/push.h"

/* Fills top_k, seed, inv_temperature, top_p, min_p and the penalties of ctl;
 * leaves the rest of it alone. Fails without change, naming the parameter, if
 * one is out of range: temperature, penalties and top_k not negative,
 * repeat_penalty 0 or over 0, top_p and min_p in [0, 1], top_k at most
 * SAMPLER_MAX_K; presence and frequency may be negative. */
int sample_configure(struct ctl_block *ctl, const struct sampler_params *p,
                     struct err *err);

#endif
