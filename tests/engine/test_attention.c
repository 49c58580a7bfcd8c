/* test_attention.c - the attention kernels against their references: norm and
 * rotation up to the longest context, cache rows, split attention at depths
 * from one to thousands, empty splits, gates and planes. */
#include "base/mem.h"
#include "engine/kernel.h"
#include "engine/quant.h"
#include "engine/ref.h"
#include "engine/tune.h"
#include "tests/engine/harness.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static uint32_t random_state = 3;

static float random_value(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) / (float)(1 << 23) - 1.0f;
}

static float *random_array(size_t n, float scale)
{
    float *v = mem_array(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = scale * random_value();
    return v;
}

static struct ctl_block control(uint32_t pos, uint32_t n_tokens)
{
    return (struct ctl_block){ .pos = pos, .n_tokens = n_tokens };
}

static struct tuning tuning_of(struct gpu *gpu, const char *kind)
{
    struct tuning t;
    struct device_info info = *gpu_info(gpu);
    if (kind)
        snprintf(info.kind, sizeof info.kind, "%s", kind);
    tuning_choose(&t, &info);
    return t;
}

/* ---- tuning --------------------------------------------------------------- */

/* What the kernels demand of their specialization constants. */
static void check_tuning(const struct tuning *t, uint32_t subgroup, uint32_t dim,
                         uint32_t queries)
{
    uint32_t qk[TUNING_SPEC], at[TUNING_SPEC], merge[TUNING_SPEC];
    CHECK(tuning_qk(t, dim, qk) == 3 && tuning_attend(t, dim, queries, at) == 8 &&
          tuning_merge(t, true, dim, merge) == 4);
    CHECK(qk[0] == qk[2] && qk[2] <= subgroup && dim % (8 * qk[2]) == 0);
    uint32_t lanes = at[3], streams = at[4], heads = at[5];
    CHECK(lanes <= subgroup && dim % (8 * lanes) == 0 && !(lanes & (lanes - 1)));
    CHECK(at[0] == lanes * streams && at[0] <= 256 && !(streams & (streams - 1)));
    CHECK(heads >= 1 && queries % heads == 0);
    /* Workgroup memory: half of the streams' sums, and all maxima. */
    CHECK(streams == 1 || streams / 2 * heads * dim * 4 + streams * heads * 8 <= 16384);
    CHECK(merge[0] == merge[3] * dim / 4 && merge[0] <= 256);
    CHECK(merge[3] * dim * 4 + merge[3] * 8 <= 16384);
    uint64_t rounds = tuning_max_positions(t, dim, queries) / (streams * at[6]);
    CHECK(!t->max_rounds || rounds * (queries / heads) < 65535);
}

static void test_tuning(void)
{
    static const char *const kinds[] = { "cpu", "discrete", "integrated", "virtual" };
    for (size_t i = 0; i < LENGTH(kinds); i++)
        for (uint32_t subgroup = 8; subgroup <= 64; subgroup *= 2) {
            struct device_info info = { .subgroup_size = subgroup };
            struct tuning t;
            snprintf(info.kind, sizeof info.kind, "%s", kinds[i]);
            tuning_choose(&t, &info);
            CHECK(t.chunk_tokens <= tuning_max_tokens(&t));
            CHECK(tuning_max_tokens(&t) <= CTL_MAX_TOK);
            CHECK(t.delta_parts <= subgroup && t.lanes <= subgroup);
            for (uint32_t dim = 64; dim <= 256; dim *= 2)
                for (uint32_t queries = 1; queries <= 16; queries++)
                    check_tuning(&t, subgroup, dim, queries);
        }
}

/* ---- q/k norm, rotation, cache rows -------------------------------------- */

struct qk_case {
    uint32_t n_head, n_head_kv, dim, pairs, pos, tokens, room; /* cache rows */
    bool f32, plain; /* no gates between the queries */
    const char *kind;
};

enum { QK_CTL, QK_PROJ, QK_QN, QK_KN, QK_ROPE, QK_Q, QK_K, QK_V, QK_BUFFERS };
static const double rope_base = 1e7;

/* Rows of the table that the pass reads; the others hold NaN. */
static float *rope_table(const struct qk_case *c)
{
    float *table = mem_array((size_t)c->room * c->pairs * 2, sizeof *table);
    memset(table, 0xff, (size_t)c->room * c->pairs * 8);
    for (uint32_t p = c->pos; p < c->pos + c->tokens; p++)
        for (uint32_t i = 0; i < c->pairs; i++) {
            double angle = p * pow(rope_base, -(double)i / c->pairs);
            table[2 * ((size_t)p * c->pairs + i)] = (float)cos(angle);
            table[2 * ((size_t)p * c->pairs + i) + 1] = (float)sin(angle);
        }
    return table;
}

/* Cache values as floats; zero where nothing was written. */
static float *cache_read(struct gpu *gpu, const struct gpu_buffer *b, size_t n, bool f32)
{
    float *v = mem_array(n, sizeof *v);
    uint16_t *h = mem_array(n, sizeof *h);
    if (f32)
        harness_read(gpu, b, v, n * 4);
    else
        harness_read(gpu, b, h, n * 2);
    for (size_t i = 0; i < n && !f32; i++)
        v[i] = quant_f16_to_f32(h[i]);
    free(h);
    return v;
}

static void qk_check(struct gpu *gpu, const struct qk_case *c, const struct push_qk *p,
                     const float *const data[], const struct gpu_buffer *b)
{
    size_t kv_row = (size_t)c->n_head_kv * c->dim,
           n_q = (size_t)c->tokens * c->n_head * c->dim;
    float *q = mem_array(n_q, sizeof *q), *q_want = mem_array(n_q, sizeof *q_want);
    float *k_want = mem_zalloc(c->room * kv_row * 4),
          *v_want = mem_zalloc(c->room * kv_row * 4);
    for (uint32_t t = 0; t < c->tokens; t++) {
        const float *row = data[QK_PROJ] + (size_t)t * p->proj_stride;
        const struct ref_rope rope = { .pairs = c->pairs,
                                       .base = rope_base,
                                       .position = c->pos + t };
        for (uint32_t h = 0; h < c->n_head; h++)
            ref_norm_rope(row + h * p->q_width, data[QK_QN], c->dim, p->eps, &rope,
                          q_want + ((size_t)t * c->n_head + h) * c->dim);
        float *k = k_want + (c->pos + t) * kv_row, *v = v_want + (c->pos + t) * kv_row;
        for (uint32_t h = 0; h < c->n_head_kv; h++)
            ref_norm_rope(row + p->k_offset + h * c->dim, data[QK_KN], c->dim, p->eps,
                          &rope, k + h * c->dim);
        memcpy(v, row + p->v_offset, kv_row * 4);
    }
    harness_read(gpu, &b[QK_Q], q, n_q * 4);
    float *k = cache_read(gpu, &b[QK_K], c->room * kv_row, c->f32);
    float *v = cache_read(gpu, &b[QK_V], c->room * kv_row, c->f32);
    CHECK(harness_near(q, q_want, n_q, 3e-6));
    CHECK(harness_near(k + c->pos * kv_row, k_want + c->pos * kv_row, c->tokens * kv_row,
                       c->f32 ? 3e-6 : 5e-4));
    CHECK(harness_near(v + c->pos * kv_row, v_want + c->pos * kv_row, c->tokens * kv_row,
                       c->f32 ? 0 : 5e-4));
    float other = 0; /* rows of other positions stay as they were */
    for (size_t i = 0; i < c->room * kv_row; i++)
        if (i < c->pos * kv_row || i >= (c->pos + c->tokens) * kv_row)
            other += fabsf(k[i]) + fabsf(v[i]);
    CHECK(other == 0);
    void *owned[] = { q, q_want, k, v, k_want, v_want };
    for (size_t i = 0; i < LENGTH(owned); i++)
        free(owned[i]);
}

static void qk_run(struct gpu *gpu, const struct qk_case *c)
{
    struct push_qk p = { .n_head = c->n_head,
                         .n_head_kv = c->n_head_kv,
                         .q_width = (c->plain ? 1 : 2) * c->dim,
                         .rope_pairs = c->pairs,
                         .eps = 1e-6f };
    p.k_offset = c->n_head * p.q_width + 4;
    p.v_offset = p.k_offset + c->n_head_kv * c->dim + 8;
    p.proj_stride = p.v_offset + c->n_head_kv * c->dim + 4;
    struct ctl_block ctl = control(c->pos, c->tokens);
    size_t cache = (size_t)c->room * c->n_head_kv * c->dim * (c->f32 ? 4 : 2);
    const size_t bytes[QK_BUFFERS] = { sizeof ctl,
                                       c->tokens * p.proj_stride * 4,
                                       c->dim * 4,
                                       c->dim * 4,
                                       (size_t)c->room * c->pairs * 8,
                                       c->tokens * c->n_head * c->dim * 4,
                                       cache,
                                       cache };
    float *data[QK_BUFFERS] = { [QK_PROJ] = random_array(bytes[QK_PROJ] / 4, 3),
                                [QK_QN] = random_array(c->dim, 1),
                                [QK_KN] = random_array(c->dim, 1),
                                [QK_ROPE] = rope_table(c) };
    struct gpu_buffer b[QK_BUFFERS];
    struct harness_job job = {
        .module = kernel_module(c->f32 ? KERNEL_QK_F32 : KERNEL_QK_F16),
        .push = &p,
        .groups = { c->n_head + c->n_head_kv, c->tokens + 1, 1 } /* one token too many */
    };
    struct tuning tune = tuning_of(gpu, c->kind);
    job.n_spec = tuning_qk(&tune, c->dim, job.spec);
    for (int i = 0; i < QK_BUFFERS; i++) {
        b[i] = harness_buffer(gpu, i == QK_CTL ? (void *)&ctl : data[i], bytes[i]);
        job.buffers[i] = &b[i];
    }
    harness_run(gpu, &job);
    qk_check(gpu, c, &p, (const float *const *)data, b);
    for (int i = 0; i < QK_BUFFERS; i++) {
        gpu_buffer_close(&b[i], gpu);
        free(data[i]);
    }
}

static void test_qk(void)
{
    static const struct qk_case cases[] = {
        { .n_head = 2, .n_head_kv = 1, .dim = 256, .pairs = 32, .tokens = 3, .room = 8 },
        { .n_head = 6,
          .n_head_kv = 2,
          .dim = 128,
          .pairs = 64,
          .pos = 5,
          .tokens = 2,
          .room = 7,
          .f32 = true },
        { .n_head = 3,
          .n_head_kv = 3,
          .dim = 64,
          .pairs = 16,
          .pos = 1,
          .tokens = 1,
          .room = 9 },
        { .n_head = 4,
          .n_head_kv = 4,
          .dim = 256,
          .pairs = 32,
          .pos = 3,
          .tokens = 5,
          .room = 8,
          .kind = "discrete" },
        { .n_head = 1, .n_head_kv = 1, .dim = 64, .pairs = 4, .tokens = 70, .room = 71 },
        { .n_head = 4,
          .n_head_kv = 2,
          .dim = 128,
          .pairs = 64,
          .pos = 2,
          .tokens = 3,
          .room = 6,
          .plain = true },
    };
    struct gpu *gpu = harness_open();
    for (size_t i = 0; i < LENGTH(cases); i++)
        qk_run(gpu, &cases[i]);
    harness_close(gpu);
}

/* Angles of 262,143 rad: the table's values, not the device's sine. */
static void test_qk_last_position(void)
{
    struct gpu *gpu = harness_open();
    qk_run(gpu, &(struct qk_case){ .n_head = 2,
                                   .n_head_kv = 1,
                                   .dim = 64,
                                   .pairs = 8,
                                   .pos = 262142,
                                   .tokens = 2,
                                   .room = 262144 });
    harness_close(gpu);
}

/* ---- attention and merge ------------------------------------------------- */

struct attend_case {
    uint32_t n_head, n_head_kv, dim, pos, tokens, splits;
    bool f32, int8, peaked, plain;
    const char *kind;
    uint32_t size, floats, batch, merge_size, lanes; /* 0: from the table */
};

enum { AT_CTL, AT_Q, AT_K, AT_V, AT_PARTIALS, AT_PROJ, AT_X, AT_S, AT_SS, AT_BUFFERS };

struct attend_rig {
    struct gpu *gpu;
    const struct attend_case *c;
    struct gpu_buffer b[AT_BUFFERS];
    size_t bytes[AT_BUFFERS];
    float *q, *k, *v, *proj; /* k and v as the cache holds them */
    uint32_t stride;
};

/* Rounds n values to f16 in place and returns the bits. */
static uint16_t *to_f16(float *v, size_t n)
{
    uint16_t *h = mem_array(n, sizeof *h);
    for (size_t i = 0; i < n; i++) {
        h[i] = quant_f32_to_f16(v[i]);
        v[i] = quant_f16_to_f32(h[i]);
    }
    return h;
}

static void attend_open(struct attend_rig *r, struct gpu *gpu,
                        const struct attend_case *c)
{
    size_t heads = (size_t)c->n_head * c->dim, kv = (size_t)c->n_head_kv * c->dim;
    size_t rows = c->pos + c->tokens, partials = c->tokens * c->splits * c->n_head;
    *r = (struct attend_rig){ .gpu = gpu, .c = c, .stride = (uint32_t)(2 * heads + 4) };
    r->q = random_array(c->tokens * heads, c->peaked ? 60 : 4);
    r->k = random_array(rows * kv, 1);
    r->v = random_array(rows * kv, 1);
    r->proj = random_array((size_t)c->tokens * r->stride, 5);
    struct ctl_block ctl = control(c->pos, c->tokens);
    size_t cache = rows * kv * (c->f32 ? 4 : 2), out = c->tokens * heads;
    const size_t bytes[AT_BUFFERS] = {
        sizeof ctl, c->tokens * heads * 4,       cache,
        cache,      partials * (c->dim + 2) * 4, (size_t)c->tokens * r->stride * 4,
        out * 4,    out / ACT_BLOCK * 8,         out / ACT_BLOCK * 4
    };
    memcpy(r->bytes, bytes, sizeof bytes);
    uint16_t *k16 = c->f32 ? NULL : to_f16(r->k, rows * kv);
    uint16_t *v16 = c->f32 ? NULL : to_f16(r->v, rows * kv);
    const void *data[AT_BUFFERS] = { &ctl, r->q, c->f32 ? (void *)r->k : k16,
                                     c->f32 ? (void *)r->v : v16, [AT_PROJ] = r->proj };
    for (int i = 0; i < AT_BUFFERS; i++)
        r->b[i] = harness_buffer(gpu, data[i], bytes[i]);
    free(k16);
    free(v16);
}

static void attend_close(struct attend_rig *r)
{
    for (int i = 0; i < AT_BUFFERS; i++)
        gpu_buffer_close(&r->b[i], r->gpu);
    free(r->q);
    free(r->k);
    free(r->v);
    free(r->proj);
}

static struct tuning attend_tuning(const struct attend_rig *r)
{
    const struct attend_case *c = r->c;
    struct tuning t = tuning_of(r->gpu, c->kind);
    t.attend_size = c->size ? c->size : t.attend_size;
    t.attend_floats = c->floats ? c->floats : t.attend_floats;
    t.attend_batch = c->batch ? c->batch : t.attend_batch;
    t.merge_size = c->merge_size ? c->merge_size : t.merge_size;
    t.lanes = c->lanes ? c->lanes : t.lanes;
    return t;
}

/* ATTEND and MERGE; both grids have one token too many. */
static void attend_run(struct attend_rig *r)
{
    const struct attend_case *c = r->c;
    struct tuning tune = attend_tuning(r);
    struct push_attend pa = { .n_head = c->n_head,
                              .n_head_kv = c->n_head_kv,
                              .splits = c->splits,
                              .scale = 1 / sqrtf((float)c->dim) };
    struct push_merge pm = { .n_head = c->n_head,
                             .splits = c->splits,
                             .proj_stride = r->stride,
                             .q_width = (c->plain ? 1 : 2) * c->dim };
    struct harness_job attend = { .module = kernel_module(c->f32 ? KERNEL_ATTEND_F32
                                                                 : KERNEL_ATTEND_F16),
                                  .push = &pa,
                                  .groups = { c->n_head_kv, c->splits, c->tokens + 1 },
                                  .buffers = { &r->b[AT_CTL], &r->b[AT_Q], &r->b[AT_K],
                                               &r->b[AT_V], &r->b[AT_PARTIALS] } };
    attend.n_spec = tuning_attend(&tune, c->dim, c->n_head / c->n_head_kv, attend.spec);
    struct harness_job merge = { .module = kernel_module(KERNEL_MERGE),
                                 .push = &pm,
                                 .groups = { c->n_head, c->tokens + 1, 1 },
                                 .buffers = { &r->b[AT_CTL], &r->b[AT_PARTIALS],
                                              &r->b[AT_PROJ], &r->b[AT_X], &r->b[AT_S],
                                              &r->b[AT_SS] } };
    merge.n_spec = tuning_merge(&tune, c->int8, c->dim, merge.spec);
    harness_run(r->gpu, &attend);
    harness_run(r->gpu, &merge);
}

static float *attend_want(const struct attend_rig *r)
{
    const struct attend_case *c = r->c;
    size_t kv = (size_t)c->n_head_kv * c->dim;
    float *want = mem_array((size_t)c->tokens * c->n_head * c->dim, sizeof *want);
    for (uint32_t t = 0; t < c->tokens; t++)
        for (uint32_t h = 0; h < c->n_head; h++) {
            size_t at = ((size_t)t * c->n_head + h) * c->dim;
            size_t kv_at = (size_t)(h / (c->n_head / c->n_head_kv)) * c->dim;
            ref_attend(&(struct ref_attention){ .q = r->q + at,
                                                .k = r->k + kv_at,
                                                .v = r->v + kv_at,
                                                .n = c->pos + t + 1,
                                                .stride = kv,
                                                .dim = c->dim,
                                                .scale = 1 / sqrt(c->dim) },
                       want + at);
            if (!c->plain)
                ref_gate(want + at, r->proj + t * r->stride + h * 2 * c->dim + c->dim,
                         c->dim);
        }
    return want;
}

static bool attend_planes_near(const struct attend_rig *r, const float *want)
{
    size_t n = r->bytes[AT_X] / 4;
    float *x = mem_alloc(n * 4), *s = mem_alloc(r->bytes[AT_S]),
          *ss = mem_alloc(r->bytes[AT_SS]);
    float *sums = mem_zalloc(r->bytes[AT_SS]);
    harness_read(r->gpu, &r->b[AT_X], x, n * 4);
    harness_read(r->gpu, &r->b[AT_S], s, r->bytes[AT_S]);
    harness_read(r->gpu, &r->b[AT_SS], ss, r->bytes[AT_SS]);
    const int8_t *q = (const int8_t *)x;
    /* The sum of many values that cancel out keeps the rounding of all. */
    double tolerance = 1e-5 + 5e-10 * r->c->pos;
    bool near = r->c->int8 || harness_near(x, want, n, tolerance);
    for (size_t i = 0; i < n; i++)
        sums[i / ACT_BLOCK] += want[i] * want[i];
    for (size_t b = 0; r->c->int8 && b < n / ACT_BLOCK; b++) {
        float amax = 0;
        int total = 0;
        for (size_t i = b * ACT_BLOCK; i < (b + 1) * ACT_BLOCK; i++)
            amax = fmaxf(amax, fabsf(want[i]));
        for (size_t i = b * ACT_BLOCK; i < (b + 1) * ACT_BLOCK; i++) {
            near &= fabsf(s[2 * b] * (float)q[i] - want[i]) <= 0.502f * amax / 127;
            total += q[i];
        }
        near &= fabsf(s[2 * b] - amax / 127) <= 1e-5f * amax / 127;
        near &= fabsf(s[2 * b + 1] - s[2 * b] * (float)total) <= 1e-5f * s[2 * b] * 4064;
    }
    near &= harness_near(ss, sums, n / ACT_BLOCK, 2 * tolerance);
    free(x);
    free(s);
    free(ss);
    free(sums);
    return near;
}

static void attend_check(struct gpu *gpu, const struct attend_case *c)
{
    struct attend_rig r;
    attend_open(&r, gpu, c);
    attend_run(&r);
    float *want = attend_want(&r);
    bool near = attend_planes_near(&r, want);
    CHECK(near);
    if (!near)
        printf("# %u/%u heads of %u, pos %u, %u tokens, %u splits\n", c->n_head,
               c->n_head_kv, c->dim, c->pos, c->tokens, c->splits);
    free(want);
    attend_close(&r);
}

static void attend_cases(const struct attend_case *cases, size_t n)
{
    struct gpu *gpu = harness_open();
    for (size_t i = 0; i < n; i++)
        attend_check(gpu, &cases[i]);
    harness_close(gpu);
}

static void test_attend_shapes(void)
{
    static const struct attend_case cases[] = {
        { .n_head = 2, .n_head_kv = 1, .dim = 256, .pos = 40, .tokens = 1, .splits = 2 },
        { .n_head = 6,
          .n_head_kv = 1,
          .dim = 256,
          .pos = 9,
          .tokens = 2,
          .splits = 3,
          .int8 = true },
        { .n_head = 16,
          .n_head_kv = 1,
          .dim = 64,
          .pos = 17,
          .tokens = 1,
          .splits = 1,
          .int8 = true },
        { .n_head = 10,
          .n_head_kv = 2,
          .dim = 128,
          .pos = 30,
          .tokens = 3,
          .splits = 4,
          .f32 = true },
        { .n_head = 3, .n_head_kv = 3, .dim = 64, .pos = 5, .tokens = 1, .splits = 2 },
        { .n_head = 14, .n_head_kv = 2, .dim = 128, .pos = 21, .tokens = 1, .splits = 1 },
        { .n_head = 4,
          .n_head_kv = 2,
          .dim = 128,
          .pos = 11,
          .tokens = 3,
          .splits = 2,
          .int8 = true,
          .plain = true },
        { .n_head = 4,
          .n_head_kv = 1,
          .dim = 128,
          .pos = 30,
          .tokens = 1,
          .splits = 3,
          .plain = true },
    };
    attend_cases(cases, LENGTH(cases));
}

static void test_attend_tunings(void)
{
    static const struct attend_case cases[] = {
        { .n_head = 4,
          .n_head_kv = 2,
          .dim = 256,
          .pos = 100,
          .tokens = 2,
          .splits = 3,
          .kind = "discrete",
          .int8 = true },
        { .n_head = 8,
          .n_head_kv = 1,
          .dim = 64,
          .pos = 77,
          .tokens = 1,
          .splits = 2,
          .kind = "discrete",
          .f32 = true },
        { .n_head = 6,
          .n_head_kv = 1,
          .dim = 128,
          .pos = 50,
          .tokens = 1,
          .splits = 1,
          .size = 32,
          .floats = 32,
          .batch = 1,
          .merge_size = 64 },
        { .n_head = 6,
          .n_head_kv = 1,
          .dim = 64,
          .pos = 50,
          .tokens = 2,
          .splits = 5,
          .size = 16,
          .floats = 64,
          .batch = 3,
          .lanes = 2,
          .merge_size = 128 },
        { .n_head = 1,
          .n_head_kv = 1,
          .dim = 64,
          .pos = 12,
          .tokens = 1,
          .splits = 7,
          .size = 64,
          .batch = 4,
          .lanes = 1,
          .merge_size = 32 },
    };
    attend_cases(cases, LENGTH(cases));
}

/* First positions, and more splits than positions. */
static void test_attend_few_positions(void)
{
    static const struct attend_case cases[] = {
        { .n_head = 2, .n_head_kv = 1, .dim = 64, .pos = 0, .tokens = 1, .splits = 1 },
        { .n_head = 2, .n_head_kv = 1, .dim = 64, .pos = 0, .tokens = 1, .splits = 8 },
        { .n_head = 2,
          .n_head_kv = 1,
          .dim = 64,
          .pos = 0,
          .tokens = 5,
          .splits = 16,
          .kind = "discrete" },
        { .n_head = 2,
          .n_head_kv = 1,
          .dim = 64,
          .pos = 6,
          .tokens = 1,
          .splits = 5,
          .int8 = true },
    };
    attend_cases(cases, LENGTH(cases));
}

/* Every depth from 1 to 300: a chunk sees them all. */
static void test_attend_depths(void)
{
    static const struct attend_case cases[] = {
        { .n_head = 2, .n_head_kv = 1, .dim = 64, .pos = 0, .tokens = 300, .splits = 3 },
        { .n_head = 4,
          .n_head_kv = 2,
          .dim = 64,
          .pos = 0,
          .tokens = 300,
          .splits = 2,
          .kind = "discrete",
          .int8 = true },
    };
    attend_cases(cases, LENGTH(cases));
}

static void test_attend_deep(void)
{
    static const struct attend_case cases[] = {
        { .n_head = 2,
          .n_head_kv = 1,
          .dim = 256,
          .pos = 4999,
          .tokens = 1,
          .splits = 1 },
        { .n_head = 6,
          .n_head_kv = 1,
          .dim = 128,
          .pos = 4998,
          .tokens = 2,
          .splits = 64,
          .int8 = true },
    };
    attend_cases(cases, LENGTH(cases));
}

/* As deep as one split may be: devices that end long loops still see it all. */
static void test_attend_deepest(void)
{
    struct gpu *gpu = harness_open();
    struct tuning t = tuning_of(gpu, "cpu");
    uint32_t positions = tuning_max_positions(&t, 64, 1);
    CHECK(positions > 100000);
    attend_check(gpu, &(struct attend_case){ .n_head = 1,
                                             .n_head_kv = 1,
                                             .dim = 64,
                                             .pos = positions - 1,
                                             .tokens = 1,
                                             .splits = 1,
                                             .kind = "cpu" });
    harness_close(gpu);
}

/* Scores in the hundreds: exp without the maximum would overflow. */
static void test_attend_peaked(void)
{
    static const struct attend_case cases[] = {
        { .n_head = 2,
          .n_head_kv = 1,
          .dim = 128,
          .pos = 90,
          .tokens = 2,
          .splits = 4,
          .peaked = true },
        { .n_head = 2,
          .n_head_kv = 1,
          .dim = 128,
          .pos = 90,
          .tokens = 1,
          .splits = 3,
          .peaked = true,
          .f32 = true,
          .kind = "discrete" },
    };
    attend_cases(cases, LENGTH(cases));
}

/* With the stop flag set no kernel writes. */
static void test_stop(void)
{
    const struct attend_case c = {
        .n_head = 2, .n_head_kv = 1, .dim = 64, .pos = 3, .tokens = 2, .splits = 2
    };
    struct gpu *gpu = harness_open();
    struct attend_rig r;
    struct err err = { "" };
    attend_open(&r, gpu, &c);
    struct ctl_block ctl = control(c.pos, c.tokens);
    ctl.stop = 1;
    HARNESS_OK(gpu_upload(gpu, gpu_span_at(&r.b[AT_CTL], 0, sizeof ctl), &ctl, &err),
               &err);
    attend_run(&r);
    struct tuning tune = attend_tuning(&r);
    struct push_qk p = { .n_head = 2,
                         .n_head_kv = 1,
                         .proj_stride = r.stride,
                         .v_offset = 64,
                         .rope_pairs = 8 };
    /* q and rope are read from anywhere; what counts is what is written. */
    struct gpu_buffer q = harness_buffer(gpu, NULL, r.bytes[AT_Q]);
    struct gpu_buffer k = harness_buffer(gpu, NULL, r.bytes[AT_K]);
    struct gpu_buffer v = harness_buffer(gpu, NULL, r.bytes[AT_V]);
    struct harness_job job = { .module = kernel_module(KERNEL_QK_F16),
                               .push = &p,
                               .groups = { 3, 2, 1 },
                               .buffers = { &r.b[AT_CTL], &r.b[AT_PROJ], &r.b[AT_Q],
                                            &r.b[AT_Q], &r.b[AT_Q], &q, &k, &v } };
    job.n_spec = tuning_qk(&tune, 64, job.spec);
    harness_run(gpu, &job);
    const struct gpu_buffer *written[] = {
        &r.b[AT_PARTIALS], &r.b[AT_X], &r.b[AT_S], &r.b[AT_SS], &q, &k, &v
    };
    const size_t bytes[] = { r.bytes[AT_PARTIALS], r.bytes[AT_X], r.bytes[AT_S],
                             r.bytes[AT_SS],       r.bytes[AT_Q], r.bytes[AT_K],
                             r.bytes[AT_V] };
    for (size_t i = 0; i < LENGTH(written); i++) {
        unsigned char *got = mem_alloc(bytes[i]), any = 0;
        harness_read(gpu, written[i], got, bytes[i]);
        for (size_t j = 0; j < bytes[i]; j++)
            any |= got[j];
        CHECK(!any);
        free(got);
    }
    gpu_buffer_close(&q, gpu);
    gpu_buffer_close(&k, gpu);
    gpu_buffer_close(&v, gpu);
    attend_close(&r);
    harness_close(gpu);
}

TEST_MAIN(T(test_tuning), T(test_qk), T(test_qk_last_position), T(test_attend_shapes),
          T(test_attend_tunings), T(test_attend_few_positions), T(test_attend_depths),
          T(test_attend_deep), T(test_attend_deepest), T(test_attend_peaked),
          T(test_stop))
