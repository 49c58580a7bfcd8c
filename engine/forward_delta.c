/* forward_delta.c - the mixer of a recurrent layer: one dispatch that takes the
 * tokens one by one, or for many tokens the four steps of the chunked rule. */
#include "engine/forward.h"

#include "engine/delta_chunk.h"

static struct push_delta push_of(const struct recorder *r)
{
    const struct proj_layout *lay = &r->e->weights.recurrent;
    return (struct push_delta){ .n_k = r->hp->n_k_heads,
                                .n_v = r->hp->n_v_heads,
                                .conv_dim = r->hp->conv_dim,
                                .proj_stride = lay->stride,
                                .z_offset = lay->z,
                                .beta_offset = lay->beta,
                                .alpha_offset = lay->alpha,
                                .ba_grouped = r->hp->arch->fused_ba,
                                .grouped_heads = r->hp->grouped_heads,
                                .eps = r->hp->rms_eps };
}

static struct delta_spans spans_of(const struct recorder *r,
                                   const struct device_layer *ly, uint32_t index)
{
    const struct session *s = r->s;
    const struct planes *made = &s->scratch.mixed;
    uint64_t at = index * s->layout.layer_bytes;
    struct delta_spans x = { .ctl = gpu_span_all(&s->ctl),
                             .proj = gpu_span_all(&s->scratch.proj),
                             .history =
                                 gpu_span_at(&s->state, at + s->layout.matrix_bytes,
                                             s->layout.history_bytes),
                             .taps = ly->conv1d,
                             .dt = ly->dt,
                             .a = ly->a,
                             .norm = ly->ssm_norm,
                             .state = gpu_span_at(&s->state, at, s->layout.matrix_bytes),
                             .x = gpu_span_all(&made->x),
                             .s = gpu_span_all(&made->s),
                             .ss = gpu_span_all(&made->ss) };
    for (int i = 0; i < DELTA_SCRATCH; i++)
        x.scratch[i] = gpu_span_all(&s->scratch.delta[i]);
    return x;
}

static int one_by_one(struct recorder *r, const struct push_delta *push,
                      const struct delta_spans *x, bool int8)
{
    const struct tuning *t = &r->e->tune;
    struct gpu_dispatch d = { .bind = { [1] = x->proj,
                                        [2] = x->history,
                                        [3] = x->taps,
                                        [4] = x->dt,
                                        [5] = x->a,
                                        [6] = x->norm,
                                        [7] = x->state,
                                        [8] = x->x,
                                        [9] = x->s,
                                        [10] = x->ss },
                              .push = push,
                              .groups = { r->hp->value_dim / t->delta_columns, 1, 1 },
                              .label = "delta rule" };
    uint32_t spec[TUNING_SPEC], n = tuning_delta(t, int8, spec);
    enum kernel_id id = t->delta_wide ? KERNEL_DELTA_WIDE : KERNEL_DELTA;
    return forward_dispatch(r, &d, kernel_module(id), spec, n);
}

static int chunked(struct recorder *r, const struct push_delta *push,
                   const struct delta_spans *x, bool int8)
{
    struct delta_step steps[DELTA_STEPS];
    delta_chunk_steps(steps, &r->e->tune.delta_many, push, x, r->pass->tokens, int8);
    for (int i = 0; i < DELTA_STEPS; i++)
        if (forward_dispatch(r, &steps[i].dispatch, steps[i].module, steps[i].spec,
                             steps[i].n_spec) < 0)
            return -1;
    return 0;
}

int forward_recurrent(struct recorder *r, const struct device_layer *ly, uint32_t index)
{
    struct push_delta push = push_of(r);
    struct delta_spans x = spans_of(r, ly, index);
    uint32_t from = r->e->tune.delta_many.from;
    bool int8 = forward_mixed_int8(r, ly);
    return from && r->pass->tokens >= from ? chunked(r, &push, &x, int8)
                                           : one_by_one(r, &push, &x, int8);
}
