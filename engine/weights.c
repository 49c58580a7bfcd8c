/* weights.c - which tensors become which device matrices.
 *
 * A layer's input projections land side by side in one row per token; tensors
 * of equal format that are neighbours there are joined into one matrix, so
 * that one dispatch computes them. What a layer is made of is planned once, for
 * sizes, checks and loading alike. */
#include "engine/weights.h"

#include "base/mem.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct loader {
    struct device_weights *w;
    const struct rotation *rotation;
    const struct weights_progress *progress;
    uint64_t total;
    struct err *err;
};

static void tell(const struct loader *l)
{
    if (l->progress && l->progress->tell)
        l->progress->tell(l->progress->arg, l->total - l->w->arena.wanted, l->total);
}

/* Signs of a width, uploaded when they are first asked for. */
static int load_signs(struct loader *l, struct gpu_span *out, uint32_t width)
{
    struct device_weights *w = l->w;
    for (uint32_t i = 0; i < w->n_signs; i++)
        if (w->signs[i].bytes == 4ull * width) {
            *out = w->signs[i];
            return 0;
        }
    float *signs = mem_array(width, sizeof *signs);
    rotation_signs(l->rotation, width, signs);
    int rc = w->n_signs == ROTATION_MAX_WIDTHS
                 ? err_set(l->err, "too many widths of rotated matrices")
                 : arena_take(out, &w->arena, 4ull * width, l->err);
    if (rc == 0)
        rc = gpu_upload(w->arena.gpu, *out, signs, l->err);
    if (rc == 0)
        w->signs[w->n_signs++] = *out;
    free(signs);
    return rc;
}

static int load_matrix(struct loader *l, struct matrix *m, const struct pack_source *s)
{
    int rc = pack_matrix(m, &l->w->arena, s, l->err);
    m->rotated = s->parts[0]->rotated;
    if (rc == 0 && m->rotated)
        rc = load_signs(l, &m->signs, m->cols);
    tell(l);
    return rc;
}

static int load_vector(struct loader *l, struct gpu_span *out, const struct tensor *t)
{
    return pack_vector(out, &l->w->arena, t, l->err);
}

/* ---- what a layer is made of --------------------------------------------- */

/* A matrix of a layer: its source, and where it goes in struct device_layer. */
struct plan {
    struct pack_source source;
    size_t at;
};

struct layer_plan {
    struct plan v[PROJ_MAX + 6];
    uint32_t n;
};

static struct pack_source single(const struct tensor *t)
{
    return (struct pack_source){ .parts = { t }, .n_parts = 1 };
}

static struct pack_source pair(const struct tensor *gate, const struct tensor *up)
{
    return (struct pack_source){ .parts = { gate, up }, .n_parts = 2, .interleave = true };
}

static void add(struct layer_plan *p, size_t at, struct pack_source source)
{
    p->v[p->n++] = (struct plan){ source, at };
}

static void add_projection(struct layer_plan *p, struct pack_source source)
{
    size_t at = offsetof(struct device_layer, proj[0].m) + p->n * sizeof(struct projection);
    add(p, at, source);
}

/* A tensor that follows the last one in proj; it joins it in one matrix if
 * both have the same format and input. */
static void join(struct layer_plan *p, const struct tensor *t)
{
    struct pack_source *s = p->n ? &p->v[p->n - 1].source : NULL;
    if (s && !s->rows[0].run && s->parts[0]->type == t->type &&
        s->parts[0]->rotated == t->rotated)
        s->parts[s->n_parts++] = t;
    else
        add_projection(p, single(t));
}

/* The old form of the recurrent projections: per key head its q, k, v and z
 * rows. The kernels want all q, all k, all v, all z. */
static struct pack_source regrouped(const struct tensor *t, const struct hparams *hp)
{
    uint32_t dim = hp->state_dim, values = hp->n_v_heads / hp->n_k_heads * dim;
    uint32_t group = 2 * dim + 2 * values;
    return (struct pack_source){
        .parts = { t, t, t, t }, .n_parts = 4,
        .rows = { { 0, dim, group }, { dim, dim, group }, { 2 * dim, values, group },
                  { 2 * dim + values, values, group } }
    };
}

/* The projections in the order of their results. */
static void plan_projections(struct layer_plan *p, const struct layer *ly,
                             const struct hparams *hp)
{
    if (!ly->recurrent) {
        join(p, ly->q);
        join(p, ly->k);
        join(p, ly->v);
        return;
    }
    if (ly->qkv && ly->gate) {
        join(p, ly->qkv);
        join(p, ly->gate);
    } else {
        add_projection(p, regrouped(ly->ssm_in, hp));
    }
    if (ly->ba) {
        join(p, ly->ba);
    } else {
        join(p, ly->beta);
        join(p, ly->alpha);
    }
}

/* Gate and up rows of all experts; fused tensors have an expert's gate rows,
 * then its up rows. */
