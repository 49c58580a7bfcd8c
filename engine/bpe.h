/* bpe.h - byte-level byte-pair encoding: merges ranked pairs of symbols until
 * none is left. Knows token texts and ids, nothing of files or special tokens.
 * Thread-safety: a struct bpe is read-only after opening, any thread; each
 * thread brings its own struct bpe_scratch. */
#ifndef ENGINE_BPE_H
#define ENGINE_BPE_H

#include "base/err.h"
#include "base/tokens.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpe_text {
    const char *v; /* not NUL-terminated */
    size_t bytes;
};

enum {
    BPE_MAX_TOKENS = 1 << 24,
    BPE_MAX_MERGES = 1 << 24,
    BPE_MAX_PIECE = 1 << 22 /* bytes merged as one; longer pieces are cut */
};

struct bpe_source {
    const struct bpe_text *tokens; /* by id; array and texts outlive the bpe */
    size_t n_tokens;
    const bool *mergeable;         /* by id: may take part in merges */
    const struct bpe_text *merges; /* "left right" by rank; only read in opening */
    size_t n_merges;
};

struct bpe;

/* Fails if one of the 256 bytes has no token or a count is out of range.
 * Merges of unknown or unmergeable tokens are ignored, of equal pairs all but
 * the first, of tokens with equal texts all but the lowest id. */
int bpe_open(struct bpe **out, const struct bpe_source *src, struct err *err);
void bpe_close(struct bpe *b);

/* The lowest id with that text, or -1. */
int32_t bpe_find(const struct bpe *b, const char *text, size_t bytes);
size_t bpe_n_merges(const struct bpe *b); /* those in use */

struct bpe_scratch {
    struct bpe_symbol *symbols;
    uint64_t *heap;
    size_t cap, heap_len;
    uint64_t steps; /* pairs taken off the heap so far: what encoding costs */
};
void bpe_scratch_release(struct bpe_scratch *s);

/* Appends the ids of one piece of n bytes (any bytes): of the pairs that have
 * a merge, always the one of lowest rank, leftmost first. Time n log n. */
void bpe_encode(const struct bpe *b, struct bpe_scratch *s, const char *bytes, size_t n,
                struct tokens *out);

/* The code point that stands for a byte in token texts, and back: -1 if it
 * stands for none. */
uint32_t bpe_byte_char(uint8_t byte);
int bpe_char_byte(uint32_t cp);

#endif
