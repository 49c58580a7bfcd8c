/* forward.c - one pass of the decoder as a list of dispatches: prefill of a
 * chunk, or one decoded token.
 *
 * Dependent steps: recurrent layer [projections] [conv, gates, delta rule]
 * (four steps for many tokens, see forward_delta.c) [out + residual] [gate, up, SwiGLU] [down + residual]; attention layer the
 * same with [q/k norm, RoPE, K/V write] [split attention] [merge + gate] in
 * place of the second; with experts see forward_moe.c for the last two; then
 * [logits] [sample]. Barriers between them are
 * planned by gpu_record from what each dispatch reads and writes. Norms are
 * folded into the products: whoever completes the residual stream also writes
 * it as the next product's input (engine/kernel.h). */
#include "engine/forward.h"

int forward_dispatch(struct recorder *r, struct gpu_dispatch *d, const struct gpu_module *m,
                     const uint32_t *spec, uint32_t n_spec)
{
    d->kernel = pipelines_get(&r->e->pipelines, m, spec, n_spec, r->err);
    if (!d->kernel)
        return -1;
    d->bind[0] = gpu_span_all(&r->s->ctl);
    return gpu_record(r->c, d, r->err);
}

/* ---- products ----------------------------------------------------------- */

uint32_t forward_divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

uint32_t forward_bind_planes(struct gpu_dispatch *d, uint32_t at, const struct planes *p)
{
    d->bind[at] = gpu_span_all(&p->x);
    d->bind[at + 1] = gpu_span_all(&p->s);
    d->bind[at + 2] = gpu_span_all(&p->ss);
    return at + 3;
}

uint32_t forward_product_rows(const struct product_tuning *t, enum epilogue e)
{
    static const uint32_t units[EPILOGUE_COUNT] = {
        [EPILOGUE_STORE] = 1, [EPILOGUE_RESIDUAL] = ACT_BLOCK,
        [EPILOGUE_SWIGLU] = 2 * ACT_BLOCK
    };
    return forward_divide_up(t->size / t->lanes * t->batch, units[e]) * units[e];
}

/* Workgroups that share the columns of each block of rows, and the rounds of
 * units that each takes: enough to fill the device, none without work. */
static uint32_t forward_split(const struct tuning *tune, const struct product_tuning *t,
                              const struct matrix *m, uint32_t *each)
{
    uint32_t groups = forward_divide_up(m->rows, forward_product_rows(t, EPILOGUE_RESIDUAL));
    uint32_t rounds = forward_divide_up(m->units, t->lanes);
    *each = rounds;
    if (groups >= tune->split_groups)
        return 1;
    *each = groups * rounds / tune->split_groups;
    if (*each < 1)
        *each = 1;
    if (forward_divide_up(rounds, *each) > SPLIT_MAX)
        *each = forward_divide_up(rounds, SPLIT_MAX);
    return forward_divide_up(rounds, *each);
}

int forward_product(struct recorder *r, const struct product *p)
{
    if (forward_tiles(r))
        return forward_tile_product(r, p);
    const struct product_tuning *t =
        r->pass->tokens > 1 ? &r->e->tune.product_many : &r->e->tune.product_one[p->epilogue];
    uint32_t rows = forward_product_rows(t, p->epilogue), split = 1, each = 1;
    if (r->pass->tokens == 1 && p->epilogue == EPILOGUE_RESIDUAL)
        split = forward_split(&r->e->tune, t, p->m, &each);
    uint32_t spec[] = { t->size, t->lanes, rows, t->tokens, t->batch, p->norm, split, each };
    struct push_product push = {
        .rows = p->m->rows, .cols = p->m->cols, .units = p->m->units,
        .eps = r->hp->rms_eps, .out_stride = p->out_stride, .out_offset = p->out_offset
    };
    struct gpu_dispatch d = {
        .bind = { [1] = p->m->codes, [2] = p->m->scales },
        .push = &push,
        .groups = { forward_divide_up(p->m->rows, rows),
                    forward_divide_up(r->pass->tokens, t->tokens), split },
        .beside = p->beside, .reads = p->m->codes.bytes + p->m->scales.bytes,
        .label = p->label
    };
    uint32_t at = forward_bind_planes(&d, 3, p->in);
    if (p->epilogue != EPILOGUE_SWIGLU)
        d.bind[at++] = p->out;
    if (p->epilogue != EPILOGUE_STORE)
        at = forward_bind_planes(&d, at, p->next);
    if (p->epilogue == EPILOGUE_RESIDUAL)
        d.bind[at++] = p->next_norm;
    if (p->epilogue == EPILOGUE_RESIDUAL)
        d.bind[at] = gpu_span_all(&r->s->scratch.parts);
    const struct gpu_module *m =
        kernel_product_module(p->m->format, r->e->int8, p->epilogue);
    return forward_dispatch(r, &d, m, spec, 8);
}

