/* ref_model.c - a decoder as the papers have it: residual stream, norm, mixer,
 * norm, feed-forward. Vectors are f32, sums double. Knows nothing of how the
 * device lays weights out. */
#include "engine/ref_model.h"

#include "base/mem.h"
#include "engine/pack.h"
#include "engine/ref.h"
#include "engine/ref_moe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ref_layer {
    struct ref_delta delta; /* recurrent */
    float *conv, *dt, *a, *norm;
    float *k, *v; /* attention: [n tokens][n_head_kv][head_dim] */
};

struct ref_model {
    const struct model *m;
    const struct hparams *hp;
    struct ref_layer *layers;
    uint32_t n; /* tokens so far */
};

static float *floats(size_t n)
{
    return mem_zalloc((n ? n : 1) * sizeof(float));
}

/* A small tensor as f32; NULL for none. */
static float *vector(const struct tensor *t)
{
    if (!t)
        return NULL;
    float *v = floats(t->n_elements);
    quant_dequantize(t->type, t->data, t->n_elements, v);
    return v;
}

/* ---- products ------------------------------------------------------------ */

static void row_of(const struct tensor *t, uint64_t row, float *out)
{
    const size_t bytes = quant_bytes(t->type, t->ne[0]);
    float factor = pack_factor(t, row);
    quant_dequantize(t->type, t->data + row * bytes, t->ne[0], out);
    for (uint64_t c = 0; c < t->ne[0]; c++)
        out[c] *= factor;
}

/* Blocks of n values, each transformed. */
static void transform(float *x, uint64_t n)
{
    double in[ROTATION_BLOCK], out[ROTATION_BLOCK];
    for (uint64_t first = 0; first < n; first += ROTATION_BLOCK) {
        for (int i = 0; i < ROTATION_BLOCK; i++)
            in[i] = x[first + (uint64_t)i];
        ref_hadamard(in, ROTATION_BLOCK, out);
        for (int i = 0; i < ROTATION_BLOCK; i++)
            x[first + (uint64_t)i] = (float)out[i];
    }
}

/* x times the signs of its width. */
static void sign(const struct ref_model *r, float *x, uint64_t n)
{
    float *signs = floats(n);
    rotation_signs(&r->m->w.rotation, n, signs);
    for (uint64_t i = 0; i < n; i++)
        x[i] *= signs[i];
    free(signs);
}

/* y[i] = rows [first, first + n) of t times x */
static void multiply(const struct ref_model *r, const struct tensor *t, uint64_t first,
                     uint64_t n, const float *given, float *y)
{
    float *w = floats(t->ne[0]), *x = floats(t->ne[0]);
    memcpy(x, given, t->ne[0] * sizeof *x);
    if (t->rotated) {
        sign(r, x, t->ne[0]);
        transform(x, t->ne[0]);
    }
    for (uint64_t i = 0; i < n; i++) {
        double sum = 0;
        row_of(t, first + i, w);
        for (uint64_t c = 0; c < t->ne[0]; c++)
            sum += (double)w[c] * x[c];
        y[i] = (float)sum;
    }
    free(w);
    free(x);
}

static void multiply_all(const struct ref_model *r, const struct tensor *t,
                         const float *x, float *y)
{
    multiply(r, t, 0, t->ne[1], x, y);
}

