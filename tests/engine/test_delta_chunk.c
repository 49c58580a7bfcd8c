/* test_delta_chunk.c - the recurrent mixer for many tokens at once against the
 * reference that takes them one by one: every length, every boundary, head
 * counts and orders, workgroup shapes, both plane formats, extreme gates. */
#include "tests/engine/delta_rig.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static const struct delta_tuning small = { .chunk = 32,
                                           .strips = 1,
                                           .solve_size = 32,
                                           .columns = 32,
                                           .rows = 8,
                                           .ahead = 4,
                                           .emit_size = 64 };
static const struct delta_tuning large = { .chunk = 64,
                                           .strips = 4,
                                           .solve_size = 288,
                                           .columns = 16,
                                           .rows = 4,
                                           .ahead = 8,
                                           .emit_size = 256 };

/* ---- lengths and boundaries ---------------------------------------------- */

/* One timeline, a pass of each length after the other. */
static void check_lengths(const struct delta_tuning *t, bool int8, uint32_t from,
                          uint32_t step, uint32_t to)
{
    struct gpu *gpu = harness_open();
    struct rig *r = rig_open(
        gpu, &(struct shape){ .n_k = 1, .n_v = 1, .many = t, .int8 = int8, .room = to });
    for (uint32_t n = from; n <= to; n += step) {
        int before = test_failures;
        check_passes(r, &n, 1);
        if (test_failures != before)
            printf("# a pass of %u tokens\n", n);
    }
    rig_close(r);
    harness_close(gpu);
}

static void test_lengths_of_small(void)
{
    check_lengths(&small, false, 1, 1, 130);
    check_lengths(&small, true, 132, 2, 300);
}

static void test_lengths_of_large(void)
{
    check_lengths(&large, true, 1, 1, 130);
    check_lengths(&large, false, 131, 2, 300);
}

/* The same tokens in two passes, cut at every offset: the readout and the
 * state that one pass leaves. Passes of fewer tokens than were recorded. */
static void test_every_cut(void)
{
    enum { TOKENS = 100 };
    struct gpu *gpu = harness_open();
    for (int kind = 0; kind < 2; kind++) {
        struct rig *r = rig_open(gpu, &(struct shape){ .n_k = 1,
                                                       .n_v = 1,
                                                       .many = kind ? &large : &small,
                                                       .int8 = kind,
                                                       .room = TOKENS });
        for (uint32_t cut = 1; cut < TOKENS; cut++) {
            int before = test_failures;
            check_passes(r, (uint32_t[]){ cut, TOKENS - cut }, 2);
            if (test_failures != before)
                printf("# cut at %u\n", cut);
        }
        rig_close(r);
    }
    harness_close(gpu);
}

/* ---- shapes -------------------------------------------------------------- */

static void test_head_orders(void)
{
    static const struct shape shapes[] = {
        { .n_k = 1, .n_v = 3, .int8 = true, .many = &small },
        { .n_k = 2, .n_v = 4, .int8 = true, .many = &large },
        { .n_k = 2, .n_v = 4, .grouped = true, .many = &small },
        { .n_k = 2, .n_v = 4, .grouped = true, .ba_grouped = true, .many = &large },
        { .n_k = 3, .n_v = 9, .int8 = true, .many = &small },
        { .n_k = 3, .n_v = 9, .grouped = true, .ba_grouped = true, .many = &large },
        { .n_k = 5, .n_v = 5, .many = &small },
    };
    static const uint32_t lengths[] = { 37, 1, 2, 32 };
    check_shapes(shapes, LENGTH(shapes), lengths, LENGTH(lengths));
}

/* Every size that the table may name. */
static void test_workgroup_shapes(void)
{
    /* never used, chunk, strips, solve, columns, rows, ahead, emit, units */
    static const struct delta_tuning t[] = {
        { 0, 32, 4, 64, 16, 8, 4, 512, 20 },
        { 0, 32, 2, 40, 4, 4, 4, 8, 0 },
        { 0, 64, 8, 64, 8, 4, 4, 64, 0 },
        { 0, 64, 2, 136, 32, 8, 4, 16, 0 },
    };
    struct shape shapes[LENGTH(t)];
    for (size_t i = 0; i < LENGTH(t); i++)
        shapes[i] = (struct shape){ .n_k = 1, .n_v = 2, .int8 = i & 1, .many = &t[i] };
    static const uint32_t lengths[] = { 65, 3 };
    check_shapes(shapes, LENGTH(shapes), lengths, LENGTH(lengths));
}

/* What the table says for every kind of device, one with the least workgroup
 * memory and the smallest workgroups among them. */
static void test_tuning_table(void)
{
    static const char *const kinds[] = { "cpu", "discrete", "integrated", "virtual" };
    struct gpu *gpu = harness_open();
    struct device_info info = *gpu_info(gpu);
    for (size_t i = 0; i < 2 * LENGTH(kinds); i++) {
        struct tuning t;
        snprintf(info.kind, sizeof info.kind, "%s", kinds[i / 2]);
        if (i % 2) {
            info.shared_bytes = 16384;
            info.group_size = 128;
        }
        tuning_choose(&t, &info);
        struct delta_tuning m = t.delta_many;
        CHECK(delta_chunk_shared(&m) <= info.shared_bytes);
        CHECK(m.solve_size <= info.group_size && m.emit_size <= info.group_size);
        CHECK(m.strips * STATE_DIM / 4 <= info.group_size);
        CHECK(2 * m.chunk / m.rows * m.columns / 4 <= info.group_size);
        struct rig *r = rig_open(gpu, &(struct shape){ .n_k = 1, .n_v = 2, .many = &m });
        check_passes(r, (uint32_t[]){ 70, 2 }, 2);
        rig_close(r);
        info = *gpu_info(gpu);
    }
    harness_close(gpu);
}

