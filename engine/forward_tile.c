/* forward_tile.c - products of a chunk, tile by tile in f16 (shaders/tile.comp).
 *
 * The activations are turned to f16 first, once for the products that share
 * them. Planes in, planes out, so the other kernels do not notice. */
#include "engine/forward.h"

bool forward_tiles(const struct recorder *r)
{
    return r->e->tiles != TILES_NONE && r->pass->tokens >= r->e->tune.tile_from;
}

int forward_to_half(struct recorder *r, const struct planes *in, uint32_t cols,
                    enum norm norm, uint32_t vectors)
{
    struct scratch *x = &r->s->scratch;
    struct push_half push = { .cols = cols, .eps = r->hp->rms_eps, .vectors = vectors };
    struct gpu_dispatch d = {
        .bind = { [4] = gpu_span_all(&x->halves), [5] = gpu_span_all(&x->factors) },
        .push = &push,
        .groups = { 1, r->pass->tokens * vectors, 1 },
        .label = "activations to f16"
    };
    forward_bind_planes(&d, 1, in);
    uint32_t spec[] = { r->e->tune.half_size, r->e->int8, norm };
    return forward_dispatch(r, &d, kernel_module(KERNEL_TO_HALF), spec, 3);
}

int forward_tile_product(struct recorder *r, const struct product *p)
{
    if (!p->beside && forward_to_half(r, p->in, p->m->cols, p->norm, 1) < 0)
        return -1;
    struct scratch *x = &r->s->scratch;
    uint32_t spec[TUNING_SPEC + 1];
    const struct tile_tuning *t = tuning_tile(&r->e->tune, p->m->rows, r->pass->tokens,
                                              gpu_info(r->e->gpu)->subgroup_size, spec);
    spec[TUNING_SPEC] = r->e->int8;
    struct push_product push = { .rows = p->m->rows,
                                 .cols = p->m->cols,
                                 .units = p->m->units,
                                 .eps = r->hp->rms_eps,
                                 .out_stride = p->out_stride,
                                 .out_offset = p->out_offset };
    struct gpu_dispatch d = { .bind = { [1] = p->m->codes,
                                        [2] = p->m->scales,
                                        [3] = gpu_span_all(&x->halves),
                                        [4] = gpu_span_all(&x->factors) },
                              .push = &push,
                              .groups = { forward_divide_up(r->pass->tokens, t->tokens),
                                          forward_divide_up(p->m->rows, t->rows), 1 },
                              .beside = p->beside,
                              .reads = p->m->codes.bytes + p->m->scales.bytes,
                              .label = p->label };
    uint32_t at = 5;
    if (p->epilogue != EPILOGUE_SWIGLU)
        d.bind[at++] = p->out;
    if (p->epilogue != EPILOGUE_STORE)
        at = forward_bind_planes(&d, at, p->next);
    if (p->epilogue == EPILOGUE_RESIDUAL)
        d.bind[at] = p->next_norm;
    const struct gpu_module *m =
        kernel_tile_module(p->m->format, r->e->tiles == TILES_MATRIX, p->epilogue);
    return forward_dispatch(r, &d, m, spec, TUNING_SPEC + 1);
}
