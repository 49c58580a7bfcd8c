/* bpe.c - token and merge tables as open-addressing hash tables, sized once,
 * and merging with a heap over a linked list of symbols.
 *
 * A merge is a pair of ids; its result is looked up at opening, so encoding
 * touches no text. Heap entries are rank << 32 | position, hence ordered by
 * rank, then from the left; an entry whose pair has changed since is dropped
 * when it comes up. */
#include "engine/bpe.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { END = -1 };

struct slot {
    uint32_t tag; /* high half of the text's hash */
    int32_t id;   /* -1: free */
};

struct merge {
    int32_t left, right; /* left -1: free */
    int32_t result;
    uint32_t rank;
};

struct bpe {
    const struct bpe_text *tokens;
    struct slot *slots;
    struct merge *merges;
    size_t slot_mask, merge_mask, n_merges;
    int32_t byte_id[256];
};

struct bpe_symbol {
    int32_t id; /* -1: merged into the one before it */
    int32_t prev, next;
};

uint32_t bpe_byte_char(uint8_t byte)
{
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte >= 0x7F && byte <= 0xA0)
        return 0x121u + (byte - 0x7Fu);
    return byte == 0xAD ? 0x143u : byte;
}

int bpe_char_byte(uint32_t cp)
{
    if (cp >= 0x100 && cp <= 0x120)
        return (int)(cp - 0x100);
    if (cp >= 0x121 && cp <= 0x142)
        return (int)(cp - 0x121 + 0x7F);
    if (cp == 0x143)
        return 0xAD;
    return cp <= 0xFF && bpe_byte_char((uint8_t)cp) == cp ? (int)cp : -1;
}

/* A power of two that leaves at least half of the table free. */
static size_t table_size(size_t n)
{
    size_t size = 16;
    while (size < 2 * n)
        size *= 2;
    return size;
}

/* The slot that holds this text, or the free one where it belongs. */
static struct slot *slot_find(const struct bpe *b, const char *text, size_t bytes,
                              uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t i = hash & b->slot_mask;; i = (i + 1) & b->slot_mask) {
        struct slot *s = &b->slots[i];
        if (s->id < 0)
            return s;
        const struct bpe_text *t = &b->tokens[s->id];
        if (s->tag == tag && t->bytes == bytes && !memcmp(t->v, text, bytes))
            return s;
    }
}

int32_t bpe_find(const struct bpe *b, const char *text, size_t bytes)
{
    return slot_find(b, text, bytes, XXH3_64bits(text, bytes))->id;
}

static void tokens_index(struct bpe *b, const struct bpe_source *src)
{
    size_t size = table_size(src->n_tokens);
    b->slots = mem_array(size, sizeof *b->slots);
    b->slot_mask = size - 1;
    for (size_t i = 0; i < size; i++)
        b->slots[i].id = -1;
    for (size_t id = 0; id < src->n_tokens; id++) {
        const struct bpe_text *t = &src->tokens[id];
        uint64_t hash = XXH3_64bits(t->v, t->bytes);
        struct slot *s = slot_find(b, t->v, t->bytes, hash);
        if (s->id < 0)
            *s = (struct slot){ (uint32_t)(hash >> 32), (int32_t)id };
    }
}

/* The merge of this pair, or the free entry where it belongs. */
static struct merge *merge_find(const struct bpe *b, int32_t left, int32_t right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) *
                    0x9E3779B97F4A7C15u; /* spreads over the high bits */
    for (size_t i = (hash >> 32) & b->merge_mask;; i = (i + 1) & b->merge_mask) {
        struct merge *m = &b->merges[i];
        if (m->left < 0 || (m->left == left && m->right == right))
            return m;
    }
}

static int32_t find_mergeable(const struct bpe *b, const struct bpe_source *src,
                              const char *text, size_t bytes)
{
    int32_t id = bpe_find(b, text, bytes);
    return id >= 0 && src->mergeable[id] ? id : -1;
}

/* Adds "left right": cut at the first space after the first byte. */
static void merge_add(struct bpe *b, const struct bpe_source *src, uint32_t rank,
                      struct buf *joined)
{
    const struct bpe_text *t = &src->merges[rank];
    const char *space = t->bytes > 2 ? memchr(t->v + 1, ' ', t->bytes - 1) : NULL;
    if (!space)
        return;
    size_t n_left = (size_t)(space - t->v), n_right = t->bytes - n_left - 1;
    int32_t left = find_mergeable(b, src, t->v, n_left);
    int32_t right = find_mergeable(b, src, space + 1, n_right);
    if (left < 0 || right < 0)
        return;
    buf_truncate(joined, 0);
    buf_add(joined, t->v, n_left);
    buf_add(joined, space + 1, n_right);
    int32_t result = find_mergeable(b, src, joined->v, joined->len);
    struct merge *m = merge_find(b, left, right);
    if (result < 0 || m->left >= 0)
        return;
    *m = (struct merge){ left, right, result, rank };
    b->n_merges++;
}

