/* model_hparams.c - the table of architectures and the hyper-parameters of a
 * file. Zero, absurd or contradictory numbers make a file malformed; sensible
 * ones for which there are no kernels make it unsupported. */
#include "engine/model.h"

#include "shaders/push.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct arch archs[ARCH_COUNT] = {
    [ARCH_QWEN35] = { .id = ARCH_QWEN35, .name = "qwen35" },
    [ARCH_QWEN35MOE] = { .id = ARCH_QWEN35MOE, .name = "qwen35moe", .moe = true },
    [ARCH_QWEN3NEXT] = { .id = ARCH_QWEN3NEXT, .name = "qwen3next", .moe = true,
                         .grouped_heads = true, .fused_ba = true },
    [ARCH_QWEN3] = { .id = ARCH_QWEN3, .name = "qwen3", .plain = true },
};

const struct arch *arch_find(const char *name, size_t bytes)
{
    for (int i = 0; i < ARCH_COUNT; i++)
        if (strlen(archs[i].name) == bytes && !memcmp(archs[i].name, name, bytes))
            return &archs[i];
    return NULL;
}

/* What is read but not kept. */
struct raw {
    struct hparams hp;
    uint32_t n_block, n_nextn, value_length, inner_size;
};

/* PLAIN_LACKS: only files of plain architectures may go without. */
enum need { ALWAYS, DENSE_ONLY, MOE_ONLY, HYBRID_ONLY, PLAIN_LACKS, MAY_LACK };

struct field {
    const char *key;
    size_t at; /* of a uint32_t in struct raw */
    enum need need;
    uint32_t min, max; /* beyond: malformed */
};

#define FIELD(key, member, need, min, max)                                     \
    { key, offsetof(struct raw, member), need, min, max }

static const struct field fields[] = {
    FIELD("block_count", n_block, ALWAYS, 1, MODEL_MAX_LAYERS),
    FIELD("nextn_predict_layers", n_nextn, MAY_LACK, 0, MODEL_MAX_LAYERS),
    FIELD("context_length", hp.ctx_tokens, ALWAYS, 1, 1 << 30),
    FIELD("embedding_length", hp.n_embd, ALWAYS, 1, 1 << 20),
    FIELD("feed_forward_length", hp.n_ff, DENSE_ONLY, 1, 1 << 22),
    FIELD("attention.head_count", hp.n_head, ALWAYS, 1, MODEL_MAX_HEADS),
    FIELD("attention.head_count_kv", hp.n_head_kv, ALWAYS, 1, MODEL_MAX_HEADS),
    FIELD("attention.key_length", hp.head_dim, PLAIN_LACKS, 1, 1 << 14),
    FIELD("attention.value_length", value_length, MAY_LACK, 1, 1 << 14),
    FIELD("rope.dimension_count", hp.rope_dims, PLAIN_LACKS, 1, 1 << 14),
    FIELD("ssm.conv_kernel", hp.conv_kernel, HYBRID_ONLY, 1, 1 << 10),
    FIELD("ssm.state_size", hp.state_dim, HYBRID_ONLY, 1, 1 << 14),
    FIELD("ssm.group_count", hp.n_k_heads, HYBRID_ONLY, 1, MODEL_MAX_HEADS),
    FIELD("ssm.time_step_rank", hp.n_v_heads, HYBRID_ONLY, 1, MODEL_MAX_HEADS),
    FIELD("ssm.inner_size", inner_size, HYBRID_ONLY, 1, 1 << 24),
    FIELD("expert_count", hp.n_expert, MOE_ONLY, 1, 1 << 14),
    FIELD("expert_used_count", hp.n_expert_used, MOE_ONLY, 1, 1 << 14),
    FIELD("expert_feed_forward_length", hp.n_ff_expert, MOE_ONLY, 1, 1 << 20),
    FIELD("expert_shared_feed_forward_length", hp.n_ff_shared, MOE_ONLY, 1, 1 << 20),
};

void model_key(char key[MODEL_KEY_BYTES], const struct arch *arch, const char *suffix)
{
    snprintf(key, MODEL_KEY_BYTES, "%s.%s", arch->name, suffix);
}

/* A number that some converters write once a layer, with zeros where the layer
 * has no use for it: 1 found, 0 absent, -1 malformed. */
static int read_count(const struct gguf *g, const char *key, uint32_t *out,
                      struct err *err)
{
    struct gguf_array a;
    struct err ignored;
    if (gguf_array(g, key, GGUF_INTS, &a, &ignored) != 1)
        return gguf_u32(g, key, out, err);
    int64_t value = 0;
    for (uint64_t i = 0; i < a.n; i++) {
        int64_t n = gguf_array_int(&a, i);
        if (n && value && n != value)
            return err_set(err, "%s differs between layers; such a model is not known",
                           key);
        value = n ? n : value;
    }
    if (value < 0 || value > UINT32_MAX)
        return err_set(err, "%s is out of range", key);
    *out = (uint32_t)value;
    return 1;
}

static bool is_of(enum need need, const struct arch *arch)
{
    return !((need == DENSE_ONLY && arch->moe) || (need == MOE_ONLY && !arch->moe) ||
             (need == HYBRID_ONLY && arch->plain));
}

