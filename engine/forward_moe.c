/* forward_moe.c - the feed-forward part of layers with experts.
 *
 * Dependent steps, where a dense layer has two: [router logits | gate and up of
 * the shared expert] [choice of experts | down of the shared expert] [gate and
 * up of the chosen experts] [their down, weighted sum, residual]. Nothing comes
 * back to the host. The router works in f32 on the residual stream itself, and
 * with the same kernel for a chunk and for one token: which of two nearly equal
 * experts is chosen must not depend on either. */
#include "engine/forward.h"

/* Logits of the experts, and of the shared expert's gate behind them. */
static int router(struct recorder *r, const struct device_layer *ly)
{
    struct scratch *x = &r->s->scratch;
    const struct matrix *m = &ly->router;
    const struct product_tuning *t = r->pass->tokens > 1 ? &r->e->tune.product_many : &r->e->tune.router_one;
    uint32_t rows = forward_product_rows(t, EPILOGUE_STORE);
    uint32_t spec[] = { t->size, t->lanes, rows, t->tokens, t->batch, NORM_ROW };
    struct push_product push = { .rows = m->rows,
                                 .cols = m->cols,
                                 .units = m->units,
                                 .eps = r->hp->rms_eps,
                                 .out_stride = m->rows };
    struct gpu_dispatch d = { .bind = { [1] = m->codes,
                                        [2] = m->scales,
                                        [3] = gpu_span_all(&x->residual),
                                        [4] = ly->post_norm,
                                        [5] = gpu_span_all(&x->input.ss),
                                        [6] = gpu_span_all(&x->router) },
                              .push = &push,
                              .groups = { forward_divide_up(m->rows, rows),
                                          forward_divide_up(r->pass->tokens, t->tokens),
                                          1 },
                              .label = "router" };
    return forward_dispatch(r, &d, kernel_module(KERNEL_ROUTER), spec, 6);
}

static int choose(struct recorder *r)
{
    struct scratch *x = &r->s->scratch;
    const struct hparams *hp = r->hp;
    struct push_select push = { .experts = hp->n_expert, .scale = hp->expert_scale };
    struct gpu_dispatch d = {
        .bind = { [1] = gpu_span_all(&x->router), [2] = gpu_span_all(&x->selection) },
        .push = &push,
        .groups = { 1, r->pass->tokens, 1 },
        .label = "choice of experts"
    };
    uint32_t spec[] = { r->e->tune.select_size, hp->n_expert_used };
    return forward_dispatch(r, &d, kernel_module(KERNEL_SELECT), spec, 2);
}

int forward_shared_gate_up(struct recorder *r, const struct device_layer *ly)
{
    struct scratch *x = &r->s->scratch;
    return forward_product(r, &(struct product){ .m = &ly->shared_gate_up,
                                                 .in = &x->input,
                                                 .norm = NORM_ROW,
                                                 .epilogue = EPILOGUE_SWIGLU,
                                                 .next = &x->mixed,
                                                 .label = "shared gate and up" });
}

/* Into proj, which the mixer has read by now. */
int forward_shared_down(struct recorder *r, const struct device_layer *ly)
{
    struct scratch *x = &r->s->scratch;
    return forward_product(r, &(struct product){ .m = &ly->shared_down,
                                                 .in = &x->mixed,
                                                 .norm = NORM_NONE,
                                                 .epilogue = EPILOGUE_STORE,
                                                 .out = gpu_span_all(&x->proj),
                                                 .out_stride = r->hp->n_embd,
                                                 .label = "shared down" });
}

/* A product of the chosen experts; binds from 6 on are the caller's. */
static int experts(struct recorder *r, struct gpu_dispatch *d, const struct matrix *m,
                   const struct planes *in, enum epilogue e)
{
    const struct product_tuning *t = &r->e->tune.product_experts;
    uint32_t each = m->rows / r->hp->n_expert, used = r->hp->n_expert_used;
    uint32_t rows = forward_product_rows(t, e);
    uint32_t spec[] = { t->size, t->lanes, rows,
                        1,       t->batch, e == EPILOGUE_SWIGLU ? NORM_ROW : NORM_NONE,
                        used };
    struct push_product push = {
        .rows = each, .cols = m->cols, .units = m->units, .eps = r->hp->rms_eps
    };
    d->bind[1] = m->codes;
    d->bind[2] = m->scales;
    forward_bind_planes(d, 3, in);
    d->push = &push;
    d->groups[0] = forward_divide_up(each, rows);
    d->groups[1] = r->pass->tokens * (e == EPILOGUE_SWIGLU ? used : 1);
    d->groups[2] = 1;
    const struct gpu_module *kernel = kernel_experts_module(m->format, r->e->int8, e);
    return forward_dispatch(r, d, kernel, spec, 7);
}

static int experts_gate_up(struct recorder *r, const struct device_layer *ly)
{
    struct scratch *x = &r->s->scratch;
    struct gpu_dispatch d = { .bind = { [9] = gpu_span_all(&x->selection) },
                              .label = "experts gate and up" };
    forward_bind_planes(&d, 6, &x->experts);
    return experts(r, &d, &ly->gate_up, &x->input, EPILOGUE_SWIGLU);
}

static int experts_down(struct recorder *r, const struct device_layer *ly,
                        struct gpu_span next_norm)
{
    struct scratch *x = &r->s->scratch;
    struct gpu_dispatch d = { .bind = { [6] = gpu_span_all(&x->residual),
                                        [10] = next_norm,
                                        [11] = gpu_span_all(&x->selection),
                                        [12] = gpu_span_all(&x->proj) },
                              .label = "experts down" };
    forward_bind_planes(&d, 7, &x->input);
    return experts(r, &d, &ly->down, &x->experts, EPILOGUE_RESIDUAL);
}

int forward_choose_experts(struct recorder *r, const struct device_layer *ly)
{
    return router(r, ly) < 0 ? -1 : choose(r);
}

int forward_experts(struct recorder *r, const struct device_layer *ly,
                    struct gpu_span next_norm)
{
    if (forward_expert_tiles(r))
        return forward_experts_tiled(r, ly, next_norm);
    if (router(r, ly) < 0 || forward_shared_gate_up(r, ly) < 0 || choose(r) < 0 ||
        forward_shared_down(r, ly) < 0)
        return -1;
    return experts_gate_up(r, ly) < 0 ? -1 : experts_down(r, ly, next_norm);
}
