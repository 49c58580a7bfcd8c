/* selftest_mixers.c - the recurrent mixer, token by token and in chunks, and
 * attention over a short history. */
#include "engine/selftest_rig.h"

#include "base/mem.h"
#include "engine/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- delta rule --------------------------------------------------------------- */

enum { N_K = 1, N_V = 2, VALUES = N_V * STATE_DIM, CONV = 2 * N_K * STATE_DIM + VALUES };

/* Weights and inputs of a layer. */
struct layer_data {
    struct proj_layout lay;
    float *proj, *taps, *dt, *a, *norm, *state, *history;
    uint32_t tokens;
};

static void delta_make(struct layer_data *d, struct rig *r, uint32_t tokens)
{
    d->lay = (struct proj_layout){ .z = CONV,
                                   .beta = CONV + VALUES,
                                   .alpha = CONV + VALUES + N_V,
                                   .stride = (CONV + VALUES + 2 * N_V + 7) / 8 * 8 };
    d->tokens = tokens;
    d->proj = rig_values(r, (size_t)tokens * d->lay.stride, 2);
    d->taps = rig_values(r, CONV * 4, 1);
    d->dt = rig_values(r, N_V, 1);
    d->a = rig_values(r, N_V, 0.7f);
    d->norm = rig_values(r, STATE_DIM, 0.5f);
    d->state = rig_values(r, VALUES * STATE_DIM, 0.2f);
    d->history = rig_values(r, 3 * CONV, 1);
    for (int i = 0; i < N_V; i++)
        d->a[i] -= 0.75f;
    for (int i = 0; i < STATE_DIM; i++)
        d->norm[i] += 1;
}

