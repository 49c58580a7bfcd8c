/* weights.c - which tensors become which device matrices.
 *
 * A layer's input projections land side by side in one row per token; tensors
 * of equal format that are neighbours there are joined into one matrix, so
 * that one dispatch computes them. */
#include "engine/weights.h"

#include "base/mem.h"

#include <stdlib.h>

struct loader {
    struct device_weights *w;
    const struct weights_progress *progress;
    uint64_t total;
    struct err *err;
};

static void tell(const struct loader *l)
{
    if (l->progress && l->progress->tell)
        l->progress->tell(l->progress->arg, l->total - l->w->arena.wanted, l->total);
}

static int load_matrix(struct loader *l, struct matrix *m, const struct pack_source *s)
{
    int rc = pack_matrix(m, &l->w->arena, s, l->err);
    tell(l);
    return rc;
}

static int load_vector(struct loader *l, struct gpu_span *out, const struct tensor *t)
{
    return pack_vector(out, &l->w->arena, t, l->err);
}

/* The projections of a layer in their order in proj; returns their number. */
static uint32_t input_tensors(const struct layer *ly, const struct tensor *out[PROJ_MAX])
{
    uint32_t n = 0;
    if (ly->recurrent) {
        out[n++] = ly->qkv;
        out[n++] = ly->gate;
        if (ly->ba) {
            out[n++] = ly->ba;
        } else {
            out[n++] = ly->beta;
            out[n++] = ly->alpha;
        }
    } else {
        out[n++] = ly->q;
        out[n++] = ly->k;
        out[n++] = ly->v;
    }
    return n;
}

/* Joins neighbours of one format; returns the number of matrices. */
static uint32_t join(const struct tensor *const *t, uint32_t n,
                     struct pack_source out[PROJ_MAX])
{
    uint32_t n_out = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct pack_source *s = n_out ? &out[n_out - 1] : NULL;
        if (!s || s->parts[0]->type != t[i]->type) {
            s = &out[n_out++];
            *s = (struct pack_source){ 0 };
        }
        s->parts[s->n_parts++] = t[i];
    }
    return n_out;
}

static struct pack_source single(const struct tensor *t)
{
    return (struct pack_source){ .parts = { t }, .n_parts = 1 };
}

static struct pack_source gate_up(const struct layer *ly)
{
    return (struct pack_source){
        .parts = { ly->ffn_gate, ly->ffn_up }, .n_parts = 2, .interleave = true
    };
}

static int load_layer(struct loader *l, struct device_layer *d, const struct layer *ly)
{
    const struct tensor *inputs[PROJ_MAX];
    struct pack_source sources[PROJ_MAX];
    d->recurrent = ly->recurrent;
    d->n_proj = join(inputs, input_tensors(ly, inputs), sources);
    uint32_t offset = 0;
    for (uint32_t i = 0; i < d->n_proj; i++) {
        d->proj[i].offset = offset;
        if (load_matrix(l, &d->proj[i].m, &sources[i]) < 0)
            return -1;
        offset += d->proj[i].m.rows;
    }
    struct pack_source out = single(ly->recurrent ? ly->ssm_out : ly->o);
    struct pack_source ffn = gate_up(ly), down = single(ly->ffn_down);
    if (load_matrix(l, &d->out, &out) < 0 || load_matrix(l, &d->gate_up, &ffn) < 0 ||
        load_matrix(l, &d->down, &down) < 0 ||
        load_vector(l, &d->attn_norm, ly->attn_norm) < 0 ||
        load_vector(l, &d->post_norm, ly->post_norm) < 0)
        return -1;
    if (!ly->recurrent)
        return load_vector(l, &d->q_norm, ly->q_norm) < 0 ||
                       load_vector(l, &d->k_norm, ly->k_norm) < 0
                   ? -1
                   : 0;
    return load_vector(l, &d->conv1d, ly->conv1d) < 0 || load_vector(l, &d->dt, ly->dt) < 0 ||
                   load_vector(l, &d->a, ly->a) < 0 ||
                   load_vector(l, &d->ssm_norm, ly->ssm_norm) < 0
               ? -1
               : 0;
}

static uint64_t vector_bytes(const struct tensor *t)
{
    return t ? (t->n_elements * 4 + 255) / 256 * 256 : 0;
}

static uint64_t layer_bytes(const struct layer *ly)
{
    const struct tensor *inputs[PROJ_MAX];
    struct pack_source sources[PROJ_MAX];
    uint32_t n = join(inputs, input_tensors(ly, inputs), sources);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += pack_matrix_bytes(&sources[i]);
    struct pack_source out = single(ly->recurrent ? ly->ssm_out : ly->o);
    struct pack_source ffn = gate_up(ly), down = single(ly->ffn_down);
    bytes += pack_matrix_bytes(&out) + pack_matrix_bytes(&ffn) + pack_matrix_bytes(&down);
    const struct tensor *vectors[] = { ly->attn_norm, ly->post_norm, ly->conv1d,
                                       ly->dt,        ly->a,         ly->ssm_norm,
                                       ly->q_norm,    ly->k_norm };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        bytes += vector_bytes(vectors[i]);
    return bytes;
}

uint64_t device_weights_bytes(const struct model *m)
{
    struct pack_source embed = single(m->w.token_embd), output = single(m->w.output);
    uint64_t bytes = pack_matrix_bytes(&embed) + vector_bytes(m->w.output_norm);
    if (m->w.output != m->w.token_embd)
        bytes += pack_matrix_bytes(&output);
    for (uint32_t i = 0; i < m->hp.n_layer; i++)
        bytes += layer_bytes(&m->w.layers[i]);
    return bytes;
}

static void plan_layout(struct device_weights *w, const struct hparams *hp)
{
    uint32_t z = hp->conv_dim, beta = z + hp->value_dim;
    w->recurrent = (struct proj_layout){
        .z = z, .beta = beta, .alpha = beta + hp->n_v_heads, .stride = beta + 2 * hp->n_v_heads
    };
    uint32_t k = 2 * hp->n_head * hp->head_dim, kv = hp->n_head_kv * hp->head_dim;
    w->attention = (struct proj_layout){ .k = k, .v = k + kv, .stride = k + 2 * kv };
}

int device_weights_open(struct device_weights *w, struct gpu *gpu, const struct model *m,
                        const struct weights_progress *progress, struct err *err)
{
    *w = (struct device_weights){ .n_layers = m->hp.n_layer };
    struct loader l = { .w = w, .progress = progress, .err = err };
    l.total = device_weights_bytes(m);
    arena_init(&w->arena, gpu, l.total);
    plan_layout(w, &m->hp);
    w->layers = mem_zalloc(w->n_layers * sizeof *w->layers);
    struct pack_source embed = single(m->w.token_embd), output = single(m->w.output);
    if (load_matrix(&l, &w->embed, &embed) < 0)
        return -1;
    w->output = w->embed;
    if (m->w.output != m->w.token_embd && load_matrix(&l, &w->output, &output) < 0)
        return -1;
    for (uint32_t i = 0; i < w->n_layers; i++)
        if (load_layer(&l, &w->layers[i], &m->w.layers[i]) < 0)
            return -1;
    return load_vector(&l, &w->output_norm, m->w.output_norm);
}

void device_weights_close(struct device_weights *w)
{
    arena_release(&w->arena);
    free(w->layers);
    *w = (struct device_weights){ 0 };
}