/* A product whose result completes the residual stream. source: a ROTATE_x, of
 * the input where the matrix is rotated. */
static int residual(struct recorder *r, const struct matrix *m, uint32_t source,
                    struct gpu_span next_norm, const char *label)
{
    struct scratch *x = &r->s->scratch;
    enum norm norm = source == ROTATE_HEADS && !m->rotated ? NORM_HEADS : NORM_NONE;
    if (m->rotated && forward_rotate(r, m, source, next_norm) < 0)
        return -1;
    return forward_product(r, &(struct product){
        .m = m, .in = m->rotated ? &x->rotated : &x->mixed, .norm = norm,
        .epilogue = EPILOGUE_RESIDUAL,
        .out = gpu_span_all(&x->residual), .next = &x->input, .next_norm = next_norm,
        .label = label });
}

/* What a product reads that begins with a norm of the stream: *in. shared: the
 * one before reads the same. */
static int normed_input(struct recorder *r, const struct matrix *m, struct gpu_span norm,
                        bool shared, const struct planes **in)
{
    struct scratch *x = &r->s->scratch;
    *in = m->rotated ? &x->rotated : &x->input;
    return m->rotated && !shared ? forward_rotate(r, m, ROTATE_STREAM, norm) : 0;
}

static int projections(struct recorder *r, const struct device_layer *ly, uint32_t stride)
{
    struct scratch *x = &r->s->scratch;
    for (uint32_t i = 0; i < ly->n_proj; i++) {
        const struct matrix *m = &ly->proj[i].m;
        const struct planes *in;
        bool shared = i > 0 && m->rotated == ly->proj[i - 1].m.rotated;
        if (normed_input(r, m, ly->attn_norm, shared, &in) < 0 ||
            forward_product(r, &(struct product){
                .m = m, .in = in, .norm = NORM_ROW,
                .epilogue = EPILOGUE_STORE, .out = gpu_span_all(&x->proj),
                .out_stride = stride, .out_offset = ly->proj[i].offset,
                .beside = shared, .label = "projections" }) < 0)
            return -1;
    }
    return 0;
}

/* ---- mixers ------------------------------------------------------------- */

static int rotate_and_store(struct recorder *r, const struct device_layer *ly,
                            struct gpu_span k, struct gpu_span v)
{
    struct scratch *x = &r->s->scratch;
    const struct proj_layout *lay = &r->e->weights.attention;
    struct push_qk push = {
        .n_head = r->hp->n_head, .n_head_kv = r->hp->n_head_kv, .proj_stride = lay->stride,
        .q_width = r->hp->q_width, .k_offset = lay->k, .v_offset = lay->v,
        .rope_pairs = r->hp->rope_dims / 2, .eps = r->hp->rms_eps
    };
    struct gpu_dispatch d = {
        .bind = { [1] = gpu_span_all(&x->proj), [2] = ly->q_norm, [3] = ly->k_norm,
                  [4] = gpu_span_all(&r->s->rope), [5] = gpu_span_all(&x->q), [6] = k,
                  [7] = v },
        .push = &push,
        .groups = { r->hp->n_head + r->hp->n_head_kv, r->pass->tokens, 1 },
        .label = "rope and kv"
    };
    uint32_t spec[TUNING_SPEC], n = tuning_qk(&r->e->tune, r->hp->head_dim, spec);
    enum kernel_id id = r->s->params.kv == KV_F32 ? KERNEL_QK_F32 : KERNEL_QK_F16;
    return forward_dispatch(r, &d, kernel_module(id), spec, n);
}