static struct pack_source experts_gate_up(const struct layer *ly, uint32_t width)
{
    if (!ly->gate_up_exps)
        return pair(ly->gate_exps, ly->up_exps);
    struct pack_source s = pair(ly->gate_up_exps, ly->gate_up_exps);
    s.rows[0] = (struct pack_rows){ 0, width, 2 * width };
    s.rows[1] = (struct pack_rows){ width, width, 2 * width };
    return s;
}

static void plan_ffn(struct layer_plan *p, const struct layer *ly, const struct hparams *hp)
{
    if (!hp->arch->moe) {
        add(p, offsetof(struct device_layer, gate_up), pair(ly->ffn_gate, ly->ffn_up));
        add(p, offsetof(struct device_layer, down), single(ly->ffn_down));
        return;
    }
    struct pack_source router = { .parts = { ly->router, ly->shared_router }, .n_parts = 2,
                                  .exact = true };
    add(p, offsetof(struct device_layer, router), router);
    add(p, offsetof(struct device_layer, gate_up), experts_gate_up(ly, hp->n_ff_expert));
    add(p, offsetof(struct device_layer, down), single(ly->down_exps));
    add(p, offsetof(struct device_layer, shared_gate_up),
        pair(ly->gate_shexp, ly->up_shexp));
    add(p, offsetof(struct device_layer, shared_down), single(ly->down_shexp));
}

static struct layer_plan plan_layer(const struct model *m, uint32_t i)
{
    const struct layer *ly = &m->w.layers[i];
    struct layer_plan p = { .n = 0 };
    plan_projections(&p, ly, &m->hp);
    add(&p, offsetof(struct device_layer, out), single(ly->recurrent ? ly->ssm_out : ly->o));
    plan_ffn(&p, ly, &m->hp);
    return p;
}

/* Small tensors of a layer that the device reads as f32. */
static const struct {
    size_t from, to; /* in struct layer, in struct device_layer */
} vectors[] = {
#define VECTOR(name) { offsetof(struct layer, name), offsetof(struct device_layer, name) }
    VECTOR(attn_norm), VECTOR(post_norm), VECTOR(conv1d), VECTOR(dt),
    VECTOR(a),         VECTOR(ssm_norm),  VECTOR(q_norm), VECTOR(k_norm),
#undef VECTOR
};

enum { N_VECTORS = sizeof vectors / sizeof *vectors };

/* The tensor of a row of the table; NULL where a layer has none. */
static const struct tensor *vector_of(const struct layer *ly, size_t k)
{
    const void *at = (const char *)ly + vectors[k].from;
    return *(const struct tensor *const *)at;
}

/* ---- loading ------------------------------------------------------------ */

static int load_layer(struct loader *l, struct device_layer *d, const struct model *m,
                      uint32_t i)
{
    const struct layer *ly = &m->w.layers[i];
    struct layer_plan plan = plan_layer(m, i);
    d->recurrent = ly->recurrent;
    for (uint32_t k = 0; k < plan.n; k++) {
        struct matrix made;
        if (load_matrix(l, &made, &plan.v[k].source) < 0)
            return -1;
        memcpy((char *)d + plan.v[k].at, &made, sizeof made);
    }
    uint32_t offset = 0;
    while (d->n_proj < PROJ_MAX && d->proj[d->n_proj].m.rows) {
        d->proj[d->n_proj].offset = offset;
        offset += d->proj[d->n_proj++].m.rows;
    }
    for (size_t k = 0; k < N_VECTORS; k++) {
        const struct tensor *t = vector_of(ly, k);
        struct gpu_span made;
        if (t && load_vector(l, &made, t) < 0)
            return -1;
        if (t)
            memcpy((char *)d + vectors[k].to, &made, sizeof made);
    }
    return 0;
}

static uint64_t vector_bytes(const struct tensor *t)
{
    return t ? (t->n_elements * 4 + 255) / 256 * 256 : 0;
}

static uint64_t layer_bytes(const struct model *m, uint32_t i)
{
    struct layer_plan plan = plan_layer(m, i);
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < plan.n; k++)
        bytes += pack_matrix_bytes(&plan.v[k].source);
    for (size_t k = 0; k < N_VECTORS; k++)
        bytes += vector_bytes(vector_of(&m->w.layers[i], k));
    return bytes;
}

/* Of the signs of every width that rotated matrices have. */
static uint64_t signs_bytes(const struct model *m)
{
    uint64_t widths[ROTATION_MAX_WIDTHS], bytes = 0;
    size_t n = 0;
    for (size_t i = 0; i < m->w.n_views; i++) {
        const struct tensor *t = m->w.views[i];
        size_t k = 0;
        while (k < n && widths[k] != t->ne[0])
            k++;
        if (t->rotated && k == n && n < ROTATION_MAX_WIDTHS) {
            widths[n++] = t->ne[0];
            bytes += (t->ne[0] * 4 + 255) / 256 * 256;
        }
    }
    return bytes;
}

