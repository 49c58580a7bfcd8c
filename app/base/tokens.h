/* tokens.h - a growable list of token ids. */
#ifndef BASE_TOKENS_H
#define BASE_TOKENS_H

#include "base/mem.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct tokens {
    int32_t *v;
    size_t len, cap;
};

static inline void tokens_add(struct tokens *t, const int32_t *ids, size_t n)
{
    if (t->cap - t->len < n) {
        size_t cap = t->cap * 2 > t->len + n ? t->cap * 2 : t->len + n + 16;
        t->v = mem_regrow(t->v, cap, sizeof *t->v);
        t->cap = cap;
    }
    assert(!n || t->v);
    if (n)
        memcpy(t->v + t->len, ids, n * sizeof *ids);
    t->len += n;
}

static inline void tokens_push(struct tokens *t, int32_t id)
{
    tokens_add(t, &id, 1);
}

static inline void tokens_release(struct tokens *t)
{
    free(t->v);
    *t = (struct tokens){ 0 };
}

#endif