static int attend(struct recorder *r, struct gpu_span k, struct gpu_span v)
{
    struct scratch *x = &r->s->scratch;
    struct push_attend push = { .n_head = r->hp->n_head, .n_head_kv = r->hp->n_head_kv,
                                .splits = r->pass->splits, .scale = r->hp->attn_scale };
    struct gpu_dispatch d = {
        .bind = { [1] = gpu_span_all(&x->q), [2] = k, [3] = v,
                  [4] = gpu_span_all(&x->partials) },
        .push = &push,
        .groups = { r->hp->n_head_kv, r->pass->splits, r->pass->tokens },
        .label = "attention"
    };
    uint32_t spec[TUNING_SPEC];
    uint32_t n = tuning_attend(&r->e->tune, r->hp->head_dim,
                               r->hp->n_head / r->hp->n_head_kv, spec);
    enum kernel_id id = r->s->params.kv == KV_F32 ? KERNEL_ATTEND_F32 : KERNEL_ATTEND_F16;
    return forward_dispatch(r, &d, kernel_module(id), spec, n);
}

static int merge(struct recorder *r, const struct device_layer *ly)
{
    struct scratch *x = &r->s->scratch;
    struct push_merge push = { .n_head = r->hp->n_head, .splits = r->pass->splits,
                               .proj_stride = r->e->weights.attention.stride,
                               .q_width = r->hp->q_width };
    struct gpu_dispatch d = {
        .bind = { [1] = gpu_span_all(&x->partials), [2] = gpu_span_all(&x->proj) },
        .push = &push,
        .groups = { r->hp->n_head, r->pass->tokens, 1 },
        .label = "attention merge"
    };
    forward_bind_planes(&d, 3, &x->mixed);
    uint32_t spec[TUNING_SPEC];
    uint32_t n = tuning_merge(&r->e->tune, forward_mixed_int8(r, ly), r->hp->head_dim,
                              spec);
    return forward_dispatch(r, &d, kernel_module(KERNEL_MERGE), spec, n);
}

/* ---- the pass ----------------------------------------------------------- */

static int embed(struct recorder *r)
{
    struct scratch *x = &r->s->scratch;
    const struct matrix *m = &r->e->weights.embed;
    struct push_embed push = { .cols = m->cols, .units = m->units };
    struct gpu_dispatch d = {
        .bind = { [1] = m->codes, [2] = m->scales, [3] = gpu_span_all(&x->residual),
                  [7] = r->e->weights.layers[0].attn_norm },
        .push = &push,
        .groups = { 1, r->pass->tokens, 1 },
        .label = "embedding"
    };
    forward_bind_planes(&d, 4, &x->input);
    uint32_t spec[] = { r->e->tune.embed_size, r->e->int8 };
    if (forward_dispatch(r, &d, kernel_embed_module(m->format), spec, 2) < 0)
        return -1;
    return m->rotated ? forward_unrotate(r, m, r->e->weights.layers[0].attn_norm) : 0;
}

static int attention_mixer(struct recorder *r, const struct device_layer *ly, uint32_t index,
                           bool only_store)
{
    const struct gpu_buffer *kv = &r->s->kv[index];
    uint64_t plane = session_kv_plane_bytes(r->s);
    struct gpu_span k = gpu_span_at(kv, 0, plane), v = gpu_span_at(kv, plane, plane);
    if (rotate_and_store(r, ly, k, v) < 0)
        return -1;
    if (only_store)
        return 0;
    return attend(r, k, v) < 0 || merge(r, ly) < 0 ? -1 : 0;
}

