/* session_memory.c - the device memory of a session: caches, recurrent state,
 * scratch, and the RoPE table. */
#include "engine/session.h"

#include "base/mem.h"

#include <stdlib.h>

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

bool session_rewinds(const struct session *s)
{
    return s->engine->model->hp.n_recurrent == 0;
}

uint64_t session_kv_plane_bytes(const struct session *s)
{
    const struct hparams *hp = &s->engine->model->hp;
    uint64_t value = s->params.kv == KV_F32 ? 4 : 2;
    return rounded((uint64_t)s->params.ctx_tokens * hp->n_head_kv * hp->head_dim * value);
}

uint32_t session_least_splits(const struct session *s, size_t depth)
{
    const struct tuning *t = &s->engine->tune;
    const struct hparams *hp = &s->engine->model->hp;
    uint32_t most = tuning_max_positions(t, hp->head_dim, hp->n_head / hp->n_head_kv);
    uint32_t splits = t->prefill_splits;
    while (depth / splits >= most)
        splits *= 2;
    return splits;
}

static void plan_state(struct state_layout *l, const struct hparams *hp)
{
    l->matrix_bytes = rounded((uint64_t)hp->n_v_heads * STATE_DIM * STATE_DIM * 4);
    l->history_bytes = rounded((uint64_t)2 * 3 * hp->conv_dim * 4);
    l->layer_bytes = l->matrix_bytes + l->history_bytes;
    l->bytes = l->layer_bytes * hp->n_recurrent;
    if (!l->bytes)
        l->bytes = 256;
}

struct opener {
    struct gpu *gpu;
    struct err *err;
    int rc;            /* of the calls so far */
    uint64_t *planned; /* not NULL: nothing is opened, only its bytes are added */
};

static void open_buffer(struct opener *o, struct gpu_buffer *b, uint64_t bytes,
                        enum gpu_use use, const char *label)
{
    if (o->planned)
        *o->planned += rounded(bytes);
    else if (o->rc == 0)
        o->rc = gpu_buffer_open(b, o->gpu, bytes, use, label, o->err);
}