static void merges_index(struct bpe *b, const struct bpe_source *src)
{
    size_t size = table_size(src->n_merges);
    b->merges = mem_array(size, sizeof *b->merges);
    b->merge_mask = size - 1;
    for (size_t i = 0; i < size; i++)
        b->merges[i].left = -1;
    struct buf joined = BUF_INIT;
    for (size_t rank = 0; rank < src->n_merges; rank++)
        merge_add(b, src, (uint32_t)rank, &joined);
    buf_release(&joined);
}

int bpe_open(struct bpe **out, const struct bpe_source *src, struct err *err)
{
    *out = NULL;
    if (src->n_tokens == 0 || src->n_tokens > BPE_MAX_TOKENS ||
        src->n_merges > BPE_MAX_MERGES)
        return err_set(err, "%zu tokens and %zu merges are not a vocabulary (most: %d)",
                       src->n_tokens, src->n_merges, (int)BPE_MAX_TOKENS);
    struct bpe *b = mem_zalloc(sizeof *b);
    b->tokens = src->tokens;
    tokens_index(b, src);
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[4];
        size_t n = utf8_encode(bpe_byte_char((uint8_t)byte), text);
        b->byte_id[byte] = find_mergeable(b, src, text, n);
        if (b->byte_id[byte] < 0) {
            bpe_close(b);
            return err_set(err, "the vocabulary has no normal token for byte 0x%02X",
                           byte);
        }
    }
    merges_index(b, src);
    *out = b;
    return 0;
}

void bpe_close(struct bpe *b)
{
    if (!b)
        return;
    free(b->slots);
    free(b->merges);
    free(b);
}

size_t bpe_n_merges(const struct bpe *b)
{
    return b->n_merges;
}

void bpe_scratch_release(struct bpe_scratch *s)
{
    free(s->symbols);
    free(s->heap);
    *s = (struct bpe_scratch){ 0 };
}

static void heap_push(struct bpe_scratch *s, uint64_t key)
{
    size_t i = s->heap_len++;
    while (i > 0 && s->heap[(i - 1) / 2] > key) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = key;
}

static uint64_t heap_pop(struct bpe_scratch *s)
{
    uint64_t top = s->heap[0], key = s->heap[--s->heap_len];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->heap_len; i = child) {
        if (child + 1 < s->heap_len && s->heap[child + 1] < s->heap[child])
            child++;
        if (s->heap[child] >= key)
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = key;
    return top;
}

/* Puts the pair that begins at pos on the heap if it has a merge. */
static void pair_push(const struct bpe *b, struct bpe_scratch *s, int32_t pos)
{
    int32_t next = pos == END ? END : s->symbols[pos].next;
    if (next == END)
        return;
    const struct merge *m = merge_find(b, s->symbols[pos].id, s->symbols[next].id);
    if (m->left >= 0)
        heap_push(s, (uint64_t)m->rank << 32 | (uint32_t)pos);
}

static void piece_begin(const struct bpe *b, struct bpe_scratch *s, const char *bytes,
                        size_t n)
{
    if (s->cap < n) {
        s->cap = n * 2 > 256 ? n * 2 : 256;
        s->symbols = mem_regrow(s->symbols, s->cap, sizeof *s->symbols);
        /* each of n - 1 pairs at first, then at most one more for each merge */
        s->heap = mem_regrow(s->heap, 2 * s->cap, sizeof *s->heap);
    }
    s->heap_len = 0;
    for (size_t i = 0; i < n; i++)
        s->symbols[i] = (struct bpe_symbol){ b->byte_id[(unsigned char)bytes[i]],
                                             (int32_t)i - 1, (int32_t)i + 1 };
    s->symbols[n - 1].next = END;
    for (size_t i = 0; i + 1 < n; i++)
        pair_push(b, s, (int32_t)i);
}

static void piece_merge(const struct bpe *b, struct bpe_scratch *s)
{
    struct bpe_symbol *symbols = s->symbols;
    while (s->heap_len) {
        uint64_t key = heap_pop(s);
        s->steps++;
        int32_t pos = (int32_t)(uint32_t)key;
        struct bpe_symbol *left = &symbols[pos];
        if (left->id < 0 || left->next == END)
            continue;
        struct bpe_symbol *right = &symbols[left->next];
        const struct merge *m = merge_find(b, left->id, right->id);
        if (m->left < 0 || m->rank != key >> 32)
            continue;
        left->id = m->result;
        right->id = -1;
        left->next = right->next;
        if (left->next != END)
            symbols[left->next].prev = pos;
        pair_push(b, s, left->prev);
        pair_push(b, s, pos);
    }
}

void bpe_encode(const struct bpe *b, struct bpe_scratch *s, const char *bytes, size_t n,
                struct tokens *out)
{
    while (n) {
        size_t piece = n < BPE_MAX_PIECE ? n : BPE_MAX_PIECE;
        piece_begin(b, s, bytes, piece);
        piece_merge(b, s);
        for (int32_t i = 0; i != END; i = s->symbols[i].next)
            tokens_push(out, s->symbols[i].id);
        bytes += piece;
        n -= piece;
    }
}
