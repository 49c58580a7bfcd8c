/* test_moe.c - choice of experts, router and products of the chosen experts
 * against the C reference: ties, extremes, odd shapes, every format. */
#include "engine/pack.h"
#include "engine/ref_moe.h"
#include "engine/tune.h"
#include "tests/engine/products.h"

#include <float.h>
#include <inttypes.h>

/* ---- choice -------------------------------------------------------------- */

struct choice {
    uint32_t experts, slots, tokens, grid; /* grid: tokens that are launched */
    uint32_t size;                         /* workgroup */
    float scale;
};

/* Logits [grid][experts + 1] in, and what the kernel and the reference make. */
static void check_choice(struct gpu *gpu, const struct choice *c, const float *logits)
{
    const uint32_t stride = 2 * c->slots + 1, none = 0xabcdef01;
    uint32_t *got = mem_array((size_t)c->grid * stride, 4);
    for (size_t i = 0; i < (size_t)c->grid * stride; i++)
        got[i] = none;
    struct ctl_block ctl = { .n_tokens = c->tokens };
    struct gpu_buffer b[3] = { harness_buffer(gpu, &ctl, sizeof ctl),
                               harness_buffer(gpu, logits,
                                              (size_t)c->grid * (c->experts + 1) * 4),
                               harness_buffer(gpu, got, (size_t)c->grid * stride * 4) };
    harness_run(
        gpu, &(struct harness_job){ .module = kernel_module(KERNEL_SELECT),
                                    .spec = { c->size, c->slots },
                                    .n_spec = 2,
                                    .buffers = { &b[0], &b[1], &b[2] },
                                    .push = &(struct push_select){ .experts = c->experts,
                                                                   .scale = c->scale },
                                    .groups = { 1, c->grid, 1 } });
    harness_read(gpu, &b[2], got, (size_t)c->grid * stride * 4);
    for (uint32_t t = 0; t < c->tokens; t++) {
        const uint32_t *row = got + (size_t)t * stride;
        uint32_t ids[SELECT_MAX_SLOTS];
        float want[SELECT_MAX_SLOTS + 1], weights[SELECT_MAX_SLOTS + 1];
        ref_select(logits + (size_t)t * (c->experts + 1), c->experts, c->slots, c->scale,
                   ids, want);
        memcpy(weights, row + c->slots, (c->slots + 1) * 4);
        bool ok = !memcmp(row, ids, c->slots * 4);
        for (uint32_t s = 0; s <= c->slots; s++)
            ok = ok && fabsf(weights[s] - want[s]) <= 1e-4f * fabsf(want[s]) + 1e-30f;
        if (!ok)
            printf("# %u of %u experts, token %u: got %u (%g), want %u (%g)\n", c->slots,
                   c->experts, t, row[0], weights[0], ids[0], want[0]);
        CHECK(ok);
    }
    for (size_t i = (size_t)c->tokens * stride; i < (size_t)c->grid * stride; i++)
        CHECK(got[i] == none);
    for (int i = 0; i < 3; i++)
        gpu_buffer_close(&b[i], gpu);
    free(got);
}

/* A logit of each kind of row: random, all equal, few values, far apart, at
 * the ends of the range, zeros of both signs, rising, falling. */
static float logit_of(uint32_t kind, uint32_t i)
{
    static const float few[] = { 1.5f, -2, 1.5f, 0.25f };
    static const float ends[] = { FLT_MAX, -FLT_MAX, 0, FLT_MAX, -FLT_MIN, -3e38f };
    switch (kind) {
    case 0:
        return 4 * random_value();
    case 1:
        return -7.25f;
    case 2:
        return few[random_bits() % 4];
    case 3:
        return 90 * random_value();
    case 4:
        return ends[random_bits() % 6];
    case 5:
        return random_bits() % 2 ? 0.0f : -0.0f;
    case 6:
        return (float)i * 0.125f;
    default:
        return (float)i * -0.125f;
    }
}

static void try_choice(struct gpu *gpu, uint32_t experts, uint32_t slots)
{
    enum { KINDS = 8 };
    static const uint32_t sizes[] = { 8, 64, 256 };
    struct choice c = { experts,
                        slots,
                        KINDS,
                        KINDS + 2,
                        sizes[(experts + slots) % 3],
                        slots % 2 ? 1.0f : 2.5f };
    float *logits = mem_array((size_t)c.grid * (experts + 1), 4);
    for (uint32_t t = 0; t < c.grid; t++)
        for (uint32_t i = 0; i <= experts; i++)
            logits[(size_t)t * (experts + 1) + i] =
                i < experts ? logit_of(t % KINDS, i) : 30 * random_value();
    check_choice(gpu, &c, logits);
    free(logits);
}