static int feed_forward(struct recorder *r, const struct device_layer *ly,
                        struct gpu_span next_norm)
{
    struct scratch *x = &r->s->scratch;
    const struct planes *in;
    if (r->hp->arch->moe)
        return forward_experts(r, ly, next_norm);
    if (normed_input(r, &ly->gate_up, ly->post_norm, false, &in) < 0)
        return -1;
    struct product gate_up = { .m = &ly->gate_up, .in = in, .norm = NORM_ROW,
                               .label = "gate and up" };
    if (ly->down.rotated) {
        gate_up.epilogue = EPILOGUE_STORE;
        gate_up.out = gpu_span_all(&x->proj);
        gate_up.out_stride = ly->gate_up.rows;
    } else {
        gate_up.epilogue = EPILOGUE_SWIGLU;
        gate_up.next = &x->mixed;
    }
    if (forward_product(r, &gate_up) < 0)
        return -1;
    return residual(r, &ly->down, ROTATE_SWIGLU, next_norm, "down");
}

/* Layer i; `index` counts the layers of its kind before it. Without a head the
 * last layer has nothing to do once its own state is written. */
static int layer(struct recorder *r, uint32_t i, uint32_t index)
{
    const struct device_weights *w = &r->e->weights;
    const struct device_layer *ly = &w->layers[i];
    bool last = i + 1 == w->n_layers, only_state = last && !r->pass->head;
    struct gpu_span next = last ? w->output_norm : w->layers[i + 1].attn_norm;
    if (projections(r, ly, ly->recurrent ? w->recurrent.stride : w->attention.stride) < 0)
        return -1;
    if (ly->recurrent ? forward_recurrent(r, ly, index) < 0
                      : attention_mixer(r, ly, index, only_state) < 0)
        return -1;
    if (only_state)
        return 0;
    if (residual(r, &ly->out, ly->recurrent ? ROTATE_HEADS : ROTATE_FLOATS, ly->post_norm,
                 "mixer out") < 0)
        return -1;
    return feed_forward(r, ly, next);
}

static int head(struct recorder *r)
{
    struct session *s = r->s;
    const struct matrix *m = &r->e->weights.output;
    const struct planes *in;
    if (normed_input(r, m, r->e->weights.output_norm, false, &in) < 0 ||
        forward_product(r, &(struct product){
            .m = m, .in = in, .norm = NORM_ROW, .epilogue = EPILOGUE_STORE,
            .out = gpu_span_all(&s->scratch.logits), .out_stride = m->rows,
            .label = "logits" }) < 0)
        return -1;
    struct push_sample push = { .advance = 1 };
    struct gpu_dispatch d = {
        .bind = { [1] = gpu_span_all(&s->scratch.logits), [2] = gpu_span_all(&s->counts),
                  [3] = gpu_span_all(&s->out) },
        .push = &push,
        .groups = { 1, 1, 1 },
        .label = "sample"
    };
    uint32_t spec[] = { r->e->tune.sample_size };
    return forward_dispatch(r, &d, kernel_module(KERNEL_SAMPLE), spec, 1);
}

int forward_record(struct session *s, struct gpu_commands *c, const struct pass *p,
                   struct err *err)
{
    struct recorder r = { .s = s, .e = s->engine, .hp = &s->engine->model->hp, .c = c,
                          .pass = p, .err = err };
    uint32_t seen[2] = { 0, 0 };
    if (gpu_record_begin(c, err) < 0 || embed(&r) < 0)
        return -1;
    for (uint32_t i = 0; i < r.hp->n_layer; i++) {
        bool recurrent = r.e->weights.layers[i].recurrent;
        if (layer(&r, i, seen[recurrent]++) < 0)
            return -1;
    }
    if (p->head && head(&r) < 0)
        return -1;
    return gpu_record_end(c, err);
}
