/* model.c - opens a model file and describes it. What cannot be read is an
 * error; what can be read but not run opens with a reason, so that its
 * vocabulary and its description can still be used. */
#include "engine/model.h"

#include "base/mem.h"
#include "engine/template.h"
#include "engine/vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first reason found is the one that is told. */
static void refuse(struct model *m, const char *reason)
{
    if (!m->refusal)
        m->refusal = mem_strdup(reason);
}

/* ---- description -------------------------------------------------------- */

/* A text of the metadata, or the fallback when it is absent or no text. */
static char *text_of(const struct gguf *g, const char *key, const char *fallback)
{
    struct gguf_str s = { fallback, strlen(fallback) };
    gguf_string(g, key, &s, NULL);
    return mem_strndup(s.v, s.bytes);
}

/* The same for a number of the architecture's; 0 when there is none. */
static uint32_t number_of(const struct model *m, const char *suffix)
{
    struct buf key = BUF_INIT;
    uint32_t value = 0;
    buf_printf(&key, "%s.%s", m->architecture, suffix);
    gguf_u32(m->file, buf_cstr(&key), &value, NULL);
    buf_release(&key);
    return value;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

struct share {
    enum quant type;
    uint64_t bytes;
};

static int compare_shares(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (int)x->type - (int)y->type;
}

/* "Q2_0 68%, Q8_0 31%": formats by bytes, those that round to 0 % left out. */
static char *share_text(struct share shares[QUANT_COUNT], uint64_t total)
{
    struct buf text = BUF_INIT;
    qsort(shares, QUANT_COUNT, sizeof *shares, compare_shares);
    for (int i = 0; i < QUANT_COUNT && shares[i].bytes; i++) {
        double percent = 100.0 * (double)shares[i].bytes / (double)total;
        if (percent >= 0.5)
            buf_printf(&text, "%s%s %.0f%%", text.len ? ", " : "",
                       quant_format(shares[i].type)->name, percent);
    }
    return buf_detach(&text);
}

/* "tensors for images or sound (333) are not used"; NULL for none. */
static char *aside_text(const struct gguf *g, uint32_t n_layer)
{
    size_t senses = 0, predictions = 0;
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct tensor *t = gguf_tensor(g, i);
        bool decoder = tensor_is_decoder(t, n_layer);
        bool block = !strncmp(t->name, "blk.", 4) || !strncmp(t->name, "mtp.", 4);
        predictions += !decoder && block;
        senses += !decoder && !block;
    }
    struct buf text = BUF_INIT;
    if (!senses && !predictions)
        return NULL;
    if (senses)
        buf_printf(&text, "tensors for images or sound (%zu)", senses);
    if (predictions)
        buf_printf(&text, "%s for predicting further tokens (%zu)",
                   senses ? " and" : "tensors", predictions);
    buf_str(&text, " are not used");
    return buf_detach(&text);
}

static void describe_tensors(struct model *m, uint32_t n_layer)
{
    struct share shares[QUANT_COUNT];
    for (int q = 0; q < QUANT_COUNT; q++)
        shares[q] = (struct share){ (enum quant)q, 0 };
    for (size_t i = 0; i < gguf_n_tensors(m->file); i++) {
        const struct tensor *t = gguf_tensor(m->file, i);
        if (!tensor_is_decoder(t, n_layer))
            continue;
        m->info.n_params += t->n_elements;
        m->info.weight_bytes += t->bytes;
        shares[t->type].bytes += t->bytes;
    }
    m->quantisation = share_text(shares, m->info.weight_bytes);
    m->aside = aside_text(m->file, n_layer);
}

/* Bytes of one recurrent layer's state: the last inputs of the convolution and
 * a matrix a value head, all f32. */
static uint64_t layer_state_bytes(const struct hparams *hp)
{
    uint64_t conv = (uint64_t)(hp->conv_kernel - 1) * hp->conv_dim;
    return (conv + (uint64_t)hp->n_v_heads * hp->state_dim * hp->state_dim) *
           sizeof(float);
}

static void describe_decoder(struct model *m)
{
    const struct hparams *hp = &m->hp;
    struct model_info *info = &m->info;
    info->n_layers = hp->n_layer;
    info->n_recurrent = hp->n_recurrent;
    info->n_attention = hp->n_attention;
    info->n_vocab = hp->n_vocab;
    info->kv_bytes_per_token = hp->n_attention * hp->n_head_kv * hp->head_dim *
                               2 * (uint32_t)sizeof(uint16_t);
    info->state_bytes = hp->n_recurrent * layer_state_bytes(hp);
}

static void describe_file(struct model *m)
{
    struct model_info *info = &m->info;
    m->architecture = text_of(m->file, "general.architecture", "");
    m->name = text_of(m->file, "general.name", base_name(gguf_path(m->file)));
    info->path = gguf_path(m->file);
    info->file_bytes = gguf_file_bytes(m->file);
    info->n_tensors = (uint32_t)gguf_n_tensors(m->file);
    info->n_metadata = (uint32_t)gguf_n_keys(m->file);
    info->n_layers = number_of(m, "block_count");
    info->n_embd = number_of(m, "embedding_length");
    info->ctx_tokens = number_of(m, "context_length");
    info->n_expert = number_of(m, "expert_count");
    info->n_expert_used = number_of(m, "expert_used_count");
}