static void rms_norm(const float *x, const struct tensor *weight, float eps, float *out)
{
    float *w = vector(weight);
    const size_t n = weight->n_elements;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(w[i] * (x[i] / sqrt(sum / (double)n + eps)));
    free(w);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- recurrent layers ---------------------------------------------------- */

/* Of the old joint tensor: per key head its q, k, v and z rows. */
static void project_joint(const struct ref_model *r, const struct tensor *t,
                          const float *x, float *proj)
{
    const struct hparams *hp = r->hp;
    uint32_t rep = hp->n_v_heads / hp->n_k_heads, d = hp->state_dim;
    float *q = proj, *k = q + hp->key_dim, *v = k + hp->key_dim, *z = v + hp->value_dim;
    for (uint32_t h = 0; h < hp->n_k_heads; h++) {
        uint64_t row = (uint64_t)h * 2 * d * (1 + rep);
        multiply(r, t, row, d, x, q + h * d);
        multiply(r, t, row + d, d, x, k + h * d);
        multiply(r, t, row + 2 * d, rep * d, x, v + h * rep * d);
        multiply(r, t, row + 2 * d + rep * d, rep * d, x, z + h * rep * d);
    }
}

/* q, k, v | z | beta | alpha of a token, as struct push_delta says. */
static void project(const struct ref_model *r, const struct layer *ly,
                    const struct push_delta *p, const float *x, float *proj)
{
    if (ly->ssm_in) {
        project_joint(r, ly->ssm_in, x, proj);
    } else {
        multiply_all(r, ly->qkv, x, proj);
        multiply_all(r, ly->gate, x, proj + p->z_offset);
    }
    if (ly->ba) {
        multiply_all(r, ly->ba, x, proj + p->beta_offset);
    } else {
        multiply_all(r, ly->beta, x, proj + p->beta_offset);
        multiply_all(r, ly->alpha, x, proj + p->alpha_offset);
    }
}

/* Value heads in the order that the columns of a rotated ssm_out have. */
static void regroup(const struct ref_model *r, const struct tensor *t, float *o)
{
    const struct hparams *hp = r->hp;
    const uint32_t n_k = hp->n_k_heads, each = hp->n_v_heads / n_k;
    if (!t->rotated || !r->m->w.rotation.v_grouped)
        return;
    float *tiled = floats(hp->value_dim);
    memcpy(tiled, o, hp->value_dim * sizeof *o);
    for (uint32_t k = 0; k < n_k; k++)
        for (uint32_t j = 0; j < each; j++)
            memcpy(o + (k * each + j) * STATE_DIM, tiled + (j * n_k + k) * STATE_DIM,
                   STATE_DIM * sizeof *o);
    free(tiled);
}

static void recurrent_mixer(struct ref_model *r, uint32_t i, const float *x, float *out)
{
    const struct hparams *hp = r->hp;
    struct ref_delta *d = &r->layers[i].delta;
    float *proj = floats(d->p.proj_stride);
    float *o = floats(hp->value_dim), *w = floats(hp->value_dim);
    project(r, &r->m->w.layers[i], &d->p, x, proj);
    ref_delta(d, proj, 1, o, w);
    for (uint32_t h = 0; h < hp->n_v_heads; h++) {
        float *head = o + h * STATE_DIM;
        double sum = 0;
        for (int c = 0; c < STATE_DIM; c++)
            sum += (double)head[c] * head[c];
        for (int c = 0; c < STATE_DIM; c++)
            head[c] = (float)(head[c] / sqrt(sum / STATE_DIM + hp->rms_eps) *
                              w[h * STATE_DIM + c]);
    }
    regroup(r, r->m->w.layers[i].ssm_out, o);
    multiply_all(r, r->m->w.layers[i].ssm_out, o, out);
    free(proj);
    free(o);
    free(w);
}

static void delta_open(struct ref_model *r, uint32_t i)
{
    const struct hparams *hp = r->hp;
    const struct layer *ly = &r->m->w.layers[i];
    struct ref_layer *l = &r->layers[i];
    uint32_t beta = hp->conv_dim + hp->value_dim;
    l->conv = vector(ly->conv1d);
    l->dt = vector(ly->dt);
    l->a = vector(ly->a);
    l->norm = vector(ly->ssm_norm);
    l->delta = (struct ref_delta){ .p = { .n_k = hp->n_k_heads,
                                          .n_v = hp->n_v_heads,
                                          .conv_dim = hp->conv_dim,
                                          .proj_stride = beta + 2 * hp->n_v_heads,
                                          .z_offset = hp->conv_dim,
                                          .beta_offset = beta,
                                          .alpha_offset = beta + hp->n_v_heads,
                                          .ba_grouped = ly->ba != NULL,
                                          .grouped_heads = hp->grouped_heads,
                                          .eps = hp->rms_eps },
                                   .conv = l->conv,
                                   .dt = l->dt,
                                   .a = l->a,
                                   .norm = l->norm,
                                   .history = floats(3 * (size_t)hp->conv_dim),
                                   .state = mem_zalloc(hp->n_v_heads * (size_t)STATE_DIM *
                                                       STATE_DIM * sizeof(double)) };
}

/* ---- attention layers ---------------------------------------------------- */

static void store_kv(struct ref_model *r, uint32_t i, const float *x,
                     const struct ref_rope *rope)
{
    const struct hparams *hp = r->hp;
    const struct layer *ly = &r->m->w.layers[i];
    struct ref_layer *l = &r->layers[i];
    size_t row = (size_t)hp->n_head_kv * hp->head_dim;
    float *weight = vector(ly->k_norm);
    l->k = mem_regrow(l->k, (r->n + 1) * row, sizeof(float));
    l->v = mem_regrow(l->v, (r->n + 1) * row, sizeof(float));
    float *k = l->k + r->n * row;
    multiply_all(r, ly->k, x, k);
    multiply_all(r, ly->v, x, l->v + r->n * row);
    for (uint32_t h = 0; h < hp->n_head_kv; h++)
        ref_norm_rope(k + h * hp->head_dim, weight, hp->head_dim, hp->rms_eps, rope,
                      k + h * hp->head_dim);
    free(weight);
}

static void attention_mixer(struct ref_model *r, uint32_t i, const float *x, float *out)
{
    const struct hparams *hp = r->hp;
    const struct layer *ly = &r->m->w.layers[i];
    const struct rope_scaling *s = &hp->scaling;
    const size_t dim = hp->head_dim, row = hp->n_head_kv * dim;
    const struct ref_rope rope = { .pairs = hp->rope_dims / 2,
                                   .base = hp->rope_base,
                                   .position = r->n,
                                   .factor = s->factor,
                                   .trained = s->trained,
                                   .beta_fast = s->beta_fast,
                                   .beta_slow = s->beta_slow,
                                   .magnitude = s->magnitude };
    float *q = floats(ly->q->ne[1]), *o = floats(hp->n_head * dim);
    float *weight = vector(ly->q_norm);
    store_kv(r, i, x, &rope);
    multiply_all(r, ly->q, x, q);
    for (uint32_t h = 0; h < hp->n_head; h++) {
        float *head = q + h * (ly->q->ne[1] / hp->n_head);
        size_t kv = h / (hp->n_head / hp->n_head_kv) * dim;
        ref_norm_rope(head, weight, dim, hp->rms_eps, &rope, head);
        ref_attend(&(struct ref_attention){ .q = head,
                                            .k = r->layers[i].k + kv,
                                            .v = r->layers[i].v + kv,
                                            .n = r->n + 1,
                                            .stride = row,
                                            .dim = dim,
                                            .scale = hp->attn_scale },
                   o + h * dim);
        if (!hp->arch->plain)
            ref_gate(o + h * dim, head + dim, dim);
    }
    multiply_all(r, ly->o, o, out);
    free(q);
    free(o);
    free(weight);
}

/* ---- feed-forward -------------------------------------------------------- */

/* Rows of an expert in the tensors that hold all of them. */
struct ffn {
    const struct tensor *gate, *up, *down;
    uint64_t gate_row, up_row, down_row, width;
};

/* out += weight * down(silu(gate x) * up x) */
static void add_ffn(const struct ref_model *r, const struct ffn *f, double weight,
                    const float *x, float *out)
{
    const uint64_t n = f->down->ne[1];
    float *gate = floats(f->width), *up = floats(f->width), *y = floats(n);
    multiply(r, f->gate, f->gate_row, f->width, x, gate);
    multiply(r, f->up, f->up_row, f->width, x, up);
    for (uint64_t i = 0; i < f->width; i++)
        gate[i] = (float)(gate[i] * sigmoid(gate[i]) * up[i]);
    multiply(r, f->down, f->down_row, n, gate, y);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)(out[i] + weight * y[i]);
    free(gate);
    free(up);
    free(y);
}