static void test_choice(void)
{
    struct gpu *gpu = harness_open();
    static const uint32_t rows[][2] = { { 1, 1 },    { 2, 1 },    { 5, 5 },
                                        { 8, 1 },    { 8, 3 },    { 8, 8 },
                                        { 16, 16 },  { 37, 7 },   { 256, 1 },
                                        { 256, 8 },  { 256, 16 }, { 511, 10 },
                                        { 512, 10 }, { 512, 16 }, { 512, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_choice(gpu, rows[i][0], rows[i][1]);
    harness_close(gpu);
}

/* Whatever the logits are, ids stay inside the matrices. */
static void test_choice_of_nan(void)
{
    struct gpu *gpu = harness_open();
    const float logits[] = { NAN, NAN, NAN, NAN, 0 };
    struct ctl_block ctl = { .n_tokens = 1 };
    uint32_t got[5];
    struct gpu_buffer b[3] = { harness_buffer(gpu, &ctl, sizeof ctl),
                               harness_buffer(gpu, logits, sizeof logits),
                               harness_buffer(gpu, NULL, sizeof got) };
    harness_run(gpu, &(struct harness_job){
                         .module = kernel_module(KERNEL_SELECT),
                         .spec = { 64, 2 },
                         .n_spec = 2,
                         .buffers = { &b[0], &b[1], &b[2] },
                         .push = &(struct push_select){ .experts = 4, .scale = 1 },
                         .groups = { 1, 1, 1 } });
    harness_read(gpu, &b[2], got, sizeof got);
    CHECK(got[0] < 4 && got[1] < 4);
    for (int i = 0; i < 3; i++)
        gpu_buffer_close(&b[i], gpu);
    harness_close(gpu);
}

/* ---- products ------------------------------------------------------------ */

struct setup {
    enum device_format format;
    enum quant type;
    bool int8;
    uint32_t n_embd, width, experts, slots, tokens, grid;
    uint32_t size, lanes, batch;
    struct tile_tuning tile; /* rows 0: none, the vectors go one by one */
    bool matrix;
};

/* Weights of all experts in file format and on the device, and a selection. */
struct mixture {
    struct ref_experts ref;
    uint8_t *gate, *up, *down;
    struct arena arena;
    struct matrix gate_up_m, down_m;
    uint32_t *ids;  /* [grid][slots] */
    float *weights; /* [grid][slots + 1] */
    struct gpu_buffer selection;
};

static struct tensor experts_tensor(const struct setup *u, const uint8_t *data,
                                    size_t rows, size_t cols)
{
    struct tensor t = tensor_of(u->type, data, rows * u->experts, cols);
    t.n_dims = 3;
    t.ne[1] = rows;
    t.ne[2] = u->experts;
    return t;
}

/* Different experts in each slot of a token, the last expert among them. */
static void choose_at_random(struct mixture *x, const struct setup *u)
{
    for (uint32_t t = 0; t < u->grid; t++) {
        uint32_t *ids = x->ids + (size_t)t * u->slots;
        for (uint32_t s = 0; s < u->slots; s++)
            ids[s] = (u->experts - 1 + s * (1 + t % 2) + t) % u->experts;
        for (uint32_t s = 0; s <= u->slots; s++)
            x->weights[(size_t)t * (u->slots + 1) + s] = random_value();
    }
}

static void upload_selection(struct mixture *x, struct gpu *gpu, const struct setup *u)
{
    const size_t stride = 2 * u->slots + 1;
    uint32_t *rows = mem_array(u->grid * stride, 4);
    for (uint32_t t = 0; t < u->grid; t++) {
        memcpy(rows + t * stride, x->ids + (size_t)t * u->slots, u->slots * 4);
        memcpy(rows + t * stride + u->slots, x->weights + (size_t)t * (u->slots + 1),
               (u->slots + 1) * 4);
    }
    x->selection = harness_buffer(gpu, rows, u->grid * stride * 4);
    free(rows);
}

static void mixture_make(struct mixture *x, struct gpu *gpu, const struct setup *u)
{
    size_t all = (size_t)u->experts * u->width;
    x->gate = random_weights(u->type, all, u->n_embd);
    x->up = random_weights(u->type, all, u->n_embd);
    x->down = random_weights(u->type, (size_t)u->experts * u->n_embd, u->width);
    x->ref = (struct ref_experts){ u->type,   x->gate,  x->up,  x->down,
                                   u->n_embd, u->width, u->int8 };
    struct tensor gate = experts_tensor(u, x->gate, u->width, u->n_embd),
                  up = experts_tensor(u, x->up, u->width, u->n_embd),
                  down = experts_tensor(u, x->down, u->n_embd, u->width);
    struct pack_source both = { .parts = { &gate, &up },
                                .n_parts = 2,
                                .interleave = true },
                       one = { .parts = { &down }, .n_parts = 1 };
    struct err err = { "" };
    arena_init(&x->arena, gpu, pack_matrix_bytes(&both) + pack_matrix_bytes(&one));
    HARNESS_OK(pack_matrix(&x->gate_up_m, &x->arena, &both, &err), &err);
    HARNESS_OK(pack_matrix(&x->down_m, &x->arena, &one, &err), &err);
    CHECK(x->gate_up_m.format == u->format && x->gate_up_m.rows == 2 * all);
    CHECK(x->down_m.rows == u->experts * u->n_embd && x->arena.wanted == 0);
    x->ids = mem_array((size_t)u->grid * u->slots, 4);
    x->weights = mem_array((size_t)u->grid * (u->slots + 1), 4);
    choose_at_random(x, u);
    upload_selection(x, gpu, u);
}

static void mixture_free(struct mixture *x, struct gpu *gpu)
{
    arena_release(&x->arena);
    gpu_buffer_close(&x->selection, gpu);
    free(x->gate);
    free(x->up);
    free(x->down);
    free(x->ids);
    free(x->weights);
}

static struct harness_job product_job(const struct setup *u, const struct matrix *m,
                                      const struct acts *a, enum epilogue e,
                                      struct push_product *push)
{
    uint32_t unit = e == EPILOGUE_SWIGLU ? 64 : 32, each = m->rows / u->experts;
    uint32_t rows = (u->size / u->lanes * u->batch + unit - 1) / unit * unit;
    *push = (struct push_product){
        .rows = each, .cols = m->cols, .units = m->units, .eps = 1e-6f
    };
    return (struct harness_job){
        .module = kernel_experts_module(u->format, u->int8, e),
        .spec = { u->size, u->lanes, rows, 1, u->batch, e == EPILOGUE_SWIGLU, u->slots },
        .n_spec = 7,
        .buffers = { [3] = &a->x, [4] = &a->s, [5] = &a->ss },
        .spans = { [1] = m->codes, [2] = m->scales },
        .push = push,
        .groups = { (each + rows - 1) / rows,
                    u->grid * (e == EPILOGUE_SWIGLU ? u->slots : 1), 1 },
    };
}

/* Tiles of pairs that share an expert. */
struct tiled {
    struct gpu_buffer groups, halves, factors;
    uint32_t tiles, list_at;
    struct push_product push;
};

static struct tiled tiled_open(struct gpu *gpu, const struct setup *u,
                               const struct mixture *x, const struct gpu_buffer *ctl)
{
    const uint32_t pairs = u->grid * u->slots;
    struct tiled t = { .tiles = pairs / u->tile.tokens + u->experts };
    t.list_at = GROUP_HEAD + GROUP_TILE * t.tiles;
    t.groups = harness_buffer(gpu, NULL, (t.list_at + pairs) * 4);
    t.halves = harness_buffer(gpu, NULL, (size_t)(pairs + 128) * 2 * (u->n_embd + 64));
    t.factors = harness_buffer(gpu, NULL, pairs * 4);
    struct push_group push = { .experts = u->experts, .list_at = t.list_at };
    harness_run(gpu, &(struct harness_job){ .module = kernel_module(KERNEL_GROUP),
                                            .spec = { 32, u->slots, u->tile.tokens },
                                            .n_spec = 3,
                                            .buffers = { ctl, &x->selection, &t.groups },
                                            .push = &push,
                                            .groups = { 1, 1, 1 } });
    return t;
}

static void tiled_close(struct tiled *t, struct gpu *gpu)
{
    gpu_buffer_close(&t->groups, gpu);
    gpu_buffer_close(&t->halves, gpu);
    gpu_buffer_close(&t->factors, gpu);
}

/* Turns `per` vectors a token to f16, and makes job the product of them. */
static void tiled_job(struct gpu *gpu, const struct setup *u, struct tiled *t,
                      const struct acts *a, uint32_t per, struct harness_job *job)
{
    const uint32_t lanes = gpu_info(gpu)->subgroup_size;
    enum epilogue e = per == 1 ? EPILOGUE_SWIGLU : EPILOGUE_STORE;
    struct push_product *push = &t->push;
    *push = *(const struct push_product *)job->push;
    struct push_half half = { .cols = push->cols, .eps = 1e-6f, .vectors = per };
    harness_run(gpu,
                &(struct harness_job){ .module = kernel_module(KERNEL_TO_HALF),
                                       .spec = { 64, u->int8, per == 1 },
                                       .n_spec = 3,
                                       .buffers = { job->buffers[0], &a->x, &a->s, &a->ss,
                                                    &t->halves, &t->factors },
                                       .push = &half,
                                       .groups = { 1, u->grid * per, 1 } });
    push->out_stride = push->rows;
    push->list_at = t->list_at;
    job->push = push;
    job->module = kernel_expert_tile_module(u->format, u->matrix, e);
    tuning_tile_spec(&u->tile, lanes, job->spec);
    job->spec[8] = u->int8;
    job->spec[9] = u->slots;
    job->n_spec = 10;
    job->buffers[3] = &t->halves;
    job->buffers[4] = &t->factors;
    job->groups[0] = t->tiles;
    job->groups[1] = (push->rows + u->tile.rows - 1) / u->tile.rows;
}

struct planes_out {
    struct gpu_buffer b[3];
};

static struct planes_out planes_out(struct gpu *gpu, size_t vectors, size_t n)
{
    return (struct planes_out){ { harness_buffer(gpu, NULL, vectors * n * 4),
                                  harness_buffer(gpu, NULL, vectors * n / 4),
                                  harness_buffer(gpu, NULL, vectors * n / 8) } };
}

/* Planes of every chosen expert's result. */
static void check_gate_up(struct gpu *gpu, const struct setup *u, const struct mixture *x,
                          const struct gpu_buffer *ctl)
{
    struct acts a;
    struct push_product push;
    const uint32_t vectors = u->grid * u->slots;
    acts_make(&a, gpu, u->n_embd, u->grid, u->int8);
    struct harness_job job = product_job(u, &x->gate_up_m, &a, EPILOGUE_SWIGLU, &push);
    struct planes_out next = planes_out(gpu, vectors, u->width);
    job.buffers[0] = ctl;
    for (int i = 0; i < 3; i++)
        job.buffers[6 + i] = &next.b[i];
    job.buffers[9] = &x->selection;
    if (u->tile.rows) {
        struct tiled t = tiled_open(gpu, u, x, ctl);
        tiled_job(gpu, u, &t, &a, 1, &job);
        for (int i = 0; i < 3; i++)
            job.buffers[5 + i] = &next.b[i];
        job.buffers[8] = &t.groups;
        harness_run(gpu, &job);
        tiled_close(&t, gpu);
    } else {
        harness_run(gpu, &job);
    }
    float *want = mem_array((size_t)vectors * u->width, 4);
    for (uint32_t v = 0; v < vectors; v++)
        ref_expert_hidden(&x->ref, x->ids[v], &a.planes[v / u->slots], 1e-6f,
                          want + (size_t)v * u->width);
    check_planes(gpu, next.b,
                 &(struct planes_want){ .tokens = vectors,
                                        .written = u->tokens * u->slots,
                                        .n = u->width,
                                        .int8 = u->int8,
                                        .slack = u->tile.rows ? 1e-2 : 0,
                                        .values = want });
    uint32_t *rest = mem_array((size_t)vectors * u->width, 4);
    harness_read(gpu, &next.b[0], rest, (size_t)vectors * u->width * 4);
    size_t value = u->int8 ? 1 : 4;
    for (size_t i = u->tokens * u->slots * u->width * value / 4;
         i < vectors * u->width * value / 4; i++)
        CHECK(rest[i] == 0);
    for (int i = 0; i < 3; i++)
        gpu_buffer_close(&next.b[i], gpu);
    acts_free(&a, gpu, u->grid);
    free(want);
    free(rest);
}

/* What job, bound for one kernel, does, in two: products, then their sum. */
static void run_tiled_down(struct gpu *gpu, const struct setup *u,
                           const struct mixture *x, const struct acts *a,
                           const struct harness_job *job)
{
    struct harness_job down = *job;
    struct push_combine sum = { .cols = u->n_embd };
    const uint32_t blocks = 64 / gpu_info(gpu)->subgroup_size;
    struct gpu_buffer made =
        harness_buffer(gpu, NULL, (size_t)u->grid * u->slots * u->n_embd * 4);
    struct tiled t = tiled_open(gpu, u, x, job->buffers[0]);
    tiled_job(gpu, u, &t, a, u->slots, &down);
    down.buffers[5] = &made;
    down.buffers[6] = &t.groups;
    harness_run(gpu, &down);
    harness_run(gpu,
                &(struct harness_job){
                    .module = kernel_module(KERNEL_COMBINE),
                    .spec = { 64, u->int8, u->slots },
                    .n_spec = 3,
                    .buffers = { job->buffers[0], &made, job->buffers[6], job->buffers[7],
                                 job->buffers[8], job->buffers[9], job->buffers[10],
                                 &x->selection, job->buffers[12] },
                    .push = &sum,
                    .groups = { (u->n_embd / 32 + blocks - 1) / blocks, u->grid, 1 } });
    tiled_close(&t, gpu);
    gpu_buffer_close(&made, gpu);
}

/* The residual stream after the experts and the shared one, and its planes. */
static void check_down(struct gpu *gpu, const struct setup *u, const struct mixture *x,
                       const struct gpu_buffer *ctl)
{
    struct acts a;
    struct push_product push;
    const size_t n = (size_t)u->grid * u->n_embd;
    acts_make(&a, gpu, u->width, u->grid * u->slots, u->int8);
    float *want = mem_array(n, 4), *shared = mem_array(n, 4), *got = mem_array(n, 4),
          *norm = mem_array(u->n_embd, 4), *y = mem_array(u->n_embd, 4);
    for (size_t i = 0; i < n; i++) {
        want[i] = 2 * random_value();
        shared[i] = 3 * random_value();
    }
    for (size_t i = 0; i < u->n_embd; i++)
        norm[i] = 1 + 0.25f * random_value();
    struct gpu_buffer stream = harness_buffer(gpu, want, n * 4),
                      b_shared = harness_buffer(gpu, shared, n * 4),
                      b_norm = harness_buffer(gpu, norm, u->n_embd * 4);
    struct planes_out next = planes_out(gpu, u->grid, u->n_embd);
    struct harness_job job = product_job(u, &x->down_m, &a, EPILOGUE_RESIDUAL, &push);
    const struct gpu_buffer *more[] = { &stream, &next.b[0],    &next.b[1], &next.b[2],
                                        &b_norm, &x->selection, &b_shared };
    job.buffers[0] = ctl;
    memcpy(job.buffers + 6, more, sizeof more);
    if (u->tile.rows)
        run_tiled_down(gpu, u, x, &a, &job);
    else
        harness_run(gpu, &job);
    for (uint32_t t = 0; t < u->tokens; t++) {
        const float *weights = x->weights + (size_t)t * (u->slots + 1);
        ref_experts_sum(&x->ref, u->slots, x->ids + (size_t)t * u->slots, weights,
                        &a.planes[t * u->slots], y);
        for (size_t i = 0; i < u->n_embd; i++)
            want[t * u->n_embd + i] +=
                y[i] + weights[u->slots] * shared[t * u->n_embd + i];
    }
    harness_read(gpu, &stream, got, n * 4);
    CHECK(harness_near(got, want, n, u->tile.rows ? 6e-3 : 1e-4));
    check_planes(gpu, next.b,
                 &(struct planes_want){ .tokens = u->grid,
                                        .written = u->tokens,
                                        .n = u->n_embd,
                                        .int8 = u->int8,
                                        .slack = u->tile.rows ? 6e-3 : 0,
                                        .values = want,
                                        .w = norm });
    struct gpu_buffer *all[] = { &stream,    &b_shared,  &b_norm,
                                 &next.b[0], &next.b[1], &next.b[2] };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gpu_buffer_close(all[i], gpu);
    acts_free(&a, gpu, u->grid * u->slots);
    float *owned[] = { want, shared, got, norm, y };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

static void run_setup(struct gpu *gpu, const struct setup *u)
{
    struct mixture x = { 0 };
    struct ctl_block ctl = { .n_tokens = u->tokens };
    struct gpu_buffer b_ctl = harness_buffer(gpu, &ctl, sizeof ctl);
    int before = test_failures;
    mixture_make(&x, gpu, u);
    check_gate_up(gpu, u, &x, &b_ctl);
    check_down(gpu, u, &x, &b_ctl);
    mixture_free(&x, gpu);
    gpu_buffer_close(&b_ctl, gpu);
    if (test_failures != before)
        printf("# format %d int8 %d: %u experts of %u, %u slots, %u tokens, lanes %u\n",
               u->format, u->int8, u->experts, u->width, u->slots, u->tokens, u->lanes);
}

#define QUANT_OF(id, name) QUANT_##id,
static const enum quant quants[] = { DEVICE_FORMATS(QUANT_OF) };

/* Widths of whole blocks: 32 or one block, and three of them. */
static struct setup setup_of(enum device_format f, bool int8, uint32_t lanes)
{
    uint32_t block = quant_format(quants[f])->elements;
    uint32_t width = block < 32 ? 32 : block;
    return (struct setup){ .format = f,
                           .type = quants[f],
                           .int8 = int8,
                           .n_embd = 3 * width,
                           .width = width,
                           .experts = 5,
                           .slots = 3,
                           .tokens = 1,
                           .grid = 2,
                           .size = 64,
                           .lanes = lanes,
                           .batch = 4 };
}

static void test_experts_of_every_format(void)
{
    struct gpu *gpu = harness_open();
    for (int f = 0; f < FORMAT_COUNT; f++)
        for (int int8 = 0; int8 < 2; int8++) {
            struct setup u = setup_of((enum device_format)f, int8,
                                      f % 2 ? 1 : gpu_info(gpu)->subgroup_size);
            run_setup(gpu, &u);
        }
    harness_close(gpu);
}

static void test_experts_of_odd_shapes(void)
{
    struct gpu *gpu = harness_open();
    static const struct {
        uint32_t n_embd, width, experts, slots, tokens, grid, lanes, batch;
    } rows[] = {
        { 64, 32, 1, 1, 1, 1, 4, 2 },    /* fewer units than lanes */
        { 160, 96, 16, 16, 2, 2, 8, 4 }, /* all experts, a tail of rows */
        { 288, 64, 3, 2, 2, 3, 2, 1 },   { 64, 352, 4, 4, 3, 4, 1, 2 },
        { 96, 160, 7, 1, 2, 2, 8, 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct setup u =
            setup_of(i % 2 ? FORMAT_Q4_0 : FORMAT_Q8_0, i != 2, rows[i].lanes);
        u.n_embd = rows[i].n_embd;
        u.width = rows[i].width;
        u.experts = rows[i].experts;
        u.slots = rows[i].slots;
        u.tokens = rows[i].tokens;
        u.grid = rows[i].grid;
        u.batch = rows[i].batch;
        run_setup(gpu, &u);
    }
    harness_close(gpu);
}

/* Chosen experts of a stopped pass write nothing. */
static void test_no_tokens(void)
{
    struct gpu *gpu = harness_open();
    struct setup u = setup_of(FORMAT_Q4_0, true, 8);
    u.tokens = 0;
    run_setup(gpu, &u);
    harness_close(gpu);
}

/* ---- router -------------------------------------------------------------- */

/* Logits in f32 from the stream itself, whatever the type of the tensors. */
static void test_router(void)
{
    struct gpu *gpu = harness_open();
    enum { COLS = 160, EXPERTS = 37, TOKENS = 3, GRID = 4 };
    uint8_t *gate = random_weights(QUANT_F16, EXPERTS, COLS),
            *shared = random_weights(QUANT_F32, 1, COLS);
    struct tensor parts[] = { tensor_of(QUANT_F16, gate, EXPERTS, COLS),
                              tensor_of(QUANT_F32, shared, 1, COLS) };
    struct pack_source src = { .parts = { &parts[0], &parts[1] },
                               .n_parts = 2,
                               .exact = true };
    struct arena arena;
    struct matrix m;
    struct err err = { "" };
    arena_init(&arena, gpu, pack_matrix_bytes(&src));
    HARNESS_OK(pack_matrix(&m, &arena, &src, &err), &err);
    CHECK(m.format == FORMAT_F32 && m.rows == EXPERTS + 1);
    struct acts a;
    acts_make(&a, gpu, COLS, GRID, false);
    struct ctl_block ctl = { .n_tokens = TOKENS };
    float got[GRID][EXPERTS + 1], want[GRID][EXPERTS + 1] = { { 0 } };
    struct gpu_buffer b[] = { harness_buffer(gpu, &ctl, sizeof ctl),
                              harness_buffer(gpu, a.v, GRID * COLS * 4),
                              harness_buffer(gpu, a.w, COLS * 4),
                              harness_buffer(gpu, NULL, sizeof got) };
    struct push_product push = {
        .rows = m.rows, .cols = COLS, .units = m.units, .eps = 1e-6f, .out_stride = m.rows
    };
    harness_run(gpu, &(struct harness_job){ .module = kernel_module(KERNEL_ROUTER),
                                            .spec = { 64, 8, 32, 2, 4, 1 },
                                            .n_spec = 6,
                                            .buffers = { [0] = &b[0],
                                                         [3] = &b[1],
                                                         [4] = &b[2],
                                                         [5] = &a.ss,
                                                         [6] = &b[3] },
                                            .spans = { [1] = m.codes, [2] = m.scales },
                                            .push = &push,
                                            .groups = { 2, 2, 1 } });
    harness_read(gpu, &b[3], got, sizeof got);
    for (int t = 0; t < TOKENS; t++) {
        ref_product(&(struct ref_matrix){ QUANT_F16, gate, EXPERTS, COLS }, &a.planes[t],
                    false, REF_NORM_ROW, 1e-6f, want[t]);
        ref_product(&(struct ref_matrix){ QUANT_F32, shared, 1, COLS }, &a.planes[t],
                    false, REF_NORM_ROW, 1e-6f, &want[t][EXPERTS]);
    }
    CHECK(harness_near(got[0], want[0], GRID * (EXPERTS + 1), 2e-6));
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        gpu_buffer_close(&b[i], gpu);
    acts_free(&a, gpu, GRID);
    arena_release(&arena);
    free(gate);
    free(shared);
    harness_close(gpu);
}

/* Chunks whose tokens share experts: more pairs than a tile holds, experts with
 * one and with none. With cooperative matrices every format. */
static void test_tiles_of_experts(void)
{
    static const enum device_format formats[] = { FORMAT_Q4_K, FORMAT_Q2_0, FORMAT_F32 };
    struct gpu *gpu = harness_open();
    const int matrix = gpu_info(gpu)->coopmat;
    for (int m = 0; m <= matrix; m++)
        for (int i = 0; i < (m ? (int)FORMAT_COUNT : 3); i++) {
            struct setup u = setup_of(m ? (enum device_format)i : formats[i], i & 1, 8);
            u.experts = i & 1 ? 5 : 40;
            u.tokens = 9;
            u.grid = 10;
            u.tile =
                (struct tile_tuning){ 64, 16, i == 2 ? 32 : 64, 16, i == 2 ? 32 : 64 };
            u.matrix = m;
            run_setup(gpu, &u);
        }
    harness_close(gpu);
}

/* ---- sizes --------------------------------------------------------------- */

/* All experts of a layer are bound at once: what is too large for that is told
 * before anything is read. */
static void test_too_large_to_bind(void)
{
    struct gpu *gpu = harness_open();
    struct err err = { "" };
    const uint64_t most = gpu_info(gpu)->buffer_bytes, row = 64 * 4;
    struct tensor t = { .name = "blk.7.ffn_down_exps.weight",
                        .type = QUANT_F32,
                        .n_dims = 3,
                        .ne = { 64, most / row / 4, 4, 1 } };
    struct pack_source one = { .parts = { &t }, .n_parts = 1 };
    CHECK(pack_matrix_check(&one, gpu, &err) == 0);
    t.ne[1] += 1 << 14;
    CHECK(pack_matrix_check(&one, gpu, &err) < 0);
    char numbers[128];
    snprintf(numbers, sizeof numbers,
             "needs %" PRIu64 " MiB in one piece, this device can bind %" PRIu64,
             (t.ne[1] * 4 * row + (1 << 20) - 1) >> 20, most >> 20);
    CHECK(strstr(err.text, t.name) && strstr(err.text, numbers));
    harness_close(gpu);
}

TEST_MAIN(T(test_choice), T(test_choice_of_nan), T(test_experts_of_every_format),
          T(test_experts_of_odd_shapes), T(test_tiles_of_experts), T(test_no_tokens),
          T(test_router), T(test_too_large_to_bind))