/* ---- opening ------------------------------------------------------------ */

/* A file whose vocabulary is missing or of an unknown kind still opens. */
static void open_vocab(struct model *m)
{
    struct err err;
    if (vocab_open(&m->vocab, m->file, &err) < 0) {
        m->vocab = NULL;
        refuse(m, err.text);
        return;
    }
    m->info.n_vocab = vocab_size(m->vocab);
    m->info.tokenizer_id = vocab_fingerprint(m->vocab);
    if (template_open(&m->tmpl, m->file, m->vocab, &err) < 0) {
        m->tmpl = NULL;
        refuse(m, err.text);
        return;
    }
    m->info.family = template_family(m->tmpl);
    m->info.assumed = template_note(m->tmpl);
    m->info.has_thinking = template_has_thinking(m->tmpl);
    m->info.thinking_default = template_thinking_default(m->tmpl);
    m->info.effort = template_effort(m->tmpl);
    if (template_refusal(m->tmpl))
        refuse(m, template_refusal(m->tmpl));
}

static bool has_decoder(const struct gguf *g)
{
    for (size_t i = 0; i < gguf_n_tensors(g); i++)
        if (!strncmp(gguf_tensor(g, i)->name, "blk.0.", 6))
            return true;
    return false;
}

/* What the keys and the tensor list say at first sight; NULL for a file whose
 * decoder is worth reading. */
static const char *reason_at_sight(const struct model *m, char *text, size_t bytes)
{
    char name[GGUF_TEXT_BYTES];
    if (!*m->architecture)
        return "the file does not name its architecture (general.architecture)";
    if (gguf_n_tensors(m->file) == 0)
        return "the file holds no weights; it can only tokenise";
    if (!arch_find(m->architecture, strlen(m->architecture))) {
        snprintf(text, bytes, "the architecture %s is not supported",
                 gguf_text(name, m->architecture, strlen(m->architecture)));
        return text;
    }
    if (!has_decoder(m->file))
        return "the file holds no decoder layers (it is an accessory of another model)";
    return NULL;
}

/* Hyper-parameters, weights, and whether they can run: 1, 0 or -1. */
static int open_decoder(struct model *m, struct err *err)
{
    const struct arch *arch = arch_find(m->architecture, strlen(m->architecture));
    int rc = hparams_read(&m->hp, m->file, arch, err);
    if (rc == 1)
        rc = weights_find(&m->w, &m->hp, m->file, err);
    if (rc != 1)
        return rc;
    m->complete = true;
    describe_decoder(m);
    return weights_runnable(&m->w, &m->hp, m->file, err);
}

static int check_vocab_size(const struct model *m, struct err *err)
{
    if (m->complete && m->vocab && vocab_size(m->vocab) != m->hp.n_vocab)
        return err_set(err, "has %u tokens in its vocabulary but %u rows in "
                       "token_embd.weight; the file is damaged", vocab_size(m->vocab),
                       m->hp.n_vocab);
    return 0;
}

static int open_parts(struct model *m, struct err *err)
{
    struct err why;
    describe_file(m);
    uint32_t n_layer = MODEL_MAX_LAYERS;
    const char *reason = reason_at_sight(m, why.text, sizeof why.text);
    if (reason) {
        refuse(m, reason);
    } else {
        int rc = open_decoder(m, &why);
        if (rc < 0)
            return err_set(err, "%s: %s", gguf_path(m->file), why.text);
        if (rc == 0)
            refuse(m, why.text);
        m->info.computes = rc == 1;
        n_layer = m->hp.n_layer;
    }
    describe_tensors(m, n_layer);
    open_vocab(m);
    if (check_vocab_size(m, err) < 0)
        return err_prefix(err, "%s", gguf_path(m->file));
    m->info.architecture = m->architecture;
    m->info.name = m->name;
    m->info.quantisation = m->quantisation;
    m->info.refusal = m->refusal;
    m->info.aside = m->aside;
    if (!m->info.family)
        m->info.family = "";
    if (!m->info.tokenizer_id)
        m->info.tokenizer_id = "";
    return 0;
}

int model_open(struct model **out, const char *path, struct err *err)
{
    *out = NULL;
    struct model *m = mem_zalloc(sizeof *m);
    if (gguf_open(&m->file, path, err) < 0 || open_parts(m, err) < 0) {
        model_close(m);
        return -1;
    }
    *out = m;
    return 0;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    template_close(m->tmpl);
    vocab_close(m->vocab);
    weights_release(&m->w);
    gguf_close(m->file);
    free(m->architecture);
    free(m->name);
    free(m->quantisation);
    free(m->refusal);
    free(m->aside);
    free(m);
}

const struct model_info *model_info(const struct model *m)
{
    return &m->info;
}

int model_check(const struct model *m, struct err *err)
{
    return gguf_check(m->file, false, err);
}
