/* test_delta.c - the recurrent mixer's kernel against its reference: head
 * counts and orders, workgroup shapes, passes of any length, both plane
 * formats, extreme gates, and the worked example of the delta rule. */
#include "tests/engine/delta_rig.h"

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
    for (size_t i = 0; i < LENGTH(owned); i++)
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
    check_shapes(shapes, LENGTH(shapes), lengths, LENGTH(lengths));
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
    check_shapes(shapes, LENGTH(shapes), lengths, LENGTH(lengths));
}

static void test_pass_lengths(void)
{
    static const struct shape shapes[] = { { .n_k = 1, .n_v = 2, .int8 = true },
                                           { .n_k = 1, .n_v = 1, .kind = "discrete" } };
    static const uint32_t lengths[] = { 4, 7, 8, 9, 17 };
    static const uint32_t longest[] = { 70, 2 };
    check_shapes(shapes, LENGTH(shapes), lengths, LENGTH(lengths));
    check_shapes(shapes, LENGTH(shapes), longest, LENGTH(longest));
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
        for (size_t i = 0; i < LENGTH(owned); i++)
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
    void *before[LENGTH(written)];
    for (size_t i = 0; i < LENGTH(written); i++)
        before[i] = rig_read(r, written[i]);
    rig_run(r, 0, 3, true);
    for (size_t i = 0; i < LENGTH(written); i++) {
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