static void delta_release(struct layer_data *d)
{
    float *owned[] = { d->proj, d->taps, d->dt, d->a, d->norm, d->state, d->history };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

/* State, then both halves of the history; the first one is current. */
static void delta_state_upload(struct rig *r, const struct layer_data *d)
{
    struct state_layout *l = &r->session.layout;
    l->matrix_bytes = VALUES * STATE_DIM * 4;
    l->history_bytes = 2 * 3 * CONV * 4;
    l->layer_bytes = l->bytes = l->matrix_bytes + l->history_bytes;
    uint8_t *all = mem_zalloc(l->bytes);
    memcpy(all, d->state, l->matrix_bytes);
    memcpy(all + l->matrix_bytes, d->history, l->history_bytes / 2);
    r->session.state = rig_buffer(r, all, l->bytes);
    free(all);
}

static void delta_record(struct rig *r, const struct layer_data *d)
{
    struct scratch *x = &r->session.scratch;
    struct hparams *hp = &r->model.hp;
    hp->n_k_heads = N_K;
    hp->n_v_heads = N_V;
    hp->value_dim = VALUES;
    hp->conv_dim = CONV;
    r->engine.int8 = false;
    r->engine.weights.recurrent = d->lay;
    delta_state_upload(r, d);
    uint64_t plane = (uint64_t)d->tokens * VALUES * 4;
    x->proj = rig_buffer(r, d->proj, (uint64_t)d->tokens * d->lay.stride * 4);
    x->mixed = (struct planes){ rig_buffer(r, NULL, plane), rig_buffer(r, NULL, plane),
                                rig_buffer(r, NULL, plane) };
    uint64_t bytes[DELTA_SCRATCH];
    delta_chunk_scratch(&r->engine.tune.delta_many,
                        &(struct push_delta){ .n_k = N_K, .n_v = N_V }, d->tokens, bytes);
    for (int i = 0; i < DELTA_SCRATCH; i++)
        x->delta[i] = rig_buffer(r, NULL, bytes[i]);
    struct device_layer ly = { .recurrent = true,
                               .conv1d = rig_span(r, d->taps, CONV * 16),
                               .dt = rig_span(r, d->dt, N_V * 4),
                               .a = rig_span(r, d->a, N_V * 4),
                               .ssm_norm = rig_span(r, d->norm, STATE_DIM * 4) };
    if (r->rc == 0)
        r->rc = forward_recurrent(&r->rec, &ly, 0);
}

static void delta_check(struct rig *r, const struct layer_data *d, const char *name)
{
    const size_t n = (size_t)d->tokens * VALUES, n_state = VALUES * STATE_DIM;
    struct ref_delta ref = { .p = { .n_k = N_K,
                                    .n_v = N_V,
                                    .conv_dim = CONV,
                                    .proj_stride = d->lay.stride,
                                    .z_offset = d->lay.z,
                                    .beta_offset = d->lay.beta,
                                    .alpha_offset = d->lay.alpha,
                                    .eps = r->model.hp.rms_eps },
                             .conv = d->taps,
                             .dt = d->dt,
                             .a = d->a,
                             .norm = d->norm,
                             .history = d->history };
    float *o = mem_array(n, sizeof *o), *w = mem_array(n, sizeof *w);
    float *got = mem_array(n + n_state, sizeof *got);
    ref.state = mem_array(n_state, sizeof *ref.state);
    for (size_t i = 0; i < n_state; i++)
        ref.state[i] = d->state[i];
    ref_delta(&ref, d->proj, d->tokens, o, w);
    for (size_t i = 0; i < n; i++)
        o[i] *= w[i];
    rig_read(r, &r->session.scratch.mixed.x, got, n * 4);
    rig_compare(r, name, got, o, n, 1e-3);
    rig_read(r, &r->session.state, got, n_state * 4);
    for (size_t i = 0; i < n_state; i++)
        d->state[i] = (float)ref.state[i];
    rig_compare(r, name, got, d->state, n_state, 1e-3);
    free(ref.state);
    free(o);
    free(w);
    free(got);
}

static void delta_test(struct rig *r, uint32_t tokens, const char *name)
{
    struct layer_data d;
    rig_begin(r, tokens);
    delta_make(&d, r, tokens);
    delta_record(r, &d);
    rig_run(r);
    delta_check(r, &d, name);
    delta_release(&d);
}

void selftest_delta(struct rig *r)
{
    const struct tuning *t = &r->engine.tune;
    if (!r->scope->recurrent)
        return;
    delta_test(r, 3,
               kernel_module(t->delta_wide ? KERNEL_DELTA_WIDE : KERNEL_DELTA)->name);
    if (t->delta_many.from)
        delta_test(r, t->delta_many.from + t->delta_many.chunk + 5,
                   "delta_conv, delta_solve, delta_scan or delta_emit");
}

/* ---- attention ----------------------------------------------------------------- */

enum { HEAD = 256, HEADS = 4, KV_HEADS = 2, PAIRS = 32, TOKENS = 5, SPLITS = 2 };
enum { Q_WIDTH = 2 * HEAD, K_AT = HEADS * Q_WIDTH, V_AT = K_AT + KV_HEADS * HEAD };
enum { STRIDE = V_AT + KV_HEADS * HEAD };

struct attention {
    enum kernel_id qk, attend;
    bool f32;
    float *proj, *q_norm, *k_norm, *rope;
    struct gpu_buffer k, v; /* caches [TOKENS][KV_HEADS][HEAD] */
    float *q_want, *k_want, *v_want, *o_want;
};

static void attention_make(struct attention *a, struct rig *r)
{
    const float base = 1e7f;
    a->proj = rig_values(r, TOKENS * STRIDE, 2);
    a->q_norm = rig_values(r, HEAD, 1);
    a->k_norm = rig_values(r, HEAD, 1);
    a->rope = mem_array(TOKENS * PAIRS * 2, sizeof(float));
    for (int p = 0; p < TOKENS; p++)
        for (int i = 0; i < PAIRS; i++) {
            double angle = p * pow(base, -(double)i / PAIRS);
            a->rope[2 * (p * PAIRS + i)] = (float)cos(angle);
            a->rope[2 * (p * PAIRS + i) + 1] = (float)sin(angle);
        }
    a->q_want = mem_array(TOKENS * HEADS * HEAD, sizeof(float));
    a->o_want = mem_array(TOKENS * HEADS * HEAD, sizeof(float));
    a->k_want = mem_array(TOKENS * KV_HEADS * HEAD, sizeof(float));
    a->v_want = mem_array(TOKENS * KV_HEADS * HEAD, sizeof(float));
    for (uint32_t t = 0; t < TOKENS; t++) {
        const float *row = a->proj + t * STRIDE;
        const struct ref_rope rope = { .pairs = PAIRS, .base = base, .position = t };
        for (int h = 0; h < HEADS; h++)
            ref_norm_rope(row + h * Q_WIDTH, a->q_norm, HEAD, r->model.hp.rms_eps, &rope,
                          a->q_want + (t * HEADS + (uint32_t)h) * HEAD);
        for (int h = 0; h < KV_HEADS; h++)
            ref_norm_rope(row + K_AT + h * HEAD, a->k_norm, HEAD, r->model.hp.rms_eps,
                          &rope, a->k_want + (t * KV_HEADS + (uint32_t)h) * HEAD);
        memcpy(a->v_want + t * KV_HEADS * HEAD, row + V_AT, KV_HEADS * HEAD * 4);
    }
}

static void attention_release(struct attention *a)
{
    float *owned[] = { a->proj,   a->q_norm, a->k_norm, a->rope,
                       a->q_want, a->k_want, a->v_want, a->o_want };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

/* The three kernels in a row, each from what the one before left on the device. */
static void attention_record(struct attention *a, struct rig *r)
{
    struct scratch *x = &r->session.scratch;
    const struct tuning *t = &r->engine.tune;
    const uint64_t cache = TOKENS * KV_HEADS * HEAD * (a->f32 ? 4 : 2);
    const uint64_t result = TOKENS * HEADS * HEAD * 4;
    static const struct push_qk qk = { .n_head = HEADS,
                                       .n_head_kv = KV_HEADS,
                                       .proj_stride = STRIDE,
                                       .q_width = Q_WIDTH,
                                       .k_offset = K_AT,
                                       .v_offset = V_AT,
                                       .rope_pairs = PAIRS,
                                       .eps = 1e-6f };
    static const struct push_attend attend = {
        .n_head = HEADS, .n_head_kv = KV_HEADS, .splits = SPLITS, .scale = 1.0f / 16
    };
    static const struct push_merge merge = {
        .n_head = HEADS, .splits = SPLITS, .proj_stride = STRIDE, .q_width = Q_WIDTH
    };
    uint32_t spec[TUNING_SPEC];
    x->proj = rig_buffer(r, a->proj, TOKENS * STRIDE * 4);
    x->q = rig_buffer(r, NULL, result);
    x->partials = rig_buffer(r, NULL, TOKENS * HEADS * SPLITS * (HEAD + 2) * 4);
    x->mixed = (struct planes){ rig_buffer(r, NULL, result), rig_buffer(r, NULL, result),
                                rig_buffer(r, NULL, result) };
    a->k = rig_buffer(r, NULL, cache);
    a->v = rig_buffer(r, NULL, cache);
    struct gpu_dispatch first = { .bind = { [1] = gpu_span_all(&x->proj),
                                            [2] = rig_span(r, a->q_norm, HEAD * 4),
                                            [3] = rig_span(r, a->k_norm, HEAD * 4),
                                            [4] =
                                                rig_span(r, a->rope, TOKENS * PAIRS * 8),
                                            [5] = gpu_span_all(&x->q),
                                            [6] = gpu_span_all(&a->k),
                                            [7] = gpu_span_all(&a->v) },
                                  .push = &qk,
                                  .groups = { HEADS + KV_HEADS, TOKENS, 1 } };
    struct gpu_dispatch second = { .bind = { [1] = gpu_span_all(&x->q),
                                             [2] = gpu_span_all(&a->k),
                                             [3] = gpu_span_all(&a->v),
                                             [4] = gpu_span_all(&x->partials) },
                                   .push = &attend,
                                   .groups = { KV_HEADS, SPLITS, TOKENS } };
    struct gpu_dispatch third = {
        .bind = { [1] = gpu_span_all(&x->partials), [2] = gpu_span_all(&x->proj) },
        .push = &merge,
        .groups = { HEADS, TOKENS, 1 }
    };
    forward_bind_planes(&third, 3, &x->mixed);
    if (r->rc == 0)
        r->rc = forward_dispatch(&r->rec, &first, kernel_module(a->qk), spec,
                                 tuning_qk(t, HEAD, spec));
    if (r->rc == 0)
        r->rc = forward_dispatch(&r->rec, &second, kernel_module(a->attend), spec,
                                 tuning_attend(t, HEAD, HEADS / KV_HEADS, spec));
    if (r->rc == 0)
        r->rc = forward_dispatch(&r->rec, &third, kernel_module(KERNEL_MERGE), spec,
                                 tuning_merge(t, false, HEAD, spec));
}

static void cache_read(struct rig *r, const struct attention *a,
                       const struct gpu_buffer *b, float *to)
{
    enum { N = TOKENS * KV_HEADS * HEAD };
    uint16_t halves[N] = { 0 };
    rig_read(r, b, a->f32 ? (void *)to : halves, N * (a->f32 ? 4 : 2));
    for (int i = 0; i < N && !a->f32; i++)
        to[i] = quant_f16_to_f32(halves[i]);
}

/* Of each head the sums of its splits, put together; a split without a position
 * has a sum of 0 and nothing else that counts. */
static void partials_merge(const float *partials, float *out)
{
    const float *maxima = partials + TOKENS * HEADS * SPLITS * HEAD;
    for (int i = 0; i < TOKENS * HEADS; i++) {
        const float *p = partials + (size_t)i * SPLITS * HEAD;
        const float *m = maxima + (size_t)i * SPLITS * 2; /* maximum, sum */
        double most = -INFINITY, sum = 0, v[HEAD] = { 0 };
        for (int k = 0; k < SPLITS; k++)
            if (m[2 * k + 1] > 0)
                most = fmax(most, m[2 * k]);
        for (int k = 0; k < SPLITS; k++) {
            double weight = m[2 * k + 1] > 0 ? exp(m[2 * k] - most) : 0;
            sum += weight * m[2 * k + 1];
            for (int d = 0; d < HEAD && weight > 0; d++)
                v[d] += weight * p[k * HEAD + d];
        }
        for (int d = 0; d < HEAD; d++)
            out[i * HEAD + d] = (float)(v[d] / sum);
    }
}

/* Attention over what the cache really holds, and the gates. */
static void attention_check(struct attention *a, struct rig *r)
{
    enum { N = TOKENS * HEADS * HEAD, N_KV = TOKENS * KV_HEADS * HEAD };
    float *got = mem_array(N, sizeof *got), *k = mem_array(N_KV, sizeof *k),
          *v = mem_array(N_KV, sizeof *v);
    float *partials = mem_array(TOKENS * HEADS * SPLITS * (HEAD + 2), sizeof *partials);
    rig_read(r, &r->session.scratch.q, got, N * 4);
    rig_compare(r, kernel_module(a->qk)->name, got, a->q_want, N, 1e-4);
    cache_read(r, a, &a->k, k);
    cache_read(r, a, &a->v, v);
    rig_compare(r, kernel_module(a->qk)->name, k, a->k_want, N_KV, 2e-3);
    rig_compare(r, kernel_module(a->qk)->name, v, a->v_want, N_KV, 2e-3);
    for (size_t i = 0; i < TOKENS * HEADS; i++)
        ref_attend(&(struct ref_attention){ .q = got + i * HEAD,
                                            .k = k + i % HEADS / 2 * HEAD,
                                            .v = v + i % HEADS / 2 * HEAD,
                                            .n = i / HEADS + 1,
                                            .stride = KV_HEADS * HEAD,
                                            .dim = HEAD,
                                            .scale = 1.0 / 16 },
                   a->o_want + i * HEAD);
    rig_read(r, &r->session.scratch.partials, partials,
             TOKENS * HEADS * SPLITS * (HEAD + 2) * 4);
    partials_merge(partials, got);
    rig_compare(r, kernel_module(a->attend)->name, got, a->o_want, N, 1e-4);
    for (size_t i = 0; i < TOKENS * HEADS; i++)
        ref_gate(a->o_want + i * HEAD,
                 a->proj + i / HEADS * STRIDE + i % HEADS * Q_WIDTH + HEAD, HEAD);
    rig_read(r, &r->session.scratch.mixed.x, got, N * 4);
    rig_compare(r, kernel_module(KERNEL_MERGE)->name, got, a->o_want, N, 1e-4);
    free(got);
    free(k);
    free(v);
    free(partials);
}

static void attention_test(struct rig *r, bool f32)
{
    struct attention a = { .f32 = f32,
                           .qk = f32 ? KERNEL_QK_F32 : KERNEL_QK_F16,
                           .attend = f32 ? KERNEL_ATTEND_F32 : KERNEL_ATTEND_F16 };
    rig_begin(r, TOKENS);
    attention_make(&a, r);
    attention_record(&a, r);
    rig_run(r);
    attention_check(&a, r);
    attention_release(&a);
}

void selftest_attention(struct rig *r)
{
    if (!r->scope->attention)
        return;
    attention_test(r, false);
    if (r->scope->formats == UINT32_MAX) /* no command uses it but for comparing */
        attention_test(r, true);
}
