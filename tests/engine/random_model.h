/* random_model.h - small models of any architecture with random weights whose
 * products keep the size of what they multiply, and what the plain C reference
 * makes of them. */
#ifndef TESTS_ENGINE_RANDOM_MODEL_H
#define TESTS_ENGINE_RANDOM_MODEL_H

#include "engine/ref_model.h"
#include "tests/engine/blocks.h"
#include "tests/engine/tiny_model.h"
#include "tests/engine/whole.h"

#include <math.h>

struct random_model {
    const char *arch;
    uint32_t layers, embd, ff;
    uint32_t interval; /* every so many'th layer of a hybrid is attention; 0: 4 */
    uint32_t heads, kv_heads, dim, rope;
    uint32_t k_heads, v_heads; /* of 128; 0 in plain architectures */
    uint32_t experts, used, ff_expert, ff_shared;
    bool tied;
    enum quant type; /* of the matrices; */
    bool deal;       /* with this of one after the other of all formats */
    bool factors;    /* beside every NVFP4 matrix, another one each */
    void (*keys)(struct gguf_writer *w); /* more of them */
    uint32_t noise;                      /* of the weights; not 0 */
};

/* A file being written. */
struct random_writer {
    const struct random_model *m;
    struct gguf_writer w;
    void *data[512];
    size_t n_data;
    enum quant next;
    uint32_t noise;
    uint32_t seen[QUANT_COUNT]; /* matrices of each format */
};

static inline void *random_keep(struct random_writer *r, void *data)
{
    REQUIRE(r->n_data < sizeof r->data / sizeof *r->data);
    return r->data[r->n_data++] = data;
}

static inline void random_tensor(struct random_writer *r, const char *name, enum quant q,
                                 const uint64_t ne[3], const void *data)
{
    struct gguf_writer *w = &r->w;
    size_t bytes = quant_bytes(q, ne[0] * ne[1] * ne[2]);
    REQUIRE(w->n_pieces < sizeof w->pieces / sizeof *w->pieces);
    gw_info(w, name, quant_format(q)->file_id, ne,
            ne[2] > 1   ? 3
            : ne[1] > 1 ? 2
                        : 1,
            w->data_bytes);
    w->pieces[w->n_pieces++] = (struct gw_piece){ w->data_bytes, data, bytes };
    w->data_bytes += gw_round(bytes, w->alignment);
}

/* n x rows values within low..high, F32. */
static inline void random_vector(struct random_writer *r, const char *name, uint64_t n,
                                 uint64_t rows, float low, float high)
{
    float *v = random_keep(r, mem_array(n * rows, sizeof *v));
    for (size_t i = 0; i < n * rows; i++)
        v[i] = low + (high - low) * (0.5f + 0.5f * block_value(&r->noise));
    random_tensor(r, name, QUANT_F32, (uint64_t[]){ n, rows, 1 }, v);
}

static inline double mean_square(const float *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * v[i];
    return sum / (double)n;
}

/* f32 values are written straight, so that other programs can make the same. */
static inline uint8_t *random_floats(struct random_writer *r, uint64_t cols, size_t n)
{
    float *v = mem_array(n, sizeof *v), size = sqrtf(3.0f / (float)cols);
    for (size_t i = 0; i < n; i++)
        v[i] = size * block_value(&r->noise);
    return (uint8_t *)v;
}

static inline uint8_t *random_blocks(struct random_writer *r, enum quant q, uint64_t cols,
                                     size_t n)
{
    float *values = mem_array(n, sizeof *values);
    uint8_t *probe = blocks_random(q, n, 1, &r->noise);
    quant_dequantize(q, probe, n, values);
    double size = sqrt(mean_square(values, n) * (double)cols);
    free(probe);
    free(values);
    return blocks_random(q, n, (float)(1 / size), &r->noise);
}

/* "x.weight" has its factors in "x.scale", one a matrix. */
static inline void random_factors(struct random_writer *r, const char *name, uint64_t n)
{
    char scale[GGUF_NAME_BYTES];
    snprintf(scale, sizeof scale, "%.*s.scale", (int)(strlen(name) - strlen(".weight")),
             name);
    random_vector(r, scale, n, 1, 0.7f, 1.4f);
}

static inline void random_matrix_of(struct random_writer *r, const char *name,
                                    enum quant q, const uint64_t ne[3])
{
    size_t n = ne[0] * ne[1] * ne[2];
    uint8_t *blocks =
        q == QUANT_F32 ? random_floats(r, ne[0], n) : random_blocks(r, q, ne[0], n);
    random_tensor(r, name, q, ne, random_keep(r, blocks));
    r->seen[q]++;
    if (q == QUANT_NVFP4 && r->m->factors)
        random_factors(r, name, ne[2]);
}

static inline enum quant random_format(struct random_writer *r)
{
    enum quant q = r->next;
    do
        r->next = r->m->deal ? (enum quant)((r->next + 1) % QUANT_COUNT) : q;
    while (!quant_format(r->next)->runs);
    return q;
}

