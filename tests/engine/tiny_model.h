/* tiny_model.h - a complete model of a few kilobytes of header and no data,
 * written with one thing changed, and checks of how it opens. */
#ifndef TESTS_ENGINE_TINY_MODEL_H
#define TESTS_ENGINE_TINY_MODEL_H

#include "engine/model.h"
#include "engine/vocab.h"
#include "tests/engine/gguf_writer.h"
#include "tests/test.h"

#define MINI "assets/tern-mini.gguf"

/* ---- a tiny model -------------------------------------------------------- */

enum {
    E = 64, FF = 96, HEADS = 2, KV_HEADS = 1, HEAD_DIM = 32, N_K = 1, N_V = 2,
    K_DIM = 128, V_DIM = 256, CONV_DIM = 2 * K_DIM + V_DIM, LAYERS = 4,
    EXPERTS = 4, M = 32, S = 64, TOKENS = 260
};

struct tiny {
    const char *arch;             /* NULL: qwen35 */
    const char *drop_key, *set_key; /* without the architecture's prefix */
    uint64_t value;               /* of set_key */
    uint32_t value_type;          /* 0: GGUF_U32 */
    void (*keys)(struct gguf_writer *w);
    const char *drop, *rename, *to;
    const char *reshape;          /* tensor that gets these extents */
    uint64_t ne[3];
    const char *retype;
    enum quant type;
    void (*tensors)(struct gguf_writer *w);
    uint32_t blocks;              /* block_count; 0: LAYERS */
    uint32_t layers;              /* that get tensors; 0: LAYERS */
    uint32_t wide_ff;             /* width of the FFN, key and tensors; 0: FF */
};

struct number {
    const char *key;
    uint32_t value;
};

static const struct number numbers[] = {
    { "block_count", LAYERS }, { "context_length", 4096 }, { "embedding_length", E },
    { "feed_forward_length", FF }, { "attention.head_count", HEADS },
    { "attention.head_count_kv", KV_HEADS }, { "attention.key_length", HEAD_DIM },
    { "attention.value_length", HEAD_DIM }, { "rope.dimension_count", 16 },
    { "ssm.conv_kernel", 4 }, { "ssm.state_size", 128 }, { "ssm.group_count", N_K },
    { "ssm.time_step_rank", N_V }, { "ssm.inner_size", V_DIM },
    { "full_attention_interval", 4 },
};
static const struct number expert_numbers[] = {
    { "expert_count", EXPERTS }, { "expert_used_count", 2 },
    { "expert_feed_forward_length", M }, { "expert_shared_feed_forward_length", S },
};

static inline const char *tiny_arch(const struct tiny *t)
{
    return t->arch ? t->arch : "qwen35";
}

static inline bool tiny_moe(const struct tiny *t)
{
    return strcmp(tiny_arch(t), "qwen35") != 0;
}

static inline bool same(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static inline void write_number(struct gguf_writer *w, const struct tiny *t,
                                const struct number *n)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", tiny_arch(t), n->key);
    if (same(t->drop_key, n->key))
        return;
    if (same(t->set_key, n->key))
        gw_scalar(w, key, t->value_type ? t->value_type : GGUF_U32, t->value);
    else if (!strcmp(n->key, "block_count") && t->blocks)
        gw_u32(w, key, t->blocks);
    else if (!strcmp(n->key, "feed_forward_length") && t->wide_ff)
        gw_u32(w, key, t->wide_ff);
    else
        gw_u32(w, key, n->value);
}

static inline void write_float(struct gguf_writer *w, const struct tiny *t,
                               const char *name, float v)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", tiny_arch(t), name);
    if (same(t->drop_key, name))
        return;
    if (same(t->set_key, name))
        gw_scalar(w, key, t->value_type ? t->value_type : GGUF_F32, t->value);
    else
        gw_f32(w, key, v);
}

