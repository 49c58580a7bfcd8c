/* selftest_experts.c - the feed-forward part of a layer with experts, as a pass runs
 * it: router, choice, the shared expert, the chosen ones. Each kernel is compared with
 * what follows from the device's own results before it. */
#include "engine/selftest_rig.h"

#include "base/mem.h"
#include "engine/ref_moe.h"

#include <stdlib.h>
#include <string.h>

enum { EMBD = 512, WIDTH = 256, EXPERTS = 4, SLOTS = 2, TOKENS = 2 };

/* A layer's weights, in file format and on the device. */
struct mixture {
    enum quant type;
    bool int8;
    uint8_t *gate, *up, *down, *shared_gate, *shared_up, *shared_down, *router;
    struct device_layer layer;
    struct vectors in;
    float *stream; /* [TOKENS][EMBD] */
};

static void matrix_add(struct rig *r, struct matrix *m, const struct pack_source *s)
{
    if (r->rc == 0)
        r->rc = pack_matrix(m, &r->arena, s, r->err);
}

static void mixture_pack(struct mixture *x, struct rig *r)
{
    struct device_layer *ly = &x->layer;
    const size_t all = EXPERTS * WIDTH;
    const struct tensor gate = rig_tensor(x->type, x->gate, all, EMBD),
                        up = rig_tensor(x->type, x->up, all, EMBD),
                        down = rig_tensor(x->type, x->down, EXPERTS * EMBD, WIDTH),
                        sg = rig_tensor(x->type, x->shared_gate, WIDTH, EMBD),
                        su = rig_tensor(x->type, x->shared_up, WIDTH, EMBD),
                        sd = rig_tensor(x->type, x->shared_down, EMBD, WIDTH),
                        router = rig_tensor(QUANT_F32, x->router, EXPERTS + 1, EMBD);
    matrix_add(r, &ly->gate_up,
               &(struct pack_source){
                   .parts = { &gate, &up }, .n_parts = 2, .interleave = true });
    matrix_add(r, &ly->down, &(struct pack_source){ .parts = { &down }, .n_parts = 1 });
    matrix_add(
        r, &ly->shared_gate_up,
        &(struct pack_source){ .parts = { &sg, &su }, .n_parts = 2, .interleave = true });
    matrix_add(r, &ly->shared_down,
               &(struct pack_source){ .parts = { &sd }, .n_parts = 1 });
    matrix_add(r, &ly->router,
               &(struct pack_source){ .parts = { &router }, .n_parts = 1 });
}

static void mixture_make(struct mixture *x, struct rig *r)
{
    x->gate = rig_weights(r, x->type, EXPERTS * WIDTH, EMBD);
    x->up = rig_weights(r, x->type, EXPERTS * WIDTH, EMBD);
    x->down = rig_weights(r, x->type, EXPERTS * EMBD, WIDTH);
    x->shared_gate = rig_weights(r, x->type, WIDTH, EMBD);
    x->shared_up = rig_weights(r, x->type, WIDTH, EMBD);
    x->shared_down = rig_weights(r, x->type, EMBD, WIDTH);
    x->router = (uint8_t *)rig_values(r, (EXPERTS + 1) * EMBD, 0.1f);
    vectors_make(&x->in, r, EMBD, TOKENS, x->int8);
    mixture_pack(x, r);
}

static void mixture_release(struct mixture *x)
{
    uint8_t *owned[] = { x->gate,      x->up,          x->down,  x->shared_gate,
                         x->shared_up, x->shared_down, x->router };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    vectors_release(&x->in);
}

/* The input's planes are those of the stream, as the product before leaves them. */
static void mixture_record(struct mixture *x, struct rig *r)
{
    struct scratch *s = &r->session.scratch;
    struct hparams *hp = &r->model.hp;
    float ones[EMBD];
    const uint64_t room = (uint64_t)(TOKENS + 256) * EMBD * 4;
    for (int i = 0; i < EMBD; i++)
        ones[i] = 1;
    hp->n_embd = EMBD;
    hp->n_expert = EXPERTS;
    hp->n_expert_used = SLOTS;
    hp->expert_scale = 1;
    r->engine.int8 = x->int8;
    vectors_upload(&x->in, r, &s->input);
    s->residual = rig_buffer(r, x->in.values, TOKENS * EMBD * 4);
    s->mixed = rig_planes_open(r, room / 4);
    s->experts = rig_planes_open(r, TOKENS * SLOTS * WIDTH);
    s->router = rig_buffer(r, NULL, TOKENS * (EXPERTS + 1) * 4);
    s->selection = rig_buffer(r, NULL, TOKENS * (2 * SLOTS + 1) * 4);
    s->proj = rig_buffer(r, NULL, TOKENS * EMBD * 4);
    s->halves = rig_buffer(r, NULL, room);
    s->factors = rig_buffer(r, NULL, (TOKENS + 256) * 4);
    x->layer.post_norm = rig_span(r, ones, sizeof ones);
    if (r->rc == 0)
        r->rc = forward_experts(&r->rec, &x->layer, x->layer.post_norm);
}

/* ---- comparing ------------------------------------------------------------------ */

static void router_check(const struct mixture *x, struct rig *r, float *logits)
{
    const struct ref_matrix m = { QUANT_F32, x->router, EXPERTS + 1, EMBD };
    float want[TOKENS * (EXPERTS + 1)];
    struct vectors plain = x->in;
    float *planes = mem_array(EMBD * 2, sizeof *planes);
    for (uint32_t t = 0; t < TOKENS; t++) { /* the stream itself, not rounded */
        struct ref_planes p = { NULL, planes, planes + EMBD, planes + EMBD + 64 };
        ref_planes(plain.values + t * EMBD, NULL, EMBD, false, &p);
        ref_product(&m, &p, false, REF_NORM_ROW, 1e-6f, want + t * (EXPERTS + 1));
    }
    free(planes);
    rig_read(r, &r->session.scratch.router, logits, sizeof want);
    rig_compare(r, kernel_module(KERNEL_ROUTER)->name, logits, want,
                TOKENS * (EXPERTS + 1), 1e-4);
}