uint64_t device_weights_bytes(const struct model *m)
{
    struct pack_source embed = single(m->w.token_embd), output = single(m->w.output);
    uint64_t bytes = pack_matrix_bytes(&embed) + vector_bytes(m->w.output_norm) +
                     signs_bytes(m);
    if (m->w.output != m->w.token_embd)
        bytes += pack_matrix_bytes(&output);
    for (uint32_t i = 0; i < m->hp.n_layer; i++)
        bytes += layer_bytes(m, i);
    return bytes;
}

void device_weights_layout(struct device_weights *w, const struct hparams *hp)
{
    uint32_t z = hp->conv_dim, beta = z + hp->value_dim;
    w->recurrent = (struct proj_layout){
        .z = z, .beta = beta, .alpha = beta + hp->n_v_heads,
        .stride = (beta + 2 * hp->n_v_heads + 7) / 8 * 8 /* engine/kernel.h */
    };
    uint32_t k = hp->n_head * hp->q_width, kv = hp->n_head_kv * hp->head_dim;
    w->attention = (struct proj_layout){ .k = k, .v = k + kv, .stride = k + 2 * kv };
}

/* An arena that is only counted, filled as device_weights_open fills one. */
static void take_matrix(struct arena *a, const struct pack_source *s)
{
    struct gpu_span span;
    uint64_t codes, scales;
    pack_plane_bytes(s, &codes, &scales);
    arena_take(&span, a, codes, NULL);
    arena_take(&span, a, scales, NULL);
}

static void take_vector(struct arena *a, const struct tensor *t)
{
    struct gpu_span span;
    if (t)
        arena_take(&span, a, t->n_elements * 4, NULL);
}

uint64_t device_weights_allocation(const struct model *m)
{
    struct pack_source embed = single(m->w.token_embd), output = single(m->w.output);
    struct gpu_span span;
    struct arena a;
    arena_init(&a, NULL, device_weights_bytes(m));
    take_matrix(&a, &embed);
    if (m->w.output != m->w.token_embd)
        take_matrix(&a, &output);
    if (signs_bytes(m)) /* few: where among the others they come changes little */
        arena_take(&span, &a, signs_bytes(m), NULL);
    for (uint32_t i = 0; i < m->hp.n_layer; i++) {
        struct layer_plan plan = plan_layer(m, i);
        for (uint32_t k = 0; k < plan.n; k++)
            take_matrix(&a, &plan.v[k].source);
        for (size_t k = 0; k < N_VECTORS; k++)
            take_vector(&a, vector_of(&m->w.layers[i], k));
    }
    take_vector(&a, m->w.output_norm);
    uint64_t bytes = arena_bytes(&a);
    arena_release(&a);
    return bytes;
}

/* Before anything is read: every matrix must suit the device. */
static int check_sizes(const struct model *m, const struct gpu *gpu, struct err *err)
{
    struct pack_source embed = single(m->w.token_embd), output = single(m->w.output);
    if (pack_matrix_check(&embed, gpu, err) < 0 || pack_matrix_check(&output, gpu, err) < 0)
        return -1;
    for (uint32_t i = 0; i < m->hp.n_layer; i++) {
        struct layer_plan plan = plan_layer(m, i);
        for (uint32_t k = 0; k < plan.n; k++)
            if (pack_matrix_check(&plan.v[k].source, gpu, err) < 0)
                return -1;
    }
    return 0;
}

int device_weights_open(struct device_weights *w, struct gpu *gpu, const struct model *m,
                        const struct weights_progress *progress, struct err *err)
{
    *w = (struct device_weights){ .n_layers = m->hp.n_layer };
    struct loader l = { .w = w, .rotation = &m->w.rotation, .progress = progress,
                        .err = err };
    l.total = device_weights_bytes(m);
    arena_init(&w->arena, gpu, l.total);
    device_weights_layout(w, &m->hp);
    w->layers = mem_zalloc(w->n_layers * sizeof *w->layers);
    if (check_sizes(m, gpu, err) < 0)
        return -1;
    struct pack_source embed = single(m->w.token_embd), output = single(m->w.output);
    if (load_matrix(&l, &w->embed, &embed) < 0)
        return -1;
    w->output = w->embed;
    if (m->w.output != m->w.token_embd && load_matrix(&l, &w->output, &output) < 0)
        return -1;
    for (uint32_t i = 0; i < w->n_layers; i++)
        if (load_layer(&l, &w->layers[i], m, i) < 0)
            return -1;
    return load_vector(&l, &w->output_norm, m->w.output_norm);
}

void device_weights_close(struct device_weights *w)
{
    arena_release(&w->arena);
    free(w->layers);
    *w = (struct device_weights){ 0 };
}
