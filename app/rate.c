/* rate.c - a sliding rate over slots of at least SLOT_NS, so that the ring holds
 * the window whatever the speed. */
#include "app/rate.h"

#include <string.h>

#define WINDOW_NS UINT64_C(2000000000)
#define SLOT_NS   UINT64_C(25000000)
#define STALL_NS  UINT64_C(1000000000)

_Static_assert(WINDOW_NS / SLOT_NS < RATE_SLOTS, "the ring holds the window");

void rate_reset(struct rate *r)
{
    r->first = r->n = 0;
}

static struct rate_slot *slot(struct rate *r, uint32_t i)
{
    return &r->slots[(r->first + i) % RATE_SLOTS];
}

void rate_add(struct rate *r, uint64_t now_ns, uint32_t tokens)
{
    /* The first arrival stands alone: it comes after the prompt, and what it
     * brings is not counted. */
    if (r->n > 1) {
        struct rate_slot *last = slot(r, r->n - 1);
        if (now_ns - last->first_ns < SLOT_NS) {
            last->last_ns = now_ns;
            last->tokens += tokens;
            return;
        }
    }
    while (r->n > 1 && (now_ns - slot(r, 0)->last_ns > WINDOW_NS || r->n == RATE_SLOTS)) {
        r->first = (r->first + 1) % RATE_SLOTS;
        r->n--;
    }
    *slot(r, r->n++) = (struct rate_slot){ now_ns, now_ns, tokens };
}

double rate_get(const struct rate *r, uint64_t now_ns)
{
    if (r->n < 2)
        return 0;
    uint64_t tokens = 0, from = r->slots[r->first].last_ns, to = from;
    for (uint32_t i = 1; i < r->n; i++) {
        const struct rate_slot *s = &r->slots[(r->first + i) % RATE_SLOTS];
        tokens += s->tokens;
        to = s->last_ns;
    }
    if (now_ns > to + STALL_NS)
        to = now_ns;
    return to > from ? (double)tokens * 1e9 / (double)(to - from) : 0;
}

#define POINT_NS UINT64_C(500000000)

void graph_reset(struct graph *g)
{
    *g = (struct graph){ 0 };
}

void graph_add(struct graph *g, uint64_t now_ns, uint32_t tokens)
{
    if (!g->from_ns) {
        g->from_ns = now_ns;
        g->tokens = tokens;
        return;
    }
    if (now_ns - g->from_ns < POINT_NS)
        return;
    if (g->n == GRAPH_POINTS) {
        memmove(g->v, g->v + 1, (GRAPH_POINTS - 1) * sizeof *g->v);
        g->n--;
    }
    g->v[g->n++] =
        (float)((double)(tokens - g->tokens) * 1e9 / (double)(now_ns - g->from_ns));
    g->from_ns = now_ns;
    g->tokens = tokens;
}
