/* special.c - the texts sorted by bytes, with the range of each first byte; a
 * look-up narrows a range byte by byte. */
#include "engine/special.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct bpe_text text;
    int32_t id;
};

struct special {
    struct entry *v; /* ascending; a prefix of another text before it */
    size_t n;
    size_t first[257]; /* entries that begin with byte b: [first[b], first[b + 1]) */
};

static int entry_compare(const void *a, const void *b)
{
    const struct bpe_text *x = &((const struct entry *)a)->text;
    const struct bpe_text *y = &((const struct entry *)b)->text;
    int order = memcmp(x->v, y->v, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static unsigned byte_at(const struct entry *e, size_t depth)
{
    return (unsigned char)e->text.v[depth];
}

/* First entry in [lo, hi) whose byte at depth is c or greater; all of them are
 * longer than depth. */
static size_t lower_bound(const struct special *sp, size_t lo, size_t hi, size_t depth,
                          unsigned c)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (byte_at(&sp->v[mid], depth) < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void special_open(struct special **out, const struct bpe_text *tokens, const int32_t *ids,
                  size_t n_ids)
{
    struct special *sp = mem_zalloc(sizeof *sp);
    sp->v = mem_array(n_ids, sizeof *sp->v);
    for (size_t i = 0; i < n_ids; i++) {
        const struct bpe_text *t = &tokens[ids[i]];
        if (t->bytes && t->bytes <= SPECIAL_MAX_BYTES)
            sp->v[sp->n++] = (struct entry){ *t, ids[i] };
    }
    qsort(sp->v, sp->n, sizeof *sp->v, entry_compare);
    for (unsigned c = 0; c <= 256; c++)
        sp->first[c] = lower_bound(sp, 0, sp->n, 0, c);
    *out = sp;
}

void special_close(struct special *sp)
{
    if (!sp)
        return;
    free(sp->v);
    free(sp);
}

/* The longest text that begins s, or -1. */
static int32_t prefix_find(const struct special *sp, const bool *skip, const char *s,
                           size_t n, size_t *bytes)
{
    unsigned c = (unsigned char)s[0];
    size_t lo = sp->first[c], hi = sp->first[c + 1];
    int32_t best = -1;
    /* entries [lo, hi) agree with s in their first `depth` bytes */
    for (size_t depth = 1; lo < hi; depth++) {
        if (sp->v[lo].text.bytes == depth) {
            if (!skip || !skip[sp->v[lo].id]) {
                best = sp->v[lo].id;
                *bytes = depth;
            }
            lo++;
        }
        if (depth == n)
            break;
        c = (unsigned char)s[depth];
        lo = lower_bound(sp, lo, hi, depth, c);
        hi = lower_bound(sp, lo, hi, depth, c + 1);
    }
    return best;
}

int32_t special_find(const struct special *sp, const bool *skip, const char *s, size_t n,
                     size_t *at, size_t *bytes)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id = prefix_find(sp, skip, s + i, n - i, bytes);
        if (id >= 0) {
            *at = i;
            return id;
        }
    }
    return -1;
}
