/* vocab.c - reads and checks the vocabulary of a model file, and answers what
 * is known of an id. vocab_code.c has the way from text to ids and back. */
#include "engine/vocab.h"

#include "base/mem.h"
#include "engine/gguf.h"
#include "engine/vocab_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Texts that begin or end a turn. Where a file calls one of them a normal
 * token, text typed by a user could forge a turn. */
static const char *const turn_texts[] = { "<|im_start|>", "<|im_end|>", "<|endoftext|>" };
/* Beside the id that the file names, these end a generation. */
static const char *const end_texts[] = { "<|im_end|>", "<|endoftext|>", "<|fim_pad|>",
                                         "<|repo_name|>", "<|file_sep|>" };

static void digest(unsigned char out[VOCAB_DIGEST_BYTES], const void *v, size_t bytes)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(v, bytes));
    memcpy(out, canonical.digest, VOCAB_DIGEST_BYTES);
}

/* Views of an array of strings, and the digest of the array as it lies in the
 * file, lengths included. */
static int texts_read(struct bpe_text **out, size_t *n, unsigned char *content,
                      const struct gguf *g, const char *key, struct err *err)
{
    struct gguf_array a;
    int found = gguf_array(g, key, GGUF_STRINGS, &a, err);
    if (found < 0)
        return -1;
    if (!found)
        return err_set(err, "the file has no %s", key);
    if (a.n > BPE_MAX_MERGES)
        return err_set(err, "%s has %llu entries, more than %d", key,
                       (unsigned long long)a.n, (int)BPE_MAX_MERGES);
    *n = (size_t)a.n;
    *out = mem_array(*n, sizeof **out);
    for (size_t i = 0; i < *n; i++) {
        struct gguf_str s = gguf_array_str(&a, i);
        (*out)[i] = (struct bpe_text){ s.v, s.bytes };
    }
    digest(content, a.v, *n ? (size_t)a.at[a.n] : 0);
    return 0;
}

static bool is_turn_text(const struct bpe_text *t)
{
    for (size_t i = 0; i < sizeof turn_texts / sizeof *turn_texts; i++)
        if (strlen(turn_texts[i]) == t->bytes && !memcmp(turn_texts[i], t->v, t->bytes))
            return true;
    return false;
}

static int types_read(struct vocab *v, const struct gguf *g, struct err *err)
{
    static const char key[] = "tokenizer.ggml.token_type";
    struct gguf_array a;
    int found = gguf_array(g, key, GGUF_INTS, &a, err);
    if (found < 0)
        return -1;
    if (!found)
        return err_set(err, "the file has no %s", key);
    if (a.n != v->n)
        return err_set(err, "%s has %llu entries for %u tokens", key,
                       (unsigned long long)a.n, v->n);
    v->types = mem_alloc(v->n);
    for (uint32_t id = 0; id < v->n; id++) {
        int64_t type = gguf_array_int(&a, id);
        bool known = type >= TOKEN_NORMAL && type <= TOKEN_BYTE;
        v->types[id] = (uint8_t)(known ? type : TOKEN_UNUSED);
        if (is_turn_text(&v->tokens[id]))
            v->types[id] = TOKEN_CONTROL;
    }
    digest(v->content[1], v->types, v->n);
    return 0;
}

static int kind_check(const struct gguf *g, struct err *err)
{
    struct gguf_str model;
    char shown[GGUF_TEXT_BYTES];
    int found = gguf_string(g, "tokenizer.ggml.model", &model, err);
    if (found < 0)
        return -1;
    if (!found)
        return err_set(err, "the file has no vocabulary (no tokenizer.ggml.model)");
    if (model.bytes != 4 || memcmp(model.v, "gpt2", 4) != 0)
        return err_set(err,
                       "tokenizer \"%s\" is not supported, only byte-level BPE "
                       "(\"gpt2\")",
                       gguf_text(shown, model.v, model.bytes));
    return 0;
}

static int pre_set(struct vocab *v, const char *name, size_t bytes, struct err *err)
{
    char shown[GGUF_TEXT_BYTES];
    int rule = pretoken_from_name(name, bytes);
    if (rule < 0)
        return err_set(err,
                       "pre-tokenizer \"%s\" is not supported, only qwen2 and "
                       "qwen35",
                       gguf_text(shown, name, bytes));
    v->pre = (enum pretoken_rule)rule;
    unsigned char sums[4][VOCAB_DIGEST_BYTES], sum[VOCAB_DIGEST_BYTES];
    memcpy(sums, v->content, sizeof v->content);
    digest(sums[3], name, bytes);
    digest(sum, sums, sizeof sums);
    for (size_t i = 0; i < VOCAB_DIGEST_BYTES; i++)
        snprintf(v->fingerprint + 2 * i, 3, "%02x", sum[i]);
    return 0;
}

