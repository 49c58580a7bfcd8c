/* delta_rig.h - one recurrent mixer on a device and as a reference, for tests
 * of its kernels: passes over random tokens, compared in full. */
#ifndef TESTS_ENGINE_DELTA_RIG_H
#define TESTS_ENGINE_DELTA_RIG_H

#include "base/mem.h"
#include "engine/delta_chunk.h"
#include "engine/ref.h"
#include "engine/ref_product.h"
#include "tests/engine/harness.h"

#include <float.h>

enum { ROOM_TOKENS = 72 }; /* tokens that the buffers have room for */

static uint32_t random_state = 7;

static inline float random_value(float low, float high)
{
    random_state = random_state * 1664525u + 1013904223u;
    return low + (high - low) * (float)(random_state >> 8) / (float)(1 << 24);
}

static inline float *random_array(size_t n, float low, float high)
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
    const struct delta_tuning *many;       /* the chunked steps; NULL: one kernel */
    uint32_t room;                         /* tokens of a pass; 0: ROOM_TOKENS */
};

enum { CTL, PROJ, HISTORY, CONV, DT, A, NORM, STATE, X, S, SS, N_BUFFERS };

/* One layer on the device and as a reference. */
struct rig {
    struct gpu *gpu;
    struct shape shape;
    struct push_delta p;
    struct gpu_kernel kernels[DELTA_STEPS];
    uint32_t n_kernels, room;
    struct gpu_commands *list;
    struct gpu_buffer b[N_BUFFERS], scratch[DELTA_SCRATCH];
    size_t bytes[N_BUFFERS];
    float *conv, *dt, *a, *norm, *proj;
    uint32_t side;
    size_t longest; /* values that a pass has written, at most */
    struct ref_delta ref;
};

/* Builds the kernel of a dispatch and adds it to the list. */
static inline void rig_record(struct rig *r, struct gpu_dispatch *d,
                              const struct gpu_module *m, const uint32_t *spec,
                              uint32_t n)
{
    struct err err = { "" };
    struct gpu_kernel *k = &r->kernels[r->n_kernels++];
    HARNESS_OK(gpu_kernel_open(k, r->gpu, m, spec, n, &err), &err);
    d->kernel = k;
    HARNESS_OK(gpu_record(r->list, d, &err), &err);
}

static inline void rig_serial(struct rig *r, const struct tuning *t)
{
    uint32_t spec[TUNING_SPEC];
    enum kernel_id id = t->delta_wide ? KERNEL_DELTA_WIDE : KERNEL_DELTA;
    uint32_t n = tuning_delta(t, r->shape.int8, spec);
    struct gpu_dispatch d = { .push = &r->p,
                              .label = "delta",
                              .groups = { r->p.n_v * STATE_DIM / t->delta_columns, 1,
                                          1 } };
    for (int i = 0; i < N_BUFFERS; i++)
        d.bind[i] = gpu_span_all(&r->b[i]);
    rig_record(r, &d, kernel_module(id), spec, n);
}

/* Scratch starts as NaN: a step that reads what none wrote shows. */
static inline void rig_chunked(struct rig *r, const struct delta_tuning *t)
{
    struct delta_spans x = { .ctl = gpu_span_all(&r->b[CTL]),
                             .proj = gpu_span_all(&r->b[PROJ]),
                             .history = gpu_span_all(&r->b[HISTORY]),
                             .taps = gpu_span_all(&r->b[CONV]),
                             .dt = gpu_span_all(&r->b[DT]),
                             .a = gpu_span_all(&r->b[A]),
                             .norm = gpu_span_all(&r->b[NORM]),
                             .state = gpu_span_all(&r->b[STATE]),
                             .x = gpu_span_all(&r->b[X]),
                             .s = gpu_span_all(&r->b[S]),
                             .ss = gpu_span_all(&r->b[SS]) };
    struct err err = { "" };
    uint64_t bytes[DELTA_SCRATCH];
    delta_chunk_scratch(t, &r->p, r->room, bytes);
    for (int i = 0; i < DELTA_SCRATCH; i++) {
        r->scratch[i] = harness_buffer(r->gpu, NULL, bytes[i]);
        x.scratch[i] = gpu_span_all(&r->scratch[i]);
        HARNESS_OK(gpu_fill(r->gpu, x.scratch[i], UINT32_MAX, &err), &err);
    }
    struct delta_step steps[DELTA_STEPS];
    delta_chunk_steps(steps, t, &r->p, &x, r->room, r->shape.int8);
    for (int i = 0; i < DELTA_STEPS; i++)
        rig_record(r, &steps[i].dispatch, steps[i].module, steps[i].spec,
                   steps[i].n_spec);
}

