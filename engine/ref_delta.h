/* ref_delta.h - the gated delta rule for many tokens of one head at once, in
 * double: what the kernels delta_* compute, checked against ref_delta_step. */
#ifndef ENGINE_REF_DELTA_H
#define ENGINE_REF_DELTA_H

#include <stddef.h>

/* n tokens of a head of `dim` keys and values, q and k as they are used. */
struct ref_chunk {
    size_t n, dim;
    const double *q, *k, *v; /* [n][dim] */
    const double *gate;      /* [n] logarithm of each token's decay, at most 0 */
    const double *beta;      /* [n] */
};
/* The same result as ref_delta_step token after token: state [values][keys]
 * moves on by n tokens, o is [n][dim]. With G the running sum of the gates,
 * D_ij = exp(G_i - G_j) for j <= i, else 0, and S the state before:
 *     A = strictly lower part of beta_i (k_i . k_j) D_ij
 *     T = (I + A)^-1 diag(beta)       P_ij = (q_i . k_j) D_ij / sqrt(dim)
 *     R = V - exp(G) K S              O = exp(G) Q S / sqrt(dim) + P T R
 *     S' = exp(G_n) S + (exp(G_n - G) K)^T T R
 * (Yang et al., "Parallelizing Linear Transformers with the Delta Rule over
 * Sequence Length", 2024, and "Gated Delta Networks", 2024; regrouped so that
 * what depends on S is two products with matrices that do not.) */
void ref_delta_chunk(const struct ref_chunk *c, double *state, double *o);

#endif