static void end_add(struct vocab *v, int64_t id)
{
    if (id < 0 || id >= v->n || vocab_is_end(v, (int32_t)id) ||
        v->n_end == VOCAB_MAX_END_IDS)
        return;
    size_t i = v->n_end++;
    for (; i > 0 && v->end_ids[i - 1] > id; i--)
        v->end_ids[i] = v->end_ids[i - 1];
    v->end_ids[i] = (int32_t)id;
}

static int ends_read(struct vocab *v, const struct gguf *g, struct err *err)
{
    static const char *const keys[] = { "tokenizer.ggml.eos_token_id",
                                        "tokenizer.ggml.eot_token_id" };
    for (size_t i = 0; i < sizeof end_texts / sizeof *end_texts; i++)
        end_add(v, vocab_find(v, end_texts[i]));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t id;
        int found = gguf_u32(g, keys[i], &id, err);
        if (found < 0)
            return -1;
        if (found)
            end_add(v, id);
    }
    return 0;
}

/* Arrays by id that depend on the types, and the tokens to cut out. */
static void types_index(struct vocab *v)
{
    int32_t *ids = mem_array(v->n, sizeof *ids);
    size_t n_ids = 0;
    v->hidden = mem_array(v->n, sizeof *v->hidden);
    for (uint32_t id = 0; id < v->n; id++) {
        const struct bpe_text *t = &v->tokens[id];
        bool user = v->types[id] == TOKEN_USER_DEFINED;
        v->hidden[id] = v->types[id] == TOKEN_CONTROL || v->types[id] == TOKEN_UNKNOWN;
        if ((user || v->hidden[id]) && bpe_find(v->bpe, t->v, t->bytes) == (int32_t)id)
            ids[n_ids++] = (int32_t)id;
    }
    special_open(&v->special, v->tokens, ids, n_ids);
    free(ids);
}

static int vocab_read(struct vocab *v, const struct gguf *g, struct bpe_text **merges,
                      struct err *err)
{
    size_t n_tokens = 0, n_merges = 0;
    struct gguf_str pre;
    if (kind_check(g, err) ||
        texts_read(&v->tokens, &n_tokens, v->content[0], g, "tokenizer.ggml.tokens", err))
        return -1;
    v->n = (uint32_t)n_tokens;
    if (types_read(v, g, err) ||
        texts_read(merges, &n_merges, v->content[2], g, "tokenizer.ggml.merges", err))
        return -1;
    bool *normal = mem_array(v->n, sizeof *normal);
    for (uint32_t id = 0; id < v->n; id++)
        normal[id] = v->types[id] == TOKEN_NORMAL;
    const struct bpe_source src = { v->tokens, v->n, normal, *merges, n_merges };
    int rc = bpe_open(&v->bpe, &src, err);
    free(normal);
    if (rc)
        return -1;
    types_index(v);
    int found = gguf_string(g, "tokenizer.ggml.pre", &pre, err);
    if (found == 0)
        err_set(err, "the file does not name its pre-tokenizer (tokenizer.ggml.pre)");
    if (found != 1 || pre_set(v, pre.v, pre.bytes, err))
        return -1;
    return ends_read(v, g, err);
}

int vocab_open(struct vocab **out, const struct gguf *g, struct err *err)
{
    struct vocab *v = mem_zalloc(sizeof *v);
    struct bpe_text *merges = NULL;
    *out = NULL;
    int rc = vocab_read(v, g, &merges, err);
    free(merges);
    if (rc)
        vocab_close(v);
    else
        *out = v;
    return rc;
}

void vocab_close(struct vocab *v)
{
    if (!v)
        return;
    special_close(v->special);
    bpe_close(v->bpe);
    free(v->tokens);
    free(v->types);
    free(v->hidden);
    free(v);
}

int vocab_set_pre(struct vocab *v, const char *name, struct err *err)
{
    return pre_set(v, name, strlen(name), err);
}

const char *vocab_pre(const struct vocab *v)
{
    return pretoken_name(v->pre);
}

uint32_t vocab_size(const struct vocab *v)
{
    return v->n;
}

int32_t vocab_find(const struct vocab *v, const char *text)
{
    return bpe_find(v->bpe, text, strlen(text));
}

const char *vocab_text(const struct vocab *v, int32_t id, size_t *bytes)
{
    *bytes = vocab_has(v, id) ? v->tokens[id].bytes : 0;
    return vocab_has(v, id) ? v->tokens[id].v : NULL;
}

enum token_type vocab_type(const struct vocab *v, int32_t id)
{
    return vocab_has(v, id) ? (enum token_type)v->types[id] : TOKEN_UNUSED;
}

bool vocab_is_end(const struct vocab *v, int32_t id)
{
    for (size_t i = 0; i < v->n_end; i++)
        if (v->end_ids[i] == id)
            return true;
    return false;
}

size_t vocab_end_ids(const struct vocab *v, const int32_t **ids)
{
    *ids = v->end_ids;
    return v->n_end;
}

const char *vocab_fingerprint(const struct vocab *v)
{
    return v->fingerprint;
}