static void add_experts(const struct ref_model *r, const struct layer *ly, const float *x,
                        float *out)
{
    const struct hparams *hp = r->hp;
    const uint32_t used = hp->n_expert_used;
    const uint64_t m = hp->n_ff_expert;
    float *logits = floats(hp->n_expert + 1), *weights = floats(used + 1);
    uint32_t *ids = mem_array(used, sizeof *ids);
    multiply_all(r, ly->router, x, logits);
    multiply(r, ly->shared_router, 0, 1, x, logits + hp->n_expert);
    ref_select(logits, hp->n_expert, used, hp->expert_scale, ids, weights);
    for (uint32_t k = 0; k < used; k++) {
        struct ffn f = { ly->gate_exps,
                         ly->up_exps,
                         ly->down_exps,
                         ids[k] * m,
                         ids[k] * m,
                         (uint64_t)ids[k] * hp->n_embd,
                         m };
        if (ly->gate_up_exps) {
            f.gate = f.up = ly->gate_up_exps;
            f.gate_row = ids[k] * 2 * m;
            f.up_row = f.gate_row + m;
        }
        add_ffn(r, &f, weights[k], x, out);
    }
    const struct ffn shared = { ly->gate_shexp, ly->up_shexp, ly->down_shexp, 0, 0, 0,
                                hp->n_ff_shared };
    add_ffn(r, &shared, weights[used], x, out);
    free(logits);
    free(weights);
    free(ids);
}