/* Every byte as the format maps it to a character, and four special tokens. */
static inline void write_vocab(struct gguf_writer *w)
{
    static const char *const special[] = { "<|im_start|>", "<|im_end|>", "<think>",
                                           "</think>" };
    static const char *const merges[] = { "a b" };
    int32_t types[TOKENS];
    int shifted = 0;
    gw_str(w, "tokenizer.ggml.model", "gpt2");
    gw_str(w, "tokenizer.ggml.pre", "qwen35");
    gw_array(w, "tokenizer.ggml.tokens", GGUF_STRING, TOKENS);
    for (int b = 0; b < 256; b++) {
        bool plain = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
        int c = plain ? b : 0x100 + shifted++;
        char utf8[2] = { (char)(0xc0 | c >> 6), (char)(0x80 | (c & 63)) };
        char ascii = (char)c;
        gw_bytes(w, c < 0x80 ? &ascii : utf8, c < 0x80 ? 1 : 2);
        types[b] = 1;
    }
    for (int i = 0; i < 4; i++) {
        gw_text(w, special[i]);
        types[256 + i] = 3;
    }
    gw_i32s(w, "tokenizer.ggml.token_type", types, TOKENS);
    gw_strs(w, "tokenizer.ggml.merges", merges, 1);
    gw_u32(w, "tokenizer.ggml.eos_token_id", 257);
}

static inline void put_as(struct gguf_writer *w, const char *name, enum quant q,
                          uint64_t ne0, uint64_t ne1, uint64_t ne2)
{
    const uint64_t ne[3] = { ne0, ne1, ne2 };
    gw_info(w, name, quant_format(q)->file_id, ne, ne2 > 1 ? 3 : ne1 > 1 ? 2 : 1,
            w->data_bytes);
    w->data_bytes += gw_round(quant_bytes(q, ne0 * ne1 * ne2), w->alignment);
}

static inline void put(struct gguf_writer *w, const struct tiny *t, const char *name,
                       uint64_t ne0, uint64_t ne1, uint64_t ne2)
{
    if (same(t->drop, name))
        return;
    if (same(t->reshape, name)) {
        ne0 = t->ne[0];
        ne1 = t->ne[1] ? t->ne[1] : 1;
        ne2 = t->ne[2] ? t->ne[2] : 1;
    }
    put_as(w, same(t->rename, name) ? t->to : name,
           same(t->retype, name) ? t->type : QUANT_F32, ne0, ne1, ne2);
}

static inline void put_block(struct gguf_writer *w, const struct tiny *t, uint32_t i,
                             const char *role, uint64_t ne0, uint64_t ne1)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s", i, role);
    put(w, t, name, ne0, ne1, 1);
}

static inline void put_experts(struct gguf_writer *w, const struct tiny *t, uint32_t i,
                               const char *role, uint64_t ne0, uint64_t ne1)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s", i, role);
    put(w, t, name, ne0, ne1, EXPERTS);
}

static inline void write_mixer(struct gguf_writer *w, const struct tiny *t, uint32_t i)
{
    if ((i + 1) % 4 == 0) {
        put_block(w, t, i, "attn_q.weight", E, 2 * HEAD_DIM * HEADS);
        put_block(w, t, i, "attn_k.weight", E, HEAD_DIM * KV_HEADS);
        put_block(w, t, i, "attn_v.weight", E, HEAD_DIM * KV_HEADS);
        put_block(w, t, i, "attn_output.weight", HEAD_DIM * HEADS, E);
        put_block(w, t, i, "attn_q_norm.weight", HEAD_DIM, 1);
        put_block(w, t, i, "attn_k_norm.weight", HEAD_DIM, 1);
        return;
    }
    put_block(w, t, i, "attn_qkv.weight", E, CONV_DIM);
    put_block(w, t, i, "attn_gate.weight", E, V_DIM);
    put_block(w, t, i, "ssm_conv1d.weight", 4, CONV_DIM);
    put_block(w, t, i, "ssm_dt.bias", N_V, 1);
    put_block(w, t, i, "ssm_a", N_V, 1);
    if (!strcmp(tiny_arch(t), "qwen3next")) {
        put_block(w, t, i, "ssm_ba.weight", E, 2 * N_V);
    } else {
        put_block(w, t, i, "ssm_alpha.weight", E, N_V);
        put_block(w, t, i, "ssm_beta.weight", E, N_V);
    }
    put_block(w, t, i, "ssm_norm.weight", 128, 1);
    put_block(w, t, i, "ssm_out.weight", V_DIM, E);
}

