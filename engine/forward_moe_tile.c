/* forward_moe_tile.c - the experts of a chunk. The tokens that share an expert
 * are brought together, so that its weights are read once for all of them:
 * [router] [choice] [grouping] [gate and up of the experts | of the shared one]
 * [their down] [weighted sum and residual]. */
#include "engine/forward.h"

bool forward_expert_tiles(const struct recorder *r)
{
    return forward_tiles(r) && r->pass->tokens >= r->e->tune.expert_tile_from;
}

static uint32_t list_at(const struct recorder *r)
{
    return session_group_tiles(r->e, r->pass->tokens) * GROUP_TILE + GROUP_HEAD;
}

static int group(struct recorder *r)
{
    struct scratch *x = &r->s->scratch;
    const struct tuning *t = &r->e->tune;
    struct push_group push = { .experts = r->hp->n_expert, .list_at = list_at(r) };
    struct gpu_dispatch d = {
        .bind = { [1] = gpu_span_all(&x->selection), [2] = gpu_span_all(&x->groups) },
        .push = &push,
        .groups = { 1, 1, 1 },
        .label = "experts grouped"
    };
    uint32_t spec[] = { t->select_size, r->hp->n_expert_used, t->expert_tile.tokens };
    return forward_dispatch(r, &d, kernel_module(KERNEL_GROUP), spec, 3);
}

/* A product of all experts; what it writes is bound from 5 on by the caller. */
static int product(struct recorder *r, struct gpu_dispatch *d, const struct matrix *m,
                   enum epilogue e)
{
    struct scratch *x = &r->s->scratch;
    const struct tile_tuning *t = &r->e->tune.expert_tile;
    uint32_t spec[TUNING_SPEC + 2], each = m->rows / r->hp->n_expert;
    tuning_tile_spec(t, gpu_info(r->e->gpu)->subgroup_size, spec);
    spec[TUNING_SPEC] = r->e->int8;
    spec[TUNING_SPEC + 1] = r->hp->n_expert_used;
    struct push_product push = { .rows = each,
                                 .cols = m->cols,
                                 .units = m->units,
                                 .eps = r->hp->rms_eps,
                                 .out_stride = each,
                                 .list_at = list_at(r) };
    d->bind[1] = m->codes;
    d->bind[2] = m->scales;
    d->bind[3] = gpu_span_all(&x->halves);
    d->bind[4] = gpu_span_all(&x->factors);
    d->push = &push;
    d->groups[0] = session_group_tiles(r->e, r->pass->tokens);
    d->groups[1] = forward_divide_up(each, t->rows);
    d->groups[2] = 1;
    d->reads = m->codes.bytes + m->scales.bytes;
    const struct gpu_module *kernel =
        kernel_expert_tile_module(m->format, r->e->tiles == TILES_MATRIX, e);
    return forward_dispatch(r, d, kernel, spec, TUNING_SPEC + 2);
}

/* Reads what the shared expert's gate and up has turned to f16. */
static int gate_up(struct recorder *r, const struct device_layer *ly)
{
    struct scratch *x = &r->s->scratch;
    struct gpu_dispatch d = { .bind = { [8] = gpu_span_all(&x->groups) },
                              .label = "experts gate and up" };
    forward_bind_planes(&d, 5, &x->experts);
    return product(r, &d, &ly->gate_up, EPILOGUE_SWIGLU);
}

static int down(struct recorder *r, const struct device_layer *ly)
{
    struct scratch *x = &r->s->scratch;
    struct gpu_dispatch d = {
        .bind = { [5] = gpu_span_all(&x->expert_out), [6] = gpu_span_all(&x->groups) },
        .label = "experts down"
    };
    if (forward_to_half(r, &x->experts, ly->down.cols, NORM_NONE, r->hp->n_expert_used) <
        0)
        return -1;
    return product(r, &d, &ly->down, EPILOGUE_STORE);
}

static int combine(struct recorder *r, struct gpu_span next_norm)
{
    struct scratch *x = &r->s->scratch;
    struct push_combine push = { .cols = r->hp->n_embd };
    uint32_t size = r->e->tune.half_size,
             blocks = size / gpu_info(r->e->gpu)->subgroup_size;
    struct gpu_dispatch d = { .bind = { [1] = gpu_span_all(&x->expert_out),
                                        [2] = gpu_span_all(&x->residual),
                                        [6] = next_norm,
                                        [7] = gpu_span_all(&x->selection),
                                        [8] = gpu_span_all(&x->proj) },
                              .push = &push,
                              .groups = { forward_divide_up(r->hp->n_embd / ACT_BLOCK,
                                                            blocks),
                                          r->pass->tokens, 1 },
                              .label = "experts combined" };
    forward_bind_planes(&d, 3, &x->input);
    uint32_t spec[] = { size, r->e->int8, r->hp->n_expert_used };
    return forward_dispatch(r, &d, kernel_module(KERNEL_COMBINE), spec, 3);
}

int forward_experts_tiled(struct recorder *r, const struct device_layer *ly,
                          struct gpu_span next_norm)
{
    if (forward_choose_experts(r, ly) < 0 || group(r) < 0 ||
        forward_shared_gate_up(r, ly) < 0 || gate_up(r, ly) < 0 ||
        forward_shared_down(r, ly) < 0)
        return -1;
    return down(r, ly) < 0 ? -1 : combine(r, next_norm);
}
