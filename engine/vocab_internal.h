/* vocab_internal.h - a vocabulary in memory, shared by vocab*.c. Arrays are by
 * id; texts stay in the mapping of the model file. */
#ifndef ENGINE_VOCAB_INTERNAL_H
#define ENGINE_VOCAB_INTERNAL_H

#include "engine/bpe.h"
#include "engine/pretoken.h"
#include "engine/special.h"
#include "engine/vocab.h"

enum { VOCAB_MAX_END_IDS = 8, VOCAB_DIGEST_BYTES = 16 };

struct vocab {
    uint32_t n;
    struct bpe_text *tokens;
    uint8_t *types; /* enum token_type */
    bool *hidden;   /* control and unknown tokens: never cut from plain text */
    struct bpe *bpe;
    struct special *special;
    enum pretoken_rule pre;
    int32_t end_ids[VOCAB_MAX_END_IDS]; /* ascending */
    size_t n_end;
    /* digests of tokens, types, merges; fingerprint adds the pre-tokenizer */
    unsigned char content[3][VOCAB_DIGEST_BYTES];
    char fingerprint[2 * VOCAB_DIGEST_BYTES + 1];
};

static inline bool vocab_has(const struct vocab *v, int32_t id)
{
    return id >= 0 && (uint32_t)id < v->n;
}

#endif
