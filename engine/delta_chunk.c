/* delta_chunk.c - shapes and bindings of the chunked delta rule's steps. */
#include "engine/delta_chunk.h"

#include <string.h>

enum { STRIP = 8 }; /* tokens, as in shaders/delta_conv.comp */

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

void delta_chunk_scratch(const struct delta_tuning *t, const struct push_delta *p,
                         uint32_t tokens, uint64_t bytes[DELTA_SCRATCH])
{
    uint64_t padded = (uint64_t)divide_up(tokens, t->chunk) * t->chunk;
    bytes[DELTA_KQ] = padded * p->n_k * STATE_DIM * 2 * 4;
    bytes[DELTA_K] = padded * p->n_k * STATE_DIM * 4;
    bytes[DELTA_V] = padded * p->n_v * STATE_DIM * 4;
    bytes[DELTA_SOLVED] = padded * p->n_v * 2 * t->chunk * 4;
    bytes[DELTA_PACE] = padded * p->n_v * 2 * 4;
}

/* ---- the scan's workgroups ----------------------------------------------- */

struct scan {
    uint32_t columns, heads;
};

static uint32_t scan_shared(const struct delta_tuning *t, struct scan s)
{
    return s.heads * s.columns * (STATE_DIM + t->chunk) * 4;
}

static uint32_t scan_size(const struct delta_tuning *t, struct scan s)
{
    return s.heads * (s.columns / 4) * (2 * t->chunk / t->rows);
}

static bool scan_fits(const struct delta_tuning *t, const struct push_delta *p,
                      struct scan s)
{
    return p->n_v / p->n_k % s.heads == 0 &&
           (!t->most_shared || scan_shared(t, s) <= t->most_shared) &&
           (!t->most_size || scan_size(t, s) <= t->most_size);
}

/* First how many columns the busiest compute unit works on, then how much it
 * reads: keys, queries and keys again are three times as much as what a head
 * has of its own. */
static uint64_t scan_cost(const struct delta_tuning *t, const struct push_delta *p,
                          struct scan s)
{
    uint32_t groups = p->n_v * STATE_DIM / (s.columns * s.heads);
    uint64_t busiest = t->units ? divide_up(groups, t->units) : groups;
    return busiest * s.columns * s.heads << 32 | busiest * (3 + s.heads);
}

static struct scan scan_choose(const struct delta_tuning *t, const struct push_delta *p)
{
    struct scan best = { t->columns, t->heads }, s = best;
    if (!t->units && scan_fits(t, p, best))
        return best;
    uint64_t least = UINT64_MAX;
    for (s.columns = t->columns; s.columns >= 4; s.columns /= 2)
        for (s.heads = t->heads; s.heads >= 1; s.heads--) {
            uint64_t cost = scan_cost(t, p, s);
            if (scan_fits(t, p, s) && cost < least) {
                best = s;
                least = cost;
            }
        }
    return best;
}

uint32_t delta_chunk_shared(const struct delta_tuning *t, const struct push_delta *p)
{
    uint32_t solve = t->chunk * t->chunk * 4 + t->chunk * 16;
    uint32_t scan = scan_shared(t, scan_choose(t, p));
    return solve > scan ? solve : scan;
}

/* ---- the steps ----------------------------------------------------------- */

static void set_spec(struct delta_step *s, uint32_t n, const uint32_t *spec)
{
    s->n_spec = n;
    memcpy(s->spec, spec, n * sizeof *spec);
}

static void conv_step(struct delta_step *s, const struct delta_tuning *t,
                      const struct push_delta *p, uint32_t tokens)
{
    uint32_t padded = divide_up(tokens, t->chunk) * t->chunk;
    s->module = kernel_module(KERNEL_DELTA_CONV);
    set_spec(s, 3, (uint32_t[]){ t->strips * STATE_DIM / 4, t->chunk, t->strips });
    s->dispatch.groups[0] = p->conv_dim / STATE_DIM;
    s->dispatch.groups[1] = divide_up(padded, t->strips * STRIP);
    s->dispatch.label = "delta conv";
}

static void solve_step(struct delta_step *s, const struct delta_tuning *t,
                       const struct push_delta *p, uint32_t tokens)
{
    s->module = kernel_module(KERNEL_DELTA_SOLVE);
    set_spec(s, 3, (uint32_t[]){ t->solve_size, t->chunk, t->solve_size });
    s->dispatch.groups[0] = p->n_v;
    s->dispatch.groups[1] = divide_up(tokens, t->chunk);
    s->dispatch.label = "delta solve";
}

static void scan_step(struct delta_step *s, const struct delta_tuning *t,
                      const struct push_delta *p)
{
    struct scan w = scan_choose(t, p);
    s->module = kernel_module(KERNEL_DELTA_SCAN);
    set_spec(
        s, 6,
        (uint32_t[]){ scan_size(t, w), t->chunk, w.columns, t->rows, t->ahead, w.heads });
    s->dispatch.groups[0] = p->n_v * STATE_DIM / (w.columns * w.heads);
    s->dispatch.label = "delta scan";
}

static void emit_step(struct delta_step *s, const struct delta_tuning *t,
                      const struct push_delta *p, uint32_t tokens, bool int8)
{
    s->module = kernel_module(KERNEL_DELTA_EMIT);
    set_spec(s, 3, (uint32_t[]){ t->emit_size, int8, t->emit_size });
    s->dispatch.groups[0] = divide_up(p->n_v * STATE_DIM / 4, t->emit_size);
    s->dispatch.groups[1] = tokens;
    s->dispatch.label = "delta emit";
}

void delta_chunk_steps(struct delta_step steps[DELTA_STEPS], const struct delta_tuning *t,
                       const struct push_delta *p, const struct delta_spans *spans,
                       uint32_t tokens, bool int8)
{
    const struct delta_spans *x = spans;
    const struct gpu_span *tmp = x->scratch;
    const struct gpu_span binds[DELTA_STEPS][7] = {
        { x->ctl, x->proj, x->history, x->taps, tmp[DELTA_KQ], tmp[DELTA_K],
          tmp[DELTA_V] },
        { x->ctl, x->proj, x->dt, x->a, tmp[DELTA_KQ], tmp[DELTA_SOLVED],
          tmp[DELTA_PACE] },
        { x->ctl, tmp[DELTA_KQ], tmp[DELTA_K], tmp[DELTA_SOLVED], tmp[DELTA_PACE],
          tmp[DELTA_V], x->state },
        { x->ctl, x->proj, x->norm, tmp[DELTA_V], x->x, x->s, x->ss },
    };
    for (int i = 0; i < DELTA_STEPS; i++) {
        steps[i] =
            (struct delta_step){ .dispatch = { .push = p, .groups = { 1, 1, 1 } } };
        memcpy(steps[i].dispatch.bind, binds[i], sizeof binds[i]);
    }
    conv_step(&steps[0], t, p, tokens);
    solve_step(&steps[1], t, p, tokens);
    scan_step(&steps[2], t, p);
    emit_step(&steps[3], t, p, tokens, int8);
}