/* ---- the whole ----------------------------------------------------------- */

struct ref_model *ref_model_open(const struct model *m)
{
    struct ref_model *r = mem_zalloc(sizeof *r);
    r->m = m;
    r->hp = &m->hp;
    r->layers = mem_zalloc(m->hp.n_layer * sizeof *r->layers);
    for (uint32_t i = 0; i < m->hp.n_layer; i++)
        if (m->w.layers[i].recurrent)
            delta_open(r, i);
    return r;
}

void ref_model_close(struct ref_model *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->hp->n_layer; i++) {
        struct ref_layer *l = &r->layers[i];
        void *owned[] = { l->conv,          l->dt,          l->a, l->norm,
                          l->delta.history, l->delta.state, l->k, l->v };
        for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
            free(owned[k]);
    }
    free(r->layers);
    free(r);
}

static void layer(struct ref_model *r, uint32_t i, float *stream)
{
    const struct hparams *hp = r->hp;
    const struct layer *ly = &r->m->w.layers[i];
    float *x = floats(hp->n_embd), *y = floats(hp->n_embd);
    rms_norm(stream, ly->attn_norm, hp->rms_eps, x);
    if (ly->recurrent)
        recurrent_mixer(r, i, x, y);
    else
        attention_mixer(r, i, x, y);
    for (uint32_t c = 0; c < hp->n_embd; c++)
        stream[c] += y[c];
    rms_norm(stream, ly->post_norm, hp->rms_eps, x);
    const struct ffn dense = {
        ly->ffn_gate, ly->ffn_up, ly->ffn_down, 0, 0, 0, hp->n_ff
    };
    if (hp->arch->moe)
        add_experts(r, ly, x, stream);
    else
        add_ffn(r, &dense, 1, x, stream);
    free(x);
    free(y);
}

void ref_model_step(struct ref_model *r, int32_t id, float *logits)
{
    const struct weights *w = &r->m->w;
    float *stream = floats(r->hp->n_embd);
    row_of(w->token_embd, (uint64_t)id, stream);
    if (w->token_embd->rotated) {
        transform(stream, r->hp->n_embd);
        sign(r, stream, r->hp->n_embd);
    }
    for (uint32_t i = 0; i < r->hp->n_layer; i++)
        layer(r, i, stream);
    r->n++;
    if (logits) {
        rms_norm(stream, w->output_norm, r->hp->rms_eps, stream);
        multiply_all(r, w->output, stream, logits);
    }
    free(stream);
}
