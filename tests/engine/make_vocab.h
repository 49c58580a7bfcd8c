/* make_vocab.h - opens vocabularies for tests: those of model files, and ones
 * made here key by key. */
#ifndef TESTS_ENGINE_MAKE_VOCAB_H
#define TESTS_ENGINE_MAKE_VOCAB_H

#include "base/utf8.h"
#include "engine/bpe.h"
#include "engine/gguf.h"
#include "engine/vocab.h"
#include "tests/engine/gguf_writer.h"
#include "tests/test.h"

struct opened {
    struct gguf *g;
    struct vocab *v;
};

static inline struct opened open_vocab(const char *path)
{
    struct opened o = { NULL, NULL };
    struct err err;
    REQUIRE(gguf_open(&o.g, path, &err) == 0);
    if (vocab_open(&o.v, o.g, &err))
        printf("# %s\n", err.text);
    REQUIRE(o.v);
    return o;
}

static inline struct opened open_qwen3(void)
{
    return open_vocab("tests/data/qwen3-vocab.gguf");
}

static inline struct opened open_mini(void)
{
    return open_vocab("assets/tern-mini.gguf");
}

static inline void opened_close(struct opened *o)
{
    vocab_close(o->v);
    gguf_close(o->g);
}

/* Elements of an array, as they lie in a file. */
struct list {
    struct buf bytes;
    uint64_t n;
};

/* The keys of a file without tensors, and arrays yet to be added to them. */
struct maker {
    struct gguf_writer w;
    struct list tokens, types, merges;
};

static inline void make_begin(struct maker *m)
{
    *m = (struct maker){ 0 };
    gw_begin(&m->w);
}

static inline void make_list(struct maker *m, const char *key, uint32_t type,
                             const struct list *l)
{
    gw_array(&m->w, key, type, l->n);
    buf_add(&m->w.head, l->bytes.v, l->bytes.len);
}

static inline void list_number(struct list *l, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        buf_char(&l->bytes, (char)(v >> (8 * i)));
}

static inline void list_string(struct list *l, const char *s, size_t bytes)
{
    list_number(l, bytes, 8);
    buf_add(&l->bytes, s, bytes);
    l->n++;
}

static inline void make_token_bytes(struct maker *m, const char *text, size_t bytes,
                                    int32_t type)
{
    list_string(&m->tokens, text, bytes);
    list_number(&m->types, (uint32_t)type, 4);
    m->types.n++;
}

static inline void make_token(struct maker *m, const char *text, int32_t type)
{
    make_token_bytes(m, text, strlen(text), type);
}

static inline void make_merge(struct maker *m, const char *text)
{
    list_string(&m->merges, text, strlen(text));
}

/* The 256 tokens of single bytes, ids 0 to 255. */
static inline void make_bytes(struct maker *m)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char s[5] = { 0 };
        utf8_encode(bpe_byte_char((uint8_t)byte), s);
        make_token(m, s, TOKEN_NORMAL);
    }
}

static inline void make_head(struct maker *m)
{
    make_begin(m);
    gw_str(&m->w, "general.architecture", "qwen35");
    gw_str(&m->w, "tokenizer.ggml.model", "gpt2");
    gw_str(&m->w, "tokenizer.ggml.pre", "qwen35");
}

static inline void make_lists(struct maker *m)
{
    make_list(m, "tokenizer.ggml.tokens", GGUF_STRING, &m->tokens);
    make_list(m, "tokenizer.ggml.token_type", GGUF_I32, &m->types);
    make_list(m, "tokenizer.ggml.merges", GGUF_STRING, &m->merges);
}

/* Writes and maps what was made, and releases it. */
static inline struct gguf *made_file(struct maker *m)
{
    char path[256];
    struct err err = { "" };
    struct gguf *g = NULL;
    gw_finish(&m->w);
    gw_save(&m->w, gw_path(path, "vocab.gguf"));
    gw_release(&m->w);
    buf_release(&m->tokens.bytes);
    buf_release(&m->types.bytes);
    buf_release(&m->merges.bytes);
    if (gguf_open(&g, path, &err))
        printf("# %s\n", err.text);
    unlink(path);
    REQUIRE(g);
    return g;
}

/* The vocabulary of what was made; its v is NULL if it is refused. */
static inline struct opened made_vocab(struct maker *m, struct err *err)
{
    struct opened o = { made_file(m), NULL };
    CHECK((vocab_open(&o.v, o.g, err) == 0) == (o.v != NULL));
    return o;
}

#endif
