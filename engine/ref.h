/* ref.h - plain C references of the mixer kernels, in double inside; what the
 * device is tested against. */
#ifndef ENGINE_REF_H
#define ENGINE_REF_H

#include "shaders/push.h"

#include <stddef.h>
#include <stdint.h>

/* One recurrent layer: weights, and the timeline's state, which ref_delta
 * moves on. Shapes as in engine/kernel.h. */
struct ref_delta {
    struct push_delta p;
    const float *conv; /* [conv_dim][4] */
    const float *dt;   /* [n_v] */
    const float *a;    /* [n_v] */
    const float *norm; /* [128] */
    float *history;    /* [3][conv_dim], row 2 the newest input */
    double *state;     /* [n_v][128 values][128 keys] */
};
/* Causal convolution, SiLU, l2 norm, gates and the gated delta rule (Yang et
 * al., "Gated Delta Networks", 2024) over n_tokens rows of proj. o and w are
 * f32[n_tokens][n_v * 128]: the readout, and what it is multiplied by besides
 * its RMS factor. */
void ref_delta(struct ref_delta *d, const float *proj, size_t n_tokens, float *o,
               float *w);

/* One step of the rule for a head of `dim` keys and values, q and k as they
 * are used: state [values][keys] moves on, o gets state q / sqrt(dim). */
struct ref_step {
    size_t dim;
    const double *q, *k, *v; /* [dim] */
    double decay, beta;
};
void ref_delta_step(const struct ref_step *s, double *state, double *o);

struct ref_rope {
    uint32_t pairs; /* dim i turns with dim i + pairs */
    double base;
    uint32_t position;
    /* YaRN, factor 0: none. Peng et al., "YaRN: Efficient Context Window Extension
     * of Large Language Models", 2023 */
    double factor, trained, beta_fast, beta_slow, magnitude;
};
/* RMS norm with weight over dim values of x, then rotation; out may be x. */
void ref_norm_rope(const float *x, const float *weight, size_t dim, float eps,
                   const struct ref_rope *rope, float *out);

/* One query head over n rows of keys and values, `stride` floats apart. */
struct ref_attention {
    const float *q, *k, *v;
    size_t n, stride, dim;
    double scale;
};
/* Softmax attention, out f32[dim]. */
void ref_attend(const struct ref_attention *a, float *out);

/* out = H x for a power of two n: H[r][c] = (-1)^popcount(r & c) / sqrt(n). */
void ref_hadamard(const double *x, size_t n, double *out);

/* x[i] *= sigmoid(gate[i]) */
void ref_gate(float *x, const float *gate, size_t n);

#endif