static inline void random_matrix(struct random_writer *r, uint32_t layer,
                                 const char *role, uint64_t cols, uint64_t rows)
{
    char name[GGUF_NAME_BYTES];
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, role);
    random_matrix_of(r, name, random_format(r), (uint64_t[]){ cols, rows, 1 });
}

static inline void random_layer_vector(struct random_writer *r, uint32_t layer,
                                       const char *role, uint64_t n, float low,
                                       float high)
{
    char name[GGUF_NAME_BYTES];
    snprintf(name, sizeof name, "blk.%u.%s", layer, role);
    random_vector(r, name, n, 1, low, high);
}

/* Gate and up share a matrix on the device, hence a format. */
static inline void random_pair(struct random_writer *r, uint32_t layer, const char *kind,
                               const uint64_t ne[3])
{
    char name[GGUF_NAME_BYTES];
    enum quant q = random_format(r);
    snprintf(name, sizeof name, "blk.%u.ffn_gate%s.weight", layer, kind);
    random_matrix_of(r, name, q, ne);
    snprintf(name, sizeof name, "blk.%u.ffn_up%s.weight", layer, kind);
    random_matrix_of(r, name, q, ne);
}

static inline bool random_plain(const struct random_model *m)
{
    return m->k_heads == 0;
}

static inline void random_attention(struct random_writer *r, uint32_t i)
{
    const struct random_model *m = r->m;
    uint64_t heads = (uint64_t)m->heads * m->dim, kv = (uint64_t)m->kv_heads * m->dim;
    random_matrix(r, i, "attn_q", m->embd, random_plain(m) ? heads : 2 * heads);
    random_matrix(r, i, "attn_k", m->embd, kv);
    random_matrix(r, i, "attn_v", m->embd, kv);
    random_matrix(r, i, "attn_output", heads, m->embd);
    random_layer_vector(r, i, "attn_q_norm.weight", m->dim, 0.8f, 1.2f);
    random_layer_vector(r, i, "attn_k_norm.weight", m->dim, 0.8f, 1.2f);
}

static inline void random_recurrent(struct random_writer *r, uint32_t i)
{
    const struct random_model *m = r->m;
    uint64_t keys = 128 * m->k_heads, values = 128 * m->v_heads, conv = 2 * keys + values;
    char name[GGUF_NAME_BYTES];
    random_matrix(r, i, "attn_qkv", m->embd, conv);
    random_matrix(r, i, "attn_gate", m->embd, values);
    if (!strcmp(m->arch, "qwen3next")) {
        random_matrix(r, i, "ssm_ba", m->embd, 2 * m->v_heads);
    } else {
        random_matrix(r, i, "ssm_beta", m->embd, m->v_heads);
        random_matrix(r, i, "ssm_alpha", m->embd, m->v_heads);
    }
    random_matrix(r, i, "ssm_out", values, m->embd);
    snprintf(name, sizeof name, "blk.%u.ssm_conv1d.weight", i);
    random_vector(r, name, 4, conv, -0.5f, 0.5f);
    random_layer_vector(r, i, "ssm_dt.bias", m->v_heads, -1, 1);
    random_layer_vector(r, i, "ssm_a", m->v_heads, -1, -0.1f);
    random_layer_vector(r, i, "ssm_norm.weight", 128, 0.8f, 1.2f);
}

static inline void random_ffn(struct random_writer *r, uint32_t i)
{
    const struct random_model *m = r->m;
    char name[GGUF_NAME_BYTES];
    if (!m->experts) {
        random_pair(r, i, "", (uint64_t[]){ m->embd, m->ff, 1 });
        random_matrix(r, i, "ffn_down", m->ff, m->embd);
        return;
    }
    snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", i);
    random_vector(r, name, m->embd, m->experts, -0.3f, 0.3f);
    random_layer_vector(r, i, "ffn_gate_inp_shexp.weight", m->embd, -0.1f, 0.1f);
    random_pair(r, i, "_exps", (uint64_t[]){ m->embd, m->ff_expert, m->experts });
    snprintf(name, sizeof name, "blk.%u.ffn_down_exps.weight", i);
    random_matrix_of(r, name, random_format(r),
                     (uint64_t[]){ m->ff_expert, m->embd, m->experts });
    random_pair(r, i, "_shexp", (uint64_t[]){ m->embd, m->ff_shared, 1 });
    random_matrix(r, i, "ffn_down_shexp", m->ff_shared, m->embd);
}

static inline void random_number(struct gguf_writer *w, const char *arch, const char *key,
                                 uint32_t value)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", arch, key);
    if (value)
        gw_u32(w, name, value);
}