struct choice {
    uint32_t ids[SLOTS];
    float weights[SLOTS + 1];
};

static void choice_check(struct rig *r, const float *logits, struct choice got[TOKENS])
{
    float both[2][TOKENS * (2 * SLOTS + 1)], *to[2] = { both[0], both[1] };
    rig_read(r, &r->session.scratch.selection, got, TOKENS * sizeof *got);
    for (uint32_t t = 0; t < TOKENS; t++) {
        struct choice want;
        ref_select(logits + t * (EXPERTS + 1), EXPERTS, SLOTS, 1, want.ids, want.weights);
        const struct choice *c[2] = { &got[t], &want };
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < SLOTS; i++)
                *to[k]++ = (float)c[k]->ids[i];
            for (int i = 0; i <= SLOTS; i++)
                *to[k]++ = c[k]->weights[i];
        }
        for (int i = 0; i < SLOTS; i++) /* what follows is to stay inside */
            got[t].ids[i] %= EXPERTS;
    }
    rig_compare(r, kernel_module(KERNEL_SELECT)->name, both[0], both[1],
                TOKENS * (2 * SLOTS + 1), 1e-4);
}

static const char *experts_name(const struct mixture *x, enum epilogue e)
{
    return kernel_experts_module(x->layer.gate_up.format, x->int8, e)->name;
}

/* Planes of the chosen experts' hidden values, from which the device went on. */
static void hidden_check(const struct mixture *x, struct rig *r,
                         const struct choice c[TOKENS], float *got)
{
    const struct ref_experts e = {
        x->type, x->gate, x->up, x->down, EMBD, WIDTH, x->int8
    };
    float *want = mem_array(TOKENS * SLOTS * WIDTH, sizeof *want);
    for (uint32_t v = 0; v < TOKENS * SLOTS; v++)
        ref_expert_hidden(&e, c[v / SLOTS].ids[v % SLOTS], &x->in.host[v / SLOTS], 1e-6f,
                          want + v * WIDTH);
    float *made =
        rig_planes(r, &r->session.scratch.experts, TOKENS * SLOTS * WIDTH, x->int8);
    rig_compare(r, experts_name(x, EPILOGUE_SWIGLU), made, want, TOKENS * SLOTS * WIDTH,
                x->int8 ? 0.08 : 3e-4);
    memcpy(got, made, TOKENS * SLOTS * WIDTH * sizeof *got);
    free(made);
    free(want);
}

static void down_check(const struct mixture *x, struct rig *r,
                       const struct choice c[TOKENS], const float *hidden)
{
    const struct ref_experts e = {
        x->type, x->gate, x->up, x->down, EMBD, WIDTH, x->int8
    };
    float want[TOKENS * EMBD], got[TOKENS * EMBD], shared[TOKENS * EMBD], y[EMBD];
    rig_read(r, &r->session.scratch.proj, shared, sizeof shared);
    for (uint32_t t = 0; t < TOKENS; t++) {
        struct ref_planes h[SLOTS];
        int8_t q[SLOTS][WIDTH] = { { 0 } };
        float f[SLOTS][WIDTH] = { { 0 } }, s[SLOTS][WIDTH / 16] = { { 0 } },
              ss[SLOTS][WIDTH / 32] = { { 0 } };
        for (int i = 0; i < SLOTS; i++) {
            h[i] = (struct ref_planes){ q[i], f[i], s[i], ss[i] };
            ref_planes(hidden + (t * SLOTS + (uint32_t)i) * WIDTH, NULL, WIDTH, x->int8,
                       &h[i]);
        }
        ref_experts_sum(&e, SLOTS, c[t].ids, c[t].weights, h, y);
        for (uint32_t i = 0; i < EMBD; i++)
            want[t * EMBD + i] = x->in.values[t * EMBD + i] + y[i] +
                                 c[t].weights[SLOTS] * shared[t * EMBD + i];
    }
    rig_read(r, &r->session.scratch.residual, got, sizeof got);
    rig_compare(r, experts_name(x, EPILOGUE_RESIDUAL), got, want, TOKENS * EMBD, 1e-3);
}

static void mixture_test(struct rig *r, enum device_format f, bool int8)
{
    struct mixture x = { .type = rig_quant(f), .int8 = int8 };
    float logits[TOKENS * (EXPERTS + 1)], hidden[TOKENS * SLOTS * WIDTH];
    struct choice c[TOKENS];
    rig_begin(r, TOKENS);
    mixture_make(&x, r);
    mixture_record(&x, r);
    rig_run(r);
    router_check(&x, r, logits);
    choice_check(r, logits, c);
    hidden_check(&x, r, c, hidden);
    down_check(&x, r, c, hidden);
    mixture_release(&x);
}

void selftest_experts(struct rig *r)
{
    const bool all = r->scope->formats == UINT32_MAX;
    for (int f = 0; r->scope->experts && f < FORMAT_COUNT; f++) {
        if (!(r->scope->formats >> f & 1) ||
            (all && f != FORMAT_Q8_0 && f != FORMAT_Q4_K))
            continue;
        if (r->scope->floats)
            mixture_test(r, (enum device_format)f, false);
        if (r->scope->int8)
            mixture_test(r, (enum device_format)f, true);
    }
}