static inline void write_ffn(struct gguf_writer *w, const struct tiny *t, uint32_t i)
{
    if (!tiny_moe(t)) {
        uint32_t ff = t->wide_ff ? t->wide_ff : FF;
        put_block(w, t, i, "ffn_gate.weight", E, ff);
        put_block(w, t, i, "ffn_up.weight", E, ff);
        put_block(w, t, i, "ffn_down.weight", ff, E);
        return;
    }
    put_block(w, t, i, "ffn_gate_inp.weight", E, EXPERTS);
    put_experts(w, t, i, "ffn_gate_exps.weight", E, M);
    put_experts(w, t, i, "ffn_up_exps.weight", E, M);
    put_experts(w, t, i, "ffn_down_exps.weight", M, E);
    put_block(w, t, i, "ffn_gate_inp_shexp.weight", E, 1);
    put_block(w, t, i, "ffn_gate_shexp.weight", E, S);
    put_block(w, t, i, "ffn_up_shexp.weight", E, S);
    put_block(w, t, i, "ffn_down_shexp.weight", S, E);
}

static inline void write_tiny(struct gguf_writer *w, const struct tiny *t)
{
    gw_begin(w);
    if (!same(t->drop_key, "general.architecture"))
        gw_str(w, "general.architecture", tiny_arch(t));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        write_number(w, t, &numbers[i]);
    for (size_t i = 0; tiny_moe(t) && i < sizeof expert_numbers / sizeof *expert_numbers;
         i++)
        write_number(w, t, &expert_numbers[i]);
    write_float(w, t, "attention.layer_norm_rms_epsilon", 1e-6f);
    write_float(w, t, "rope.freq_base", 1e7f);
    if (t->keys)
        t->keys(w);
    write_vocab(w);
    put(w, t, "token_embd.weight", E, TOKENS, 1);
    put(w, t, "output_norm.weight", E, 1, 1);
    for (uint32_t i = 0; i < (t->layers ? t->layers : LAYERS); i++) {
        put_block(w, t, i, "attn_norm.weight", E, 1);
        put_block(w, t, i, "post_attention_norm.weight", E, 1);
        write_mixer(w, t, i);
        write_ffn(w, t, i);
    }
    if (t->tensors)
        t->tensors(w);
    gw_finish(w);
}

static inline int open_tiny(struct model **m, const struct tiny *t, struct err *e)
{
    struct gguf_writer w;
    char path[256];
    write_tiny(&w, t);
    gw_save(&w, gw_path(path, "tiny.gguf"));
    gw_release(&w);
    e->text[0] = 0;
    return model_open(m, path, e);
}

/* Opens, and the test ends if it does not. */
static inline struct model *need_tiny(const struct tiny *t)
{
    struct model *m;
    struct err e;
    if (open_tiny(&m, t, &e) < 0) {
        printf("# %s\n", e.text);
        exit(1);
    }
    return m;
}

static inline bool one_clear_line(const char *s)
{
    for (const char *p = s; *p; p++)
        if (*p < ' ' || *p > '~')
            return false;
    return strlen(s) > 10;
}

static inline void check_text(const char *got, const char *want, const char *what,
                              int line)
{
    if (got && strstr(got, want) && one_clear_line(got))
        return;
    printf("# line %d, %s: want \"%s\", got \"%s\"\n", line, what, want,
           got ? got : "(nothing)");
    test_failures++;
}

static inline void malformed(const struct tiny *t, const char *want, int line)
{
    struct model *m;
    struct err e;
    if (open_tiny(&m, t, &e) == 0) {
        check_text(m->refusal ? m->refusal : "opened and runs", want, "malformed", line);
        CHECK(!"refused with an error");
        model_close(m);
        return;
    }
    CHECK(m == NULL);
    check_text(e.text, want, "malformed", line);
    check_text(e.text, "tiny.gguf: ", "malformed", line);
}

static inline void refused(const struct tiny *t, const char *want, int line)
{
    struct model *m = need_tiny(t);
    check_text(model_info(m)->refusal, want, "refused", line);
    model_close(m);
}

static inline void runs(const struct tiny *t, int line)
{
    struct model *m = need_tiny(t);
    if (m->refusal || !m->complete)
        printf("# line %d: %s\n", line, m->refusal ? m->refusal : "incomplete");
    CHECK(!m->refusal && m->complete);
    model_close(m);
}

#define MALFORMED(want, ...) malformed(&(struct tiny){ __VA_ARGS__ }, want, __LINE__)
#define REFUSED(want, ...) refused(&(struct tiny){ __VA_ARGS__ }, want, __LINE__)
#define RUNS(...) runs(&(struct tiny){ __VA_ARGS__ }, __LINE__)

#endif
