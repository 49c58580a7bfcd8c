/* vocab.h - the vocabulary of a model file: token texts and types, text to
 * ids and back. Token texts stay in the mapped file, which must outlive it.
 * Thread-safety: read-only after opening, any thread. */
#ifndef ENGINE_VOCAB_H
#define ENGINE_VOCAB_H

#include "base/buf.h"
#include "base/err.h"
#include "base/tokens.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf;
struct vocab;

/* As in tokenizer.ggml.token_type; other numbers are read as UNUSED. */
enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER_DEFINED,
    TOKEN_UNUSED,
    TOKEN_BYTE,
};

/* Reads the tokenizer.ggml.* keys. Fails if there are none, if they disagree,
 * or if the kind of tokenizer is not one that is implemented. */
int vocab_open(struct vocab **out, const struct gguf *g, struct err *err);
void vocab_close(struct vocab *v);

/* Chooses the pre-tokenizer by its name in the file ("qwen2", "qwen35") in
 * place of the file's own. Only before v is shared between threads. */
int vocab_set_pre(struct vocab *v, const char *name, struct err *err);
/* Name of the pre-tokenizer in use. */
const char *vocab_pre(const struct vocab *v);

/* Number of tokens: ids are 0 .. vocab_size - 1. */
uint32_t vocab_size(const struct vocab *v);
/* The lowest id whose text in the file is exactly this, or -1. */
int32_t vocab_find(const struct vocab *v, const char *text);
/* Text as in the file (byte-mapped if normal; hostile; not NUL-terminated);
 * *bytes gets its length. NULL and 0 if there is no such id. */
const char *vocab_text(const struct vocab *v, int32_t id, size_t *bytes);
/* TOKEN_UNUSED if there is no such id. */
enum token_type vocab_type(const struct vocab *v, int32_t id);

/* As model_tokenize and model_detokenize in engine.h. */
void vocab_encode(const struct vocab *v, const char *text, size_t bytes, unsigned flags,
                  struct tokens *out);
void vocab_decode(const struct vocab *v, int32_t id, unsigned flags, struct buf *out);

/* Whether the id ends a generation; and all such ids, ascending. */
bool vocab_is_end(const struct vocab *v, int32_t id);
size_t vocab_end_ids(const struct vocab *v, const int32_t **ids);

/* 32 hex digits over tokens, types, merges and pre-tokenizer; owned by v. */
const char *vocab_fingerprint(const struct vocab *v);

#endif