static int read_fields(struct raw *raw, const struct gguf *g, const struct arch *arch,
                       struct err *err)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct field *f = &fields[i];
        char key[MODEL_KEY_BYTES];
        uint32_t value = 0;
        model_key(key, arch, f->key);
        if (!is_of(f->need, arch))
            continue;
        int found = read_count(g, key, &value, err);
        if (found < 0)
            return -1;
        if (!found && (f->need == MAY_LACK || (f->need == PLAIN_LACKS && arch->plain)))
            continue;
        if (!found)
            return err_set(err, "lacks the metadata key %s; it is damaged or was made by "
                           "an unknown converter", key);
        if (value < f->min || value > f->max)
            return err_set(err, "%s is %u, not %u to %u; the file is damaged", key, value,
                           f->min, f->max);
        memcpy((char *)raw + f->at, &value, sizeof value);
    }
    return 0;
}

/* A finite number in [min, max]; *out is left alone if the key may lack. */
static int read_float(float *out, const struct gguf *g, const char *key, bool may_lack,
                      float min, float max, struct err *err)
{
    float value = 0;
    int found = gguf_f32(g, key, &value, err);
    if (found < 0 || (!found && may_lack))
        return found;
    if (!found)
        return err_set(err, "lacks the metadata key %s; it is damaged or was made by an "
                       "unknown converter", key);
    if (!(value >= min && value <= max))
        return err_set(err, "%s is %g, not %g to %g; the file is damaged", key,
                       (double)value, (double)min, (double)max);
    *out = value;
    return 1;
}

static int read_floats(struct hparams *hp, const struct gguf *g, const struct arch *arch,
                       struct err *err)
{
    char eps[MODEL_KEY_BYTES], base[MODEL_KEY_BYTES], scale[MODEL_KEY_BYTES];
    char experts[MODEL_KEY_BYTES];
    model_key(eps, arch, "attention.layer_norm_rms_epsilon");
    model_key(base, arch, "rope.freq_base");
    model_key(scale, arch, "attention.scale");
    model_key(experts, arch, "expert_weights_scale");
    if (read_float(&hp->rms_eps, g, eps, false, 1e-12f, 0.1f, err) < 0 ||
        read_float(&hp->rope_base, g, base, false, 1, 1e12f, err) < 0 ||
        read_float(&hp->attn_scale, g, scale, true, 0, 1e3f, err) < 0 ||
        read_float(&hp->expert_scale, g, experts, true, 0, 1e3f, err) < 0)
        return -1;
    if (arch->moe && hp->expert_scale == 0)
        hp->expert_scale = 1;
    return 0;
}

/* Value heads are in grouped order unless the converter put them into tiled
 * order; one family of converters says in a key which it did. */
static int read_head_order(struct hparams *hp, const struct gguf *g,
                           const struct arch *arch, struct err *err)
{
    char key[MODEL_KEY_BYTES];
    bool tiled = !arch->grouped_heads;
    model_key(key, arch, "ssm.v_head_reordered");
    if (gguf_bool(g, key, &tiled, err) < 0)
        return -1;
    hp->grouped_heads = !tiled;
    return 0;
}

/* Blocks that predict further tokens lie after the decoder's layers and are
 * counted with them. The key that says how many is missing in some files, so
 * their tensors count as well: the lowest block that has one. */
static uint32_t first_nextn_block(const struct gguf *g, uint32_t n_block)
{
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const char *name = gguf_tensor(g, i)->name;
        char *rest;
        if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9')
            continue;
        unsigned long block = strtoul(name + 4, &rest, 10);
        if (block < n_block && !strncmp(rest, ".nextn.", 7))
            n_block = (uint32_t)block;
    }
    return n_block;
}

/* What follows from the other numbers where the file does not say it. */
static int fill_heads(struct hparams *hp, struct err *err)
{
    if (!hp->n_head || (!hp->head_dim && hp->n_embd % hp->n_head))
        return err_set(err, "%u values cannot be shared by %u heads; the file is damaged",
                       hp->n_embd, hp->n_head);
    if (!hp->head_dim)
        hp->head_dim = hp->n_embd / hp->n_head;
    if (!hp->rope_dims)
        hp->rope_dims = hp->head_dim;
    if (hp->attn_scale == 0) /* both: absent and 0 mean the usual one */
        hp->attn_scale = 1 / sqrtf((float)hp->head_dim);
    hp->q_width = (hp->arch->plain ? 1 : 2) * hp->head_dim;
    return 0;
}

static int check_recurrent(const struct raw *raw, struct err *err)
{
    const struct hparams *hp = &raw->hp;
    if (hp->n_v_heads % hp->n_k_heads)
        return err_set(err, "ssm.time_step_rank %u is no multiple of ssm.group_count %u; "
                       "the file is damaged", hp->n_v_heads, hp->n_k_heads);
    if (raw->inner_size != (uint64_t)hp->n_v_heads * hp->state_dim)
        return err_set(err, "ssm.inner_size %u is not ssm.time_step_rank %u times "
                       "ssm.state_size %u; the file is damaged", raw->inner_size,
                       hp->n_v_heads, hp->state_dim);
    return 0;
}

