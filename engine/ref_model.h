/* ref_model.h - a plain C reference of whole models: one token at a time, every
 * formula as it is written down, weights decoded row by row as they lie in the
 * file. What whole passes of the device are tested against; far too slow for
 * models of any size. */
#ifndef ENGINE_REF_MODEL_H
#define ENGINE_REF_MODEL_H

#include "engine/model.h"

struct ref_model;

/* A timeline without tokens; m must be complete and outlive it. */
struct ref_model *ref_model_open(const struct model *m);
void ref_model_close(struct ref_model *r);
/* The next token; logits gets [n_vocab] of what may follow it, or is NULL. */
void ref_model_step(struct ref_model *r, int32_t id, float *logits);

#endif