/* The scan's workgroups on a device of 132 compute units: as many as keep all
 * busy, and no more. */
static void test_scan_columns(void)
{
    static const uint32_t want[][2] = { { 16, 16 }, { 32, 32 }, { 48, 16 },
                                        { 64, 32 }, { 4, 8 },   { 128, 32 } };
    struct delta_tuning t = large;
    t.columns = 32;
    t.units = 132;
    for (size_t i = 0; i < LENGTH(want); i++) {
        struct delta_step steps[DELTA_STEPS];
        struct push_delta p = { .n_k = 2, .n_v = want[i][0] };
        delta_chunk_steps(steps, &t, &p, &(struct delta_spans){ 0 }, 256, true);
        if (steps[2].spec[2] != want[i][1])
            printf("# %u heads: %u columns\n", want[i][0], steps[2].spec[2]);
        CHECK(steps[2].spec[2] == want[i][1]);
        CHECK(steps[2].dispatch.groups[0] * want[i][1] == want[i][0] * STATE_DIM);
        CHECK(steps[2].spec[0] == 2 * 64 / 4 * want[i][1] / 4);
    }
}

/* ---- hard tokens --------------------------------------------------------- */

static const struct delta_tuning *const sizes[] = { &small, &large };

static struct rig *rig_of(struct gpu *gpu, int kind)
{
    return rig_open(
        gpu, &(struct shape){ .n_k = 2, .n_v = 4, .int8 = kind, .many = sizes[kind] });
}

/* Gates far out of range in every order, a zero key and a zero query: no NaN,
 * no infinity, and still the reference's values. */
static void test_extreme_gates(void)
{
    struct gpu *gpu = harness_open();
    static const float gates[] = { -200, -30, 0, 30, 200, 88, -88, 21, 1, -1, 5 };
    for (int kind = 0; kind < 2; kind++) {
        struct rig *r = rig_of(gpu, kind);
        for (uint32_t t = 0; t < ROOM_TOKENS; t++) {
            float *row = r->proj + t * r->p.proj_stride;
            for (uint32_t j = 0; j < 4; j++) {
                row[r->p.beta_offset + j] = gates[(t + j) % 11];
                row[r->p.alpha_offset + j] = gates[(t * (j + 1) + 3 * j + 1) % 11];
            }
            for (uint32_t i = 0; i < STATE_DIM; i++)
                row[r->p.z_offset + i] = gates[(t + i) % 11];
            /* Long enough that only zeros are left in the windows. */
            for (uint32_t i = 0; i < STATE_DIM && t % 16 > 8; i++)
                row[i] = row[2 * STATE_DIM + i] = 0;
        }
        check_passes(r, (uint32_t[]){ 69, 3 }, 2);
        rig_close(r);
    }
    harness_close(gpu);
}

/* One key for all tokens, written in full and never forgotten, then in part,
 * then forgotten at once: the largest entries that the solved matrices have. */
static void test_same_key(void)
{
    struct gpu *gpu = harness_open();
    for (int kind = 0; kind < 2; kind++) {
        struct rig *r = rig_of(gpu, kind);
        for (uint32_t t = 0; t < ROOM_TOKENS; t++) {
            float *row = r->proj + t * r->p.proj_stride;
            for (uint32_t i = 0; i < 4 * STATE_DIM; i++)
                row[i] = r->proj[i];
            for (uint32_t j = 0; j < 4; j++) {
                row[r->p.beta_offset + j] = j < 2 ? 200 : 0.5f;
                row[r->p.alpha_offset + j] = j % 2 ? -200 : t == 50 ? 200 : -20;
            }
        }
        check_passes(r, (uint32_t[]){ 70, 2 }, 2);
        rig_close(r);
    }
    harness_close(gpu);
}

/* Nothing is written: the state only fades, and the readout is of it. */
static void test_no_beta(void)
{
    struct gpu *gpu = harness_open();
    for (int kind = 0; kind < 2; kind++) {
        struct rig *r = rig_of(gpu, kind);
        for (uint32_t t = 0; t < ROOM_TOKENS; t++)
            for (uint32_t j = 0; j < 4; j++)
                r->proj[t * r->p.proj_stride + r->p.beta_offset + j] = -200;
        check_passes(r, (uint32_t[]){ 65, 7 }, 2);
        rig_close(r);
    }
    harness_close(gpu);
}

static void test_stop(void)
{
    struct gpu *gpu = harness_open();
    struct rig *r = rig_of(gpu, 1);
    static const int written[] = { HISTORY, STATE, X, S, SS };
    void *before[LENGTH(written)];
    for (size_t i = 0; i < LENGTH(written); i++)
        before[i] = rig_read(r, written[i]);
    rig_run(r, 0, 40, true);
    for (size_t i = 0; i < LENGTH(written); i++) {
        void *after = rig_read(r, written[i]);
        CHECK(!memcmp(before[i], after, r->bytes[written[i]]));
        free(before[i]);
        free(after);
    }
    rig_close(r);
    harness_close(gpu);
}

TEST_MAIN(T(test_lengths_of_small), T(test_lengths_of_large), T(test_every_cut),
          T(test_head_orders), T(test_workgroup_shapes), T(test_tuning_table),
          T(test_scan_columns), T(test_extreme_gates), T(test_same_key), T(test_no_beta),
          T(test_stop))