static int check_sums(struct raw *raw, const struct gguf *g, struct err *err)
{
    struct hparams *hp = &raw->hp;
    if (raw->n_nextn >= raw->n_block)
        return err_set(err, "has %u blocks, of which %u predict further tokens; the file "
                       "is damaged", raw->n_block, raw->n_nextn);
    hp->n_layer = first_nextn_block(g, raw->n_block - raw->n_nextn);
    if (hp->n_layer == 0)
        return err_set(err, "has no decoder layer before its blk.0.nextn tensors; the "
                       "file is damaged");
    if (hp->n_head % hp->n_head_kv)
        return err_set(err, "%u heads cannot share %u key heads; the file is damaged",
                       hp->n_head, hp->n_head_kv);
    if (hp->rope_dims % 2 || hp->rope_dims > hp->head_dim)
        return err_set(err, "cannot rotate %u dimensions of heads of %u; the file is "
                       "damaged", hp->rope_dims, hp->head_dim);
    if (hp->n_expert_used > hp->n_expert)
        return err_set(err, "uses %u of %u experts; the file is damaged",
                       hp->n_expert_used, hp->n_expert);
    return hp->arch->plain ? 0 : check_recurrent(raw, err);
}

/* 1, or 0 with the reason: what the kernels are not made for. */
static int check_supported(const struct raw *raw, struct err *err)
{
    const struct hparams *hp = &raw->hp;
    const struct {
        const char *what;
        uint32_t value, multiple;
    } widths[] = {
        { "embedding_length", hp->n_embd, 32 },
        { "feed_forward_length", hp->n_ff, 32 },
        { "attention.key_length", hp->head_dim, 32 },
        { "rope.dimension_count", hp->rope_dims, 8 },
        { "expert_feed_forward_length", hp->n_ff_expert, 32 },
        { "expert_shared_feed_forward_length", hp->n_ff_shared, 32 },
    };
    err_set(err, "%s", "");
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i].value % widths[i].multiple)
            err_set(err, "%s %u is not supported, only multiples of %u", widths[i].what,
                    widths[i].value, widths[i].multiple);
    if (hp->head_dim > MODEL_MAX_HEAD_DIM)
        err_set(err, "attention heads of %u are not supported, only up to %d",
                hp->head_dim, MODEL_MAX_HEAD_DIM);
    if (raw->value_length && raw->value_length != hp->head_dim)
        err_set(err, "attention keys of %u and values of %u are not supported, only "
                "equal ones", hp->head_dim, raw->value_length);
    if (!hp->arch->plain && hp->state_dim != MODEL_STATE_DIM)
        err_set(err, "recurrent heads of %u are not supported, only of %d", hp->state_dim,
                MODEL_STATE_DIM);
    if (!hp->arch->plain && hp->conv_kernel != MODEL_CONV_KERNEL)
        err_set(err, "a convolution over %u tokens is not supported, only over %d",
                hp->conv_kernel, MODEL_CONV_KERNEL);
    if (hp->n_expert > SELECT_MAX_EXPERTS)
        err_set(err, "%u experts are not supported, only up to %d", hp->n_expert,
                SELECT_MAX_EXPERTS);
    if (hp->n_expert_used > SELECT_MAX_SLOTS)
        err_set(err, "%u experts a token are not supported, only up to %d",
                hp->n_expert_used, SELECT_MAX_SLOTS);
    return err->text[0] ? 0 : 1;
}

/* Variants whose results would silently differ: 1, 0 or -1 as hparams_read. */
static int check_variants(const struct gguf *g, const struct arch *arch, struct err *err)
{
    char key[MODEL_KEY_BYTES];
    bool normalised = true;
    model_key(key, arch, "norm_top_k_prob");
    if (gguf_bool(g, key, &normalised, err) < 0)
        return -1;
    if (arch->moe && !normalised) {
        err_set(err, "experts whose weights are not normalised are not supported");
        return 0;
    }
    return 1;
}

int hparams_read(struct hparams *hp, const struct gguf *g, const struct arch *arch,
                 struct err *err)
{
    struct raw raw = { .hp = { .arch = arch } };
    int rc = -1;
    if (read_fields(&raw, g, arch, err) < 0 || read_floats(&raw.hp, g, arch, err) < 0 ||
        read_head_order(&raw.hp, g, arch, err) < 0 || fill_heads(&raw.hp, err) < 0 ||
        check_sums(&raw, g, err) < 0)
        goto out;
    raw.hp.key_dim = raw.hp.n_k_heads * raw.hp.state_dim;
    raw.hp.value_dim = raw.hp.n_v_heads * raw.hp.state_dim;
    raw.hp.conv_dim = 2 * raw.hp.key_dim + raw.hp.value_dim;
    rc = check_supported(&raw, err);
    if (rc == 1)
        rc = check_variants(g, arch, err);
    if (rc == 1)
        rc = rope_scaling_read(&raw.hp.scaling, g, arch, err);
out:
    *hp = raw.hp;
    return rc;
}
