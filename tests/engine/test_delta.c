/* test_delta.c - the recurrent mixer's kernel against its reference: head
 * counts and orders, workgroup shapes, passes of any length, both plane
 * formats, extreme gates, and the worked example of the delta rule. */
#include "base/mem.h"
#include "engine/kernel.h"
#include "engine/ref.h"
#include "engine/ref_product.h"
#include "engine/tune.h"
#include "tests/engine/harness.h"

enum { ROOM_TOKENS = 72 }; /* tokens that the buffers have room for */

static uint32_t random_state = 7;

static float random_value(float low, float high)
{
    random_state = random_state * 1664525u + 1013904223u;
    return low + (high - low) * (float)(random_state >> 8) / (float)(1 << 24);
}

static float *random_array(size_t n, float low, float high)
{
    float *v = mem_array(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = random_value(low, high);
    return v;
}

struct shape {
    uint32_t n_k, n_v;
    bool grouped, ba_grouped, int8;
    uint32_t columns, parts, each, passes; /* 0: from the tuning table */
    const char *kind;                      /* of device, for the table */
    bool wide;                             /* where the table is not asked */
};

enum { CTL, PROJ, HISTORY, CONV, DT, A, NORM, STATE, X, S, SS, N_BUFFERS };

/* One layer on the device and as a reference. */
struct rig {
    struct gpu *gpu;
    struct shape shape;
    struct push_delta p;
    struct gpu_kernel kernel;
    struct gpu_commands *list;
    struct gpu_buffer b[N_BUFFERS];
    size_t bytes[N_BUFFERS];
    float *conv, *dt, *a, *norm, *proj;
    uint32_t side;
    struct ref_delta ref;
};

static void rig_kernel(struct rig *r)
{
    struct err err = { "" };
    struct tuning tune;
    uint32_t spec[TUNING_SPEC];
    struct device_info info = *gpu_info(r->gpu);
    if (r->shape.kind)
        snprintf(info.kind, sizeof info.kind, "%s", r->shape.kind);
    tuning_choose(&tune, &info);
    if (r->shape.columns) {
        tune.delta_columns = r->shape.columns;
        tune.delta_parts = r->shape.parts;
        tune.delta_each = r->shape.each;
        tune.delta_passes = r->shape.passes;
        tune.delta_wide = r->shape.wide && info.int64;
    }
    enum kernel_id id = tune.delta_wide ? KERNEL_DELTA_WIDE : KERNEL_DELTA;
    uint32_t n = tuning_delta(&tune, r->shape.int8, spec);
    HARNESS_OK(
        gpu_kernel_open(&r->kernel, r->gpu, kernel_module(id), spec, n, &err),
        &err);
    struct gpu_dispatch d = { .kernel = &r->kernel,
                              .push = &r->p,
                              .label = "delta",
                              .groups = { r->p.n_v * STATE_DIM / tune.delta_columns, 1,
                                          1 } };
    for (int i = 0; i < N_BUFFERS; i++)
        d.bind[i] = gpu_span_all(&r->b[i]);
    HARNESS_OK(gpu_commands_open(&r->list, r->gpu, &err), &err);
    HARNESS_OK(gpu_record_begin(r->list, &err), &err);
    HARNESS_OK(gpu_record(r->list, &d, &err), &err);
    HARNESS_OK(gpu_record_end(r->list, &err), &err);
}

static void rig_layout(struct rig *r, const struct shape *s)
{
    uint32_t value = s->n_v * STATE_DIM, conv = 2 * s->n_k * STATE_DIM + value;
    r->p = (struct push_delta){ .n_k = s->n_k,
                                .n_v = s->n_v,
                                .conv_dim = conv,
                                .z_offset = conv + 8,
                                .beta_offset = conv + 8 + value + 1,
                                .alpha_offset = conv + 8 + value + s->n_v + 2,
                                .ba_grouped = s->ba_grouped,
                                .grouped_heads = s->grouped,
                                .eps = 1e-6f };
    r->p.proj_stride = (r->p.alpha_offset + s->n_v + 7) / 8 * 8;
    const size_t planes = (size_t)ROOM_TOKENS * value;
    const size_t bytes[N_BUFFERS] = { [CTL] = sizeof(struct ctl_block),
                                      [PROJ] = ROOM_TOKENS * r->p.proj_stride * 4,
                                      [HISTORY] = 6 * conv * 4,
                                      [CONV] = conv * 16,
                                      [DT] = s->n_v * 4,
                                      [A] = s->n_v * 4,
                                      [NORM] = STATE_DIM * 4,
                                      [STATE] = (size_t)value * STATE_DIM * 4,
                                      [X] = planes * 4,
                                      [S] = planes / ACT_BLOCK * 8,
                                      [SS] = planes / ACT_BLOCK * 4 };
    memcpy(r->bytes, bytes, sizeof bytes);
}

/* A state and history that are not zero, the same on both sides. */
static void rig_timeline(struct rig *r)
{
    size_t n_state = r->bytes[STATE] / 4, n_history = (size_t)3 * r->p.conv_dim;
    float *state = random_array(n_state, -0.2f, 0.2f);
    float *history = random_array(2 * n_history, -1, 1);
    r->ref = (struct ref_delta){
        .p = r->p, .conv = r->conv, .dt = r->dt, .a = r->a, .norm = r->norm
    };
    r->ref.state = mem_array(n_state, sizeof(double));
    for (size_t i = 0; i < n_state; i++)
        r->ref.state[i] = state[i];
    r->ref.history = mem_array(n_history, sizeof(float));
    memcpy(r->ref.history, history + r->side * n_history, n_history * sizeof(float));
    r->b[STATE] = harness_buffer(r->gpu, state, r->bytes[STATE]);
    r->b[HISTORY] = harness_buffer(r->gpu, history, r->bytes[HISTORY]);
    free(state);
    free(history);
}

static struct rig *rig_open(struct gpu *gpu, const struct shape *s)
{
    struct rig *r = mem_zalloc(sizeof *r);
    r->gpu = gpu;
    r->shape = *s;
    r->side = 1;
    rig_layout(r, s);
    r->conv = random_array((size_t)r->p.conv_dim * 4, -1, 1);
    r->dt = random_array(s->n_v, -1, 1);
    r->a = random_array(s->n_v, -1.5f, -0.02f);
    r->norm = random_array(STATE_DIM, 0.5f, 1.5f);
    r->proj = random_array(r->bytes[PROJ] / 4, -2, 2);
    const float *data[N_BUFFERS] = {
        [PROJ] = r->proj, [CONV] = r->conv, [DT] = r->dt, [A] = r->a, [NORM] = r->norm
    };
    for (int i = 0; i < N_BUFFERS; i++)
        if (i != STATE && i != HISTORY)
            r->b[i] = harness_buffer(gpu, data[i], r->bytes[i]);
    rig_timeline(r);
    rig_kernel(r);
    return r;
}

static void rig_close(struct rig *r)
{
    gpu_commands_close(r->list);
    gpu_kernel_close(&r->kernel, r->gpu);
    for (int i = 0; i < N_BUFFERS; i++)
        gpu_buffer_close(&r->b[i], r->gpu);
    void *owned[] = { r->conv, r->dt,        r->a,           r->norm,
                      r->proj, r->ref.state, r->ref.history, r };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

/* One pass over rows [first, first + n) of proj, on the device. */
static void rig_run(struct rig *r, size_t first, uint32_t n, bool stop)
{
    struct err err = { "" };
    struct ctl_block ctl = { .pos = 5, .n_tokens = n, .side = r->side, .stop = stop };
    HARNESS_OK(gpu_upload(r->gpu, gpu_span_at(&r->b[CTL], 0, sizeof ctl), &ctl, &err),
               &err);
    HARNESS_OK(gpu_upload(r->gpu,
                          gpu_span_at(&r->b[PROJ], 0, (uint64_t)n * r->p.proj_stride * 4),
                          r->proj + first * r->p.proj_stride, &err),
               &err);
    HARNESS_OK(gpu_submit(r->gpu, &r->list, 1, 1, &err), &err);
    HARNESS_OK(gpu_wait(r->gpu, 0, &err), &err);
    if (!stop)
        r->side ^= 1;
}

static void *rig_read(struct rig *r, int buffer)
{
    void *v = mem_alloc(r->bytes[buffer]);
    harness_read(r->gpu, &r->b[buffer], v, r->bytes[buffer]);
    return v;
}

/* ---- comparing ---------------------------------------------------------- */

/* The device's planes of n values against o and w; within rounding of o. */
static bool planes_near(struct rig *r, const float *o, const float *w, size_t n)
{
    float *x = rig_read(r, X), *s = rig_read(r, S), *ss = rig_read(r, SS);
    float *made = mem_array(n, sizeof *made), *want = mem_array(n, sizeof *want);
    float *sums = mem_array(n / ACT_BLOCK, sizeof *sums);
    const int8_t *q = (const int8_t *)x;
    bool same = true;
    for (size_t b = 0; b < n / ACT_BLOCK; b++) {
        double amax = 0, sum = 0;
        int total = 0;
        for (size_t i = b * ACT_BLOCK; i < (b + 1) * ACT_BLOCK; i++) {
            want[i] = o[i] * w[i];
            amax = fmax(amax, fabs((double)want[i]));
            sum += (double)o[i] * o[i];
            total += r->shape.int8 ? q[i] : 0;
            made[i] = r->shape.int8 ? s[2 * b] * (float)q[i] : x[i];
        }
        sums[b] = (float)sum;
        if (!r->shape.int8)
            continue;
        /* Half a step of rounding, and the error of the value itself. */
        for (size_t i = b * ACT_BLOCK; i < (b + 1) * ACT_BLOCK; i++) {
            same &= fabs((double)made[i] - want[i]) <= (0.5 + 2e-3) * amax / 127;
            made[i] = want[i];
        }
        same &= fabs(s[2 * b] - amax / 127) <= 1e-5 * amax / 127;
        same &= fabsf(s[2 * b + 1] - s[2 * b] * (float)total) <= 1e-5f * s[2 * b] * 4064;
    }
    same &= harness_near(made, want, n, 2e-5);
    same &= harness_near(ss, sums, n / ACT_BLOCK, 4e-5);
    void *owned[] = { x, s, ss, made, want, sums };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    return same;
}

static bool state_near(struct rig *r)
{
    size_t n = r->bytes[STATE] / 4;
    float *got = rig_read(r, STATE), *want = mem_array(n, sizeof *want);
    for (size_t i = 0; i < n; i++)
        want[i] = (float)r->ref.state[i];
    bool near = harness_near(got, want, n, 1e-5);
    free(got);
    free(want);
    return near;
}

static bool history_same(struct rig *r)
{
    float *got = rig_read(r, HISTORY);
    size_t n = (size_t)3 * r->p.conv_dim;
    bool same = !memcmp(got + r->side * n, r->ref.history, n * sizeof *got);
    free(got);
    return same;
}

/* What lies behind n values of the planes is still zero. */
static bool rest_untouched(struct rig *r, size_t n)
{
    uint32_t *x = rig_read(r, X), *ss = rig_read(r, SS);
    uint32_t any = 0;
    for (size_t i = r->shape.int8 ? n / 4 : n; i < r->bytes[X] / 4; i++)
        any |= x[i];
    for (size_t i = n / ACT_BLOCK; i < r->bytes[SS] / 4; i++)
        any |= ss[i];
    free(x);
    free(ss);
    return any == 0;
}

/* Passes of these lengths, each compared in full. */
static void check_passes(struct rig *r, const uint32_t *lengths, size_t n_passes)
{
    size_t first = 0, longest = 0;
    for (size_t i = 0; i < n_passes; i++) {
        size_t n = (size_t)lengths[i] * r->p.n_v * STATE_DIM;
        float *o = mem_array(n, sizeof *o), *w = mem_array(n, sizeof *w);
        longest = n > longest ? n : longest;
        rig_run(r, first, lengths[i], false);
        ref_delta(&r->ref, r->proj + first * r->p.proj_stride, lengths[i], o, w);
        CHECK(planes_near(r, o, w, n));
        CHECK(state_near(r));
        CHECK(history_same(r));
        CHECK(rest_untouched(r, longest));
        first += lengths[i];
        free(o);
        free(w);
    }
}

static void check_shapes(const struct shape *shapes, size_t n, const uint32_t *lengths,
                         size_t n_passes)
{
    struct gpu *gpu = harness_open();
    for (size_t i = 0; i < n; i++) {
        struct rig *r = rig_open(gpu, &shapes[i]);
        int before = test_failures;
        check_passes(r, lengths, n_passes);
        if (test_failures != before)
            printf("# shape %zu: %u/%u heads, %u columns, %u parts, %u each\n", i,
                   shapes[i].n_k, shapes[i].n_v, shapes[i].columns, shapes[i].parts,
                   shapes[i].each);
        rig_close(r);
    }
    harness_close(gpu);
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- tests -------------------------------------------------------------- */

static void test_worked_step(void)
{
    double state[4] = { 1, 0, 0, 1 }, o[2];
    const double q[] = { 1, 0 }, k[] = { 0.6, 0.8 }, v[] = { 1, 2 };
    ref_delta_step(
        &(struct ref_step){ .dim = 2, .q = q, .k = k, .v = v, .decay = 0.5, .beta = 0.5 },
        state, o);
    /* By hand; rows here are values, so the printed matrix is transposed. */
    const double want[] = { 0.71, 0.28, 0.48, 1.14 };
    for (int i = 0; i < 4; i++)
        CHECK(fabs(state[i] - want[i]) < 1e-12);
    CHECK(fabs(o[0] - 0.5020458) < 1e-7 && fabs(o[1] - 0.3394113) < 1e-7);
}

/* x with silu(x) = y, y >= 0. */
static float silu_inverse(double y)
{
    double low = 0, high = 100;
    for (int i = 0; i < 200; i++) {
        double mid = (low + high) / 2;
        if (mid / (1 + exp(-mid)) < y)
            low = mid;
        else
            high = mid;
    }
    return (float)low;
}

/* The same two-dimensional example in the corner of a real head. */
static void test_worked_example(void)
{
    struct gpu *gpu = harness_open();
    struct rig *r = rig_open(gpu, &(struct shape){ .n_k = 1, .n_v = 1 });
    struct err err = { "" };
    float *state = mem_zalloc(r->bytes[STATE]), *conv = mem_zalloc(r->bytes[CONV]);
    for (uint32_t c = 0; c < r->p.conv_dim; c++)
        conv[4 * c + 3] = 1;
    state[0] = state[STATE_DIM + 1] = 1;
    memset(r->proj, 0, r->p.proj_stride * 4);
    r->proj[0] = silu_inverse(1);
    r->proj[STATE_DIM] = silu_inverse(0.6);
    r->proj[STATE_DIM + 1] = silu_inverse(0.8);
    r->proj[2 * STATE_DIM] = silu_inverse(1);
    r->proj[2 * STATE_DIM + 1] = silu_inverse(2);
    for (int i = 0; i < STATE_DIM; i++) {
        r->norm[i] = 1;
        r->proj[r->p.z_offset + i] = silu_inverse(1);
    }
    const float one = -1, zero = 0;
    HARNESS_OK(
        gpu_upload(gpu, gpu_span_at(&r->b[STATE], 0, r->bytes[STATE]), state, &err),
        &err);
    HARNESS_OK(gpu_upload(gpu, gpu_span_at(&r->b[CONV], 0, r->bytes[CONV]), conv, &err),
               &err);
    HARNESS_OK(gpu_upload(gpu, gpu_span_at(&r->b[NORM], 0, STATE_DIM * 4), r->norm, &err),
               &err);
    HARNESS_OK(gpu_upload(gpu, gpu_span_at(&r->b[A], 0, 4), &one, &err), &err);
    HARNESS_OK(gpu_upload(gpu, gpu_span_at(&r->b[DT], 0, 4), &zero, &err), &err);
    rig_run(r, 0, 1, false);
    float *got = rig_read(r, STATE), *x = rig_read(r, X);
    CHECK(fabsf(got[0] - 0.71f) < 1e-6f && fabsf(got[1] - 0.28f) < 1e-6f);
    CHECK(fabsf(got[STATE_DIM] - 0.48f) < 1e-6f &&
          fabsf(got[STATE_DIM + 1] - 1.14f) < 1e-6f);
    /* The example divides by sqrt(2), the kernel by sqrt(128). */
    CHECK(fabsf(x[0] * 8 - 0.5020458f) < 1e-6f && fabsf(x[1] * 8 - 0.3394113f) < 1e-6f);
    CHECK(got[2] == 0 && got[STATE_DIM + 2] == 0 && x[2] == 0);
    void *owned[] = { state, conv, got, x };
    for (size_t i = 0; i < COUNT(owned); i++)
        free(owned[i]);
    rig_close(r);
    harness_close(gpu);
}

static void test_head_orders(void)
{
    static const struct shape shapes[] = {
        { .n_k = 1, .n_v = 1 },
        { .n_k = 1, .n_v = 3, .int8 = true },
        { .n_k = 2, .n_v = 4, .int8 = true },
        { .n_k = 2, .n_v = 4, .grouped = true },
        { .n_k = 2, .n_v = 4, .grouped = true, .ba_grouped = true, .int8 = true },
        { .n_k = 3, .n_v = 9, .int8 = true },
        { .n_k = 3, .n_v = 9, .grouped = true, .ba_grouped = true },
    };
    static const uint32_t lengths[] = { 1, 2, 5, 1 };
    check_shapes(shapes, COUNT(shapes), lengths, COUNT(lengths));
}

static void test_workgroup_shapes(void)
{
    static const struct shape shapes[] = {
        { 1, 2, .kind = "cpu" },
        { 1, 2, .kind = "discrete", .int8 = true },
        { 2, 2, .columns = 32, .parts = 1, .each = 1, .passes = 1, .int8 = true },
        { 1, 2, .columns = 32, .parts = 2, .each = 1, .passes = 2 },
        { 1, 2, .columns = 64, .parts = 4, .each = 2, .passes = 1 },
        { 1, 2, .columns = 64, .parts = 8, .each = 1, .passes = 1, .int8 = true },
        { 1, 2, .columns = 128, .parts = 8, .each = 4, .passes = 4 },
        { 1, 2, .columns = 128, .parts = 8, .each = 8, .passes = 1 },
        { 1, 2, .columns = 128, .parts = 8, .each = 1, .passes = 1 },
        { 1, 2, .columns = 32, .parts = 8, .each = 1, .passes = 1, .wide = true },
        { 1, 2, .columns = 64, .parts = 4, .each = 2, .passes = 2, .wide = true },
        { 1, 2, .columns = 128, .parts = 8, .each = 8, .passes = 1, .wide = true },
    };
    static const uint32_t lengths[] = { 1, 3, 11 };
    check_shapes(shapes, COUNT(shapes), lengths, COUNT(lengths));
}

static void test_pass_lengths(void)
{
    static const struct shape shapes[] = { { .n_k = 1, .n_v = 2, .int8 = true },
                                           { .n_k = 1, .n_v = 1, .kind = "discrete" } };
    static const uint32_t lengths[] = { 4, 7, 8, 9, 17 };
    static const uint32_t longest[] = { 70, 2 };
    check_shapes(shapes, COUNT(shapes), lengths, COUNT(lengths));
    check_shapes(shapes, COUNT(shapes), longest, COUNT(longest));
}

/* The same tokens one by one and in one pass: the same bits everywhere. */
static void test_token_by_token(void)
{
    struct gpu *gpu = harness_open();
    enum { TOKENS = 21 };
    for (int kind = 0; kind < 4; kind++) {
        struct shape s = {
            .n_k = 2, .n_v = 4, .int8 = kind & 1, .kind = kind & 2 ? "discrete" : "cpu"
        };
        random_state = 11;
        struct rig *whole = rig_open(gpu, &s);
        random_state = 11;
        struct rig *single = rig_open(gpu, &s);
        rig_run(whole, 0, TOKENS, false);
        char *x = rig_read(whole, X), *ss = rig_read(whole, SS);
        size_t width = s.n_v * STATE_DIM, row = s.int8 ? width : 4 * width;
        for (uint32_t t = 0; t < TOKENS; t++) {
            rig_run(single, t, 1, false);
            char *x1 = rig_read(single, X), *ss1 = rig_read(single, SS);
            CHECK(!memcmp(x1, x + t * row, row));
            CHECK(!memcmp(ss1, ss + t * (width / ACT_BLOCK) * 4, width / ACT_BLOCK * 4));
            free(x1);
            free(ss1);
        }
        float *a = rig_read(whole, STATE), *b = rig_read(single, STATE);
        CHECK(!memcmp(a, b, whole->bytes[STATE]));
        float *ha = rig_read(whole, HISTORY), *hb = rig_read(single, HISTORY);
        size_t n = (size_t)3 * whole->p.conv_dim;
        CHECK(whole->side == single->side);
        CHECK(!memcmp(ha + whole->side * n, hb + single->side * n, n * sizeof *ha));
        void *owned[] = { x, ss, a, b, ha, hb };
        for (size_t i = 0; i < COUNT(owned); i++)
            free(owned[i]);
        rig_close(whole);
        rig_close(single);
    }
    harness_close(gpu);
}

/* Gates far out of range, a zero key and a zero query: no NaN, no infinity,
 * and still the reference's values. */
static void test_extreme_gates(void)
{
    struct gpu *gpu = harness_open();
    struct rig *r = rig_open(gpu, &(struct shape){ .n_k = 2, .n_v = 4, .int8 = true });
    static const float gates[] = { -200, -30, 0, 30, 200, 88, -88, 21 };
    for (uint32_t t = 0; t < 8; t++) {
        float *row = r->proj + t * r->p.proj_stride;
        for (uint32_t j = 0; j < 4; j++) {
            row[r->p.beta_offset + j] = gates[(t + j) % 8];
            row[r->p.alpha_offset + j] = gates[(t + 3 * j + 1) % 8];
        }
        for (uint32_t i = 0; i < STATE_DIM; i++)
            row[r->p.z_offset + i] = gates[(t + i) % 8];
    }
    /* Long enough that only zeros are left in the windows of q and k head 0. */
    for (uint32_t t = 2; t < 7; t++)
        for (uint32_t i = 0; i < STATE_DIM; i++)
            r->proj[t * r->p.proj_stride + i] =
                r->proj[t * r->p.proj_stride + 2 * STATE_DIM + i] = 0;
    check_passes(r, (const uint32_t[]){ 5, 3 }, 2);
    rig_close(r);
    harness_close(gpu);
}

static void test_stop(void)
{
    struct gpu *gpu = harness_open();
    struct rig *r = rig_open(gpu, &(struct shape){ .n_k = 2, .n_v = 4, .int8 = true });
    static const int written[] = { HISTORY, STATE, X, S, SS };
    void *before[COUNT(written)];
    for (size_t i = 0; i < COUNT(written); i++)
        before[i] = rig_read(r, written[i]);
    rig_run(r, 0, 3, true);
    for (size_t i = 0; i < COUNT(written); i++) {
        void *after = rig_read(r, written[i]);
        CHECK(!memcmp(before[i], after, r->bytes[written[i]]));
        free(before[i]);
        free(after);
    }
    rig_close(r);
    harness_close(gpu);
}

TEST_MAIN(T(test_worked_step), T(test_worked_example), T(test_head_orders),
          T(test_workgroup_shapes), T(test_pass_lengths), T(test_token_by_token),
          T(test_extreme_gates), T(test_stop))
