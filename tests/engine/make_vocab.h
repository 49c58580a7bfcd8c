/* make_vocab.h - opens vocabularies for tests: those of model files, and ones
 * made here key by key. */
#ifndef TESTS_ENGINE_MAKE_VOCAB_H
#define TESTS_ENGINE_MAKE_VOCAB_H

#include "base/buf.h"
#include "base/utf8.h"
#include "engine/bpe.h"
#include "engine/gguf.h"
#include "engine/vocab.h"
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

/* Types of values in files. */
enum { MAKE_U32 = 4, MAKE_I32 = 5, MAKE_STRING = 8, MAKE_ARRAY = 9 };

struct list {
    struct buf bytes;
    uint64_t n;
};

/* The metadata of a file without tensors, and arrays yet to be added to it. */
struct maker {
    struct buf keys;
    uint64_t n_keys;
    struct list tokens, types, merges;
};

static inline void put(struct buf *b, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        buf_char(b, (char)(v >> (8 * i)));
}

static inline void put_string(struct buf *b, const char *s, size_t n)
{
    put(b, n, 8);
    buf_add(b, s, n);
}

static inline void make_key(struct maker *m, const char *key, uint32_t type)
{
    put_string(&m->keys, key, strlen(key));
    put(&m->keys, type, 4);
    m->n_keys++;
}

static inline void make_string(struct maker *m, const char *key, const char *value)
{
    make_key(m, key, MAKE_STRING);
    put_string(&m->keys, value, strlen(value));
}

static inline void make_u32(struct maker *m, const char *key, uint32_t value)
{
    make_key(m, key, MAKE_U32);
    put(&m->keys, value, 4);
}

static inline void make_list(struct maker *m, const char *key, uint32_t type,
                             const struct list *l)
{
    make_key(m, key, MAKE_ARRAY);
    put(&m->keys, type, 4);
    put(&m->keys, l->n, 8);
    buf_add(&m->keys, l->bytes.v, l->bytes.len);
}

static inline void make_token_bytes(struct maker *m, const char *text, size_t bytes,
                                    int32_t type)
{
    put_string(&m->tokens.bytes, text, bytes);
    put(&m->types.bytes, (uint32_t)type, 4);
    m->tokens.n++;
    m->types.n++;
}

static inline void make_token(struct maker *m, const char *text, int32_t type)
{
    make_token_bytes(m, text, strlen(text), type);
}

static inline void make_merge(struct maker *m, const char *text)
{
    put_string(&m->merges.bytes, text, strlen(text));
    m->merges.n++;
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
    make_string(m, "general.architecture", "qwen35");
    make_string(m, "tokenizer.ggml.model", "gpt2");
    make_string(m, "tokenizer.ggml.pre", "qwen35");
}

static inline void make_lists(struct maker *m)
{
    make_list(m, "tokenizer.ggml.tokens", MAKE_STRING, &m->tokens);
    make_list(m, "tokenizer.ggml.token_type", MAKE_I32, &m->types);
    make_list(m, "tokenizer.ggml.merges", MAKE_STRING, &m->merges);
}

/* Writes and maps what was made and empties m. */
static inline struct gguf *made_file(struct maker *m)
{
    char path[] = "/tmp/tern-vocab-XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    struct buf file = BUF_INIT;
    buf_str(&file, "GGUF");
    put(&file, 3, 4);
    put(&file, 0, 8);
    put(&file, m->n_keys, 8);
    buf_add(&file, m->keys.v, m->keys.len);
    while (file.len % 32)
        buf_char(&file, 0);
    REQUIRE(write(fd, file.v, file.len) == (ssize_t)file.len);
    close(fd);
    buf_release(&file);
    buf_release(&m->keys);
    buf_release(&m->tokens.bytes);
    buf_release(&m->types.bytes);
    buf_release(&m->merges.bytes);
    *m = (struct maker){ 0 };
    struct err err = { "" };
    struct gguf *g = NULL;
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