static inline void random_keys(struct gguf_writer *w, const struct random_model *m)
{
    const struct number all[] = {
        { "block_count", m->layers },
        { "context_length", 4096 },
        { "embedding_length", m->embd },
        { "feed_forward_length", m->ff },
        { "attention.head_count", m->heads },
        { "attention.head_count_kv", m->kv_heads },
        { "attention.key_length", m->dim },
        { "rope.dimension_count", m->rope },
        { "ssm.conv_kernel", random_plain(m) ? 0 : 4 },
        { "ssm.state_size", random_plain(m) ? 0 : 128 },
        { "ssm.group_count", m->k_heads },
        { "ssm.time_step_rank", m->v_heads },
        { "ssm.inner_size", 128 * m->v_heads },
        { "expert_count", m->experts },
        { "expert_used_count", m->used },
        { "expert_feed_forward_length", m->ff_expert },
        { "expert_shared_feed_forward_length", m->ff_shared },
    };
    char name[128];
    gw_begin(w);
    gw_str(w, "general.architecture", m->arch);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        random_number(w, m->arch, all[i].key, all[i].value);
    snprintf(name, sizeof name, "%s.attention.layer_norm_rms_epsilon", m->arch);
    gw_f32(w, name, 1e-6f);
    snprintf(name, sizeof name, "%s.rope.freq_base", m->arch);
    gw_f32(w, name, random_plain(m) ? 1e6f : 1e7f);
    if (m->keys)
        m->keys(w);
    write_vocab(w);
}

/* Writes the file; seen, if not NULL, gets how many matrices have each format. */
static inline void random_write(const struct random_model *m, const char *path,
                                uint32_t seen[QUANT_COUNT])
{
    struct random_writer *r = mem_zalloc(sizeof *r);
    r->m = m;
    r->next = m->type;
    r->noise = m->noise;
    random_keys(&r->w, m);
    const uint64_t embedding[3] = { m->embd, TOKENS, 1 };
    random_matrix_of(r, "token_embd.weight", random_format(r), embedding);
    if (!m->tied)
        random_matrix_of(r, "output.weight", random_format(r), embedding);
    random_vector(r, "output_norm.weight", m->embd, 1, 0.8f, 1.2f);
    for (uint32_t i = 0; i < m->layers; i++) {
        random_layer_vector(r, i, "attn_norm.weight", m->embd, 0.8f, 1.2f);
        random_layer_vector(
            r, i, random_plain(m) ? "ffn_norm.weight" : "post_attention_norm.weight",
            m->embd, 0.8f, 1.2f);
        if (random_plain(m) || (i + 1) % (m->interval ? m->interval : 4) == 0)
            random_attention(r, i);
        else
            random_recurrent(r, i);
        random_ffn(r, i);
    }
    gw_finish(&r->w);
    gw_save(&r->w, path);
    if (seen)
        memcpy(seen, r->seen, sizeof r->seen);
    gw_release(&r->w);
    for (size_t i = 0; i < r->n_data; i++)
        free(r->data[i]);
    free(r);
}

/* ---- comparing ----------------------------------------------------------- */

/* What is asked: logits after each of the last `more` + 1 of n ids. */
struct random_question {
    const int32_t *ids;
    size_t n, more;
};

static inline size_t random_answers(const struct random_question *q)
{
    return (1 + q->more) * TOKENS;
}

static inline void random_reference(const char *path, const struct random_question *q,
                                    float *logits)
{
    struct model *m;
    struct err err = { "" };
    OK(model_open(&m, path, &err), &err);
    struct ref_model *r = ref_model_open(m);
    for (size_t i = 1; i <= q->n; i++)
        ref_model_step(r, q->ids[i - 1],
                       i + q->more >= q->n ? logits + (i + q->more - q->n) * TOKENS
                                           : NULL);
    ref_model_close(r);
    model_close(m);
}

/* The same from the device; what comes before goes in as one chunk, or token by
 * token. */
static inline void random_device(const char *path, enum math_path math, bool chunk,
                                 const struct random_question *q, float *logits)
{
    struct whole w = whole_open(path, math);
    struct session *s = whole_session(&w, &(struct session_params){ .kv = KV_F32 });
    struct err err = { "" };
    int32_t id;
    size_t n;
    for (size_t i = chunk ? q->n - q->more : 1; i <= q->n; i++) {
        OK(session_sync(s, q->ids, i, NULL, NULL, &err), &err);
        OK(session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &n, &err), &err);
        if (i + q->more >= q->n)
            OK(session_logits(s, logits + (i + q->more - q->n) * TOKENS, &err), &err);
    }
    session_close(s);
    whole_close(&w);
}

/* Root of the mean square difference, relative to the size of `want`. */
static inline double relative_distance(const float *got, const float *want, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    return sqrt(sum / (double)n / mean_square(want, n));
}

/* Device against reference; false, with a line, where they are further apart. */
static inline bool random_agrees(const char *path, enum math_path math, bool chunk,
                                 const struct random_question *q, double most)
{
    size_t n = random_answers(q);
    float *want = mem_array(n, sizeof *want), *got = mem_array(n, sizeof *got);
    random_reference(path, q, want);
    random_device(path, math, chunk, q, got);
    double far = relative_distance(got, want, n);
    bool sane = mean_square(want, n) > 1e-3;
    printf("# %s, %s: %.2g apart (%.2g allowed)\n", math == MATH_FLOAT ? "float" : "int8",
           chunk ? "chunk" : "tokens", far, most);
    free(want);
    free(got);
    return sane && far < most;
}

#endif