static inline void rig_kernels(struct rig *r)
{
    struct err err = { "" };
    struct tuning tune;
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
    HARNESS_OK(gpu_commands_open(&r->list, r->gpu, &err), &err);
    HARNESS_OK(gpu_record_begin(r->list, &err), &err);
    if (r->shape.many)
        rig_chunked(r, r->shape.many);
    else
        rig_serial(r, &tune);
    HARNESS_OK(gpu_record_end(r->list, &err), &err);
}

static inline void rig_layout(struct rig *r, const struct shape *s)
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
    const size_t planes = (size_t)r->room * value;
    const size_t bytes[N_BUFFERS] = { [CTL] = sizeof(struct ctl_block),
                                      [PROJ] = (size_t)r->room * r->p.proj_stride * 4,
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
static inline void rig_timeline(struct rig *r)
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

static inline struct rig *rig_open(struct gpu *gpu, const struct shape *s)
{
    struct rig *r = mem_zalloc(sizeof *r);
    r->gpu = gpu;
    r->shape = *s;
    r->room = s->room ? s->room : ROOM_TOKENS;
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
    rig_kernels(r);
    return r;
}

static inline void rig_close(struct rig *r)
{
    gpu_commands_close(r->list);
    for (uint32_t i = 0; i < r->n_kernels; i++)
        gpu_kernel_close(&r->kernels[i], r->gpu);
    for (int i = 0; i < DELTA_SCRATCH; i++)
        gpu_buffer_close(&r->scratch[i], r->gpu);
    for (int i = 0; i < N_BUFFERS; i++)
        gpu_buffer_close(&r->b[i], r->gpu);
    void *owned[] = { r->conv, r->dt,        r->a,           r->norm,
                      r->proj, r->ref.state, r->ref.history, r };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

/* One pass over rows [first, first + n) of proj, on the device. */
static inline void rig_run(struct rig *r, size_t first, uint32_t n, bool stop)
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

static inline void *rig_read(struct rig *r, int buffer)
{
    void *v = mem_alloc(r->bytes[buffer]);
    harness_read(r->gpu, &r->b[buffer], v, r->bytes[buffer]);
    return v;
}

/* ---- comparing ---------------------------------------------------------- */

/* The device's planes of n values against o and w; within rounding of o. */
static inline bool planes_near(struct rig *r, const float *o, const float *w, size_t n)
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
        /* Half a step of rounding, and the error of the value itself; devices
         * may take what is below a float's normal range for 0. */
        for (size_t i = b * ACT_BLOCK; i < (b + 1) * ACT_BLOCK; i++) {
            same &=
                fabs((double)made[i] - want[i]) <= (0.5 + 2e-3) * amax / 127 + FLT_MIN;
            made[i] = want[i];
        }
        same &= fabs(s[2 * b] - amax / 127) <= 1e-5 * amax / 127 + FLT_MIN;
        same &= fabsf(s[2 * b + 1] - s[2 * b] * (float)total) <= 1e-5f * s[2 * b] * 4064;
    }
    same &= harness_near(made, want, n, 2e-5);
    same &= harness_near(ss, sums, n / ACT_BLOCK, 4e-5);
    void *owned[] = { x, s, ss, made, want, sums };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    return same;
}

static inline bool state_near(struct rig *r)
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

static inline bool history_same(struct rig *r)
{
    float *got = rig_read(r, HISTORY);
    size_t n = (size_t)3 * r->p.conv_dim;
    bool same = !memcmp(got + r->side * n, r->ref.history, n * sizeof *got);
    free(got);
    return same;
}

/* What lies behind n values of the planes is still zero. */
static inline bool rest_untouched(struct rig *r, size_t n)
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
static inline void check_passes(struct rig *r, const uint32_t *lengths, size_t n_passes)
{
    size_t first = 0;
    for (size_t i = 0; i < n_passes; i++) {
        size_t n = (size_t)lengths[i] * r->p.n_v * STATE_DIM;
        float *o = mem_array(n, sizeof *o), *w = mem_array(n, sizeof *w);
        r->longest = n > r->longest ? n : r->longest;
        rig_run(r, first, lengths[i], false);
        ref_delta(&r->ref, r->proj + first * r->p.proj_stride, lengths[i], o, w);
        CHECK(planes_near(r, o, w, n));
        CHECK(state_near(r));
        CHECK(history_same(r));
        CHECK(rest_untouched(r, r->longest));
        first += lengths[i];
        free(o);
        free(w);
    }
}

static inline void check_shapes(const struct shape *shapes, size_t n,
                                const uint32_t *lengths, size_t n_passes)
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

#define LENGTH(a) (sizeof(a) / sizeof *(a))

#endif