/* Planes of an activation vector of n values for `tokens` tokens. */
static void open_planes(struct opener *o, struct planes *p, uint64_t tokens, uint64_t n,
                        const char *label)
{
    open_buffer(o, &p->x, tokens * n * 4, GPU_DEVICE, label);
    open_buffer(o, &p->s, tokens * n / ACT_BLOCK * 8, GPU_DEVICE, label);
    open_buffer(o, &p->ss, tokens * n / ACT_BLOCK * 4, GPU_DEVICE, label);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint32_t session_group_tiles(const struct engine *e, uint32_t tokens)
{
    const struct hparams *hp = &e->model->hp;
    uint32_t pairs = tokens * hp->n_expert_used;
    uint32_t used = pairs < hp->n_expert ? pairs : hp->n_expert;
    return pairs / e->tune.expert_tile.tokens + used;
}

static void open_experts(struct opener *o, struct scratch *x, const struct engine *e,
                         uint32_t t)
{
    const struct hparams *hp = &e->model->hp;
    uint64_t words = 0, made = 0, pairs = (uint64_t)t * hp->n_expert_used;
    if (e->tiles != TILES_NONE) {
        words = GROUP_HEAD + (uint64_t)GROUP_TILE * session_group_tiles(e, t) + pairs;
        made = pairs * hp->n_embd;
    }
    open_buffer(o, &x->groups, larger(words, 1) * 4, GPU_DEVICE, "groups of experts");
    open_buffer(o, &x->expert_out, larger(made, 1) * 4, GPU_DEVICE, "what experts made");
    open_planes(o, &x->experts, pairs, hp->n_ff_expert, "expert results");
    open_buffer(o, &x->router, (uint64_t)t * (hp->n_expert + 1) * 4, GPU_DEVICE,
                "router logits");
    open_buffer(o, &x->selection, (uint64_t)t * (2 * hp->n_expert_used + 1) * 4,
                GPU_DEVICE, "selected experts");
}

/* Bytes that can be bound are there also where the rule is not used. */
static void open_delta(struct opener *o, const struct session *s,
                       struct gpu_buffer *delta)
{
    const struct hparams *hp = &s->engine->model->hp;
    const struct delta_tuning *t = &s->engine->tune.delta_many;
    uint64_t bytes[DELTA_SCRATCH] = { 4, 4, 4, 4, 4 };
    if (hp->n_recurrent && t->from && s->params.chunk_tokens >= t->from)
        delta_chunk_scratch(
            t, &(struct push_delta){ .n_k = hp->n_k_heads, .n_v = hp->n_v_heads },
            s->params.chunk_tokens, bytes);
    for (int i = 0; i < DELTA_SCRATCH; i++)
        open_buffer(o, &delta[i], bytes[i], GPU_DEVICE, "delta rule scratch");
}

static void open_scratch(struct opener *o, struct session *s)
{
    const struct engine *e = s->engine;
    const struct hparams *hp = &e->model->hp;
    struct scratch *x = &s->scratch;
    uint64_t t = s->params.chunk_tokens, heads = (uint64_t)hp->n_head * hp->head_dim;
    open_buffer(o, &x->residual, t * hp->n_embd * 4, GPU_DEVICE, "residual stream");
    open_planes(o, &x->input, t, hp->n_embd, "layer input");
    uint64_t mixed =
        larger(larger(hp->value_dim, heads), larger(hp->n_ff, hp->n_ff_shared));
    open_planes(o, &x->mixed, t, mixed, "mixer result");
    open_buffer(o, &x->parts, (uint64_t)(hp->n_embd + 1024) * (SPLIT_MAX + 1) * 4,
                GPU_DEVICE, "parts of products");
    /* Whole tiles of tokens, rows of whole HALF_COLS. */
    uint64_t halves = (t + 127) / 128 * 128 * 2 * (larger(mixed, hp->n_embd) + HALF_COLS);
    uint64_t vectors = larger(t, t * hp->n_expert_used);
    halves = larger(halves, vectors * 2 * (hp->n_ff_expert + HALF_COLS));
    if (e->tiles == TILES_NONE)
        halves = 0;
    open_buffer(o, &x->halves, larger(halves, 4), GPU_DEVICE, "activations in f16");
    open_buffer(o, &x->factors, vectors * 4, GPU_DEVICE, "activation factors");
    uint64_t stride = larger(e->weights.recurrent.stride, e->weights.attention.stride);
    if (e->model->w.rotation.on) {
        open_planes(o, &x->rotated, t, larger(mixed, hp->n_embd), "rotated input");
        stride = larger(stride, 2 * (uint64_t)hp->n_ff);
    }
    if (hp->arch->moe) {
        stride = larger(stride, hp->n_embd);
        open_experts(o, x, e, s->params.chunk_tokens);
    }
    open_buffer(o, &x->proj, t * stride * 4, GPU_DEVICE, "projections");
    open_buffer(o, &x->q, larger(t * heads * 4, 4), GPU_DEVICE, "queries");
    uint32_t least = session_least_splits(s, s->params.ctx_tokens);
    uint64_t splits = larger(t * least, larger(e->tune.max_splits, least));
    open_buffer(o, &x->partials, splits * hp->n_head * (hp->head_dim + 2) * 4, GPU_DEVICE,
                "attention partials");
    open_delta(o, s, x->delta);
    open_buffer(o, &x->logits, (uint64_t)hp->n_vocab * 4, GPU_DEVICE, "logits");
}

static int fill_rope(struct session *s, struct err *err)
{
    const struct hparams *hp = &s->engine->model->hp;
    uint32_t pairs = hp->rope_dims / 2, rows = 1024;
    float *table = mem_array((size_t)rows * pairs * 2, sizeof *table);
    double *frequencies = mem_array(pairs, sizeof *frequencies);
    int rc = 0;
    rope_frequencies(&hp->scaling, hp->rope_base, pairs, frequencies);
    for (uint32_t first = 0; rc == 0 && first < s->params.ctx_tokens; first += rows) {
        uint32_t n = s->params.ctx_tokens - first;
        n = n < rows ? n : rows;
        for (uint32_t p = 0; p < n; p++)
            rope_turns(&hp->scaling, frequencies, pairs, first + p,
                       table + 2 * (size_t)p * pairs);
        uint64_t row_bytes = (uint64_t)pairs * 8;
        struct gpu_span to = gpu_span_at(&s->rope, first * row_bytes, n * row_bytes);
        rc = gpu_upload(s->engine->gpu, to, table, err);
    }
    free(table);
    free(frequencies);
    return rc;
}

static int clear(struct session *s, struct err *err)
{
    struct gpu *gpu = s->engine->gpu;
    /* Cleared by writing zeros: what device memory held before may be NaN. */
    if (gpu_fill(gpu, gpu_span_all(&s->state), 0, err) < 0 ||
        gpu_fill(gpu, gpu_span_all(&s->scratch.parts), 0, err) < 0 ||
        gpu_fill(gpu, gpu_span_all(&s->counts), 0, err) < 0)
        return -1;
    return fill_rope(s, err);
}

static void open_kv(struct opener *o, struct session *s)
{
    s->n_kv = s->engine->model->hp.n_attention;
    s->kv = mem_zalloc(larger(s->n_kv, 1) * sizeof *s->kv);
    for (uint32_t i = 0; i < s->n_kv; i++)
        open_buffer(o, &s->kv[i], 2 * session_kv_plane_bytes(s), GPU_DEVICE, "KV cache");
}

static void open_state(struct opener *o, struct session *s)
{
    plan_state(&s->layout, &s->engine->model->hp);
    open_buffer(o, &s->state, s->layout.bytes, GPU_DEVICE, "recurrent state");
}

static void open_rest(struct opener *o, struct session *s)
{
    const struct hparams *hp = &s->engine->model->hp;
    open_buffer(o, &s->ctl, sizeof(struct ctl_block), GPU_SHARED, "control block");
    open_buffer(o, &s->out, sizeof(struct out_block), GPU_READBACK, "output block");
    open_buffer(o, &s->counts, (uint64_t)hp->n_vocab * 4, GPU_DEVICE, "token counts");
    uint64_t rope = (uint64_t)s->params.ctx_tokens * hp->rope_dims * 4;
    open_buffer(o, &s->rope, larger(rope, 4), GPU_DEVICE, "RoPE table");
    open_scratch(o, s);
}

int session_memory_open(struct session *s, struct err *err)
{
    struct opener o = { .gpu = s->engine->gpu, .err = err };
    open_state(&o, s);
    open_kv(&o, s);
    open_rest(&o, s);
    return o.rc < 0 ? -1 : clear(s, err);
}

void session_memory_plan(const struct session *s, struct model_memory *out)
{
    struct session planned = { .engine = s->engine, .params = s->params };
    struct opener state = { .planned = &out->state }, kv = { .planned = &out->kv };
    struct opener rest = { .planned = &out->scratch };
    open_state(&state, &planned);
    open_kv(&kv, &planned);
    open_rest(&rest, &planned);
    free(planned.kv);
}

static void close_planes(struct planes *p, struct gpu *gpu)
{
    gpu_buffer_close(&p->x, gpu);
    gpu_buffer_close(&p->s, gpu);
    gpu_buffer_close(&p->ss, gpu);
}

void session_memory_close(struct session *s)
{
    struct gpu *gpu = s->engine->gpu;
    struct gpu_buffer *all[] = { &s->ctl,
                                 &s->out,
                                 &s->counts,
                                 &s->rope,
                                 &s->state,
                                 &s->scratch.residual,
                                 &s->scratch.proj,
                                 &s->scratch.q,
                                 &s->scratch.partials,
                                 &s->scratch.logits,
                                 &s->scratch.parts,
                                 &s->scratch.halves,
                                 &s->scratch.factors,
                                 &s->scratch.groups,
                                 &s->scratch.expert_out,
                                 &s->scratch.router,
                                 &s->scratch.selection };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gpu_buffer_close(all[i], gpu);
    for (int i = 0; i < DELTA_SCRATCH; i++)
        gpu_buffer_close(&s->scratch.delta[i], gpu);
    close_planes(&s->scratch.input, gpu);
    close_planes(&s->scratch.mixed, gpu);
    close_planes(&s->scratch.rotated, gpu);
    close_planes(&s->scratch.experts, gpu);
    for (uint32_t i = 0; s->kv && i < s->n_kv; i++)
        gpu_buffer_close(&s->kv[i], gpu);
    free(s->kv);
    s->kv = NULL;
}
