/* test_delta_chunk.c - the recurrent mixer for many tokens at once against the
 * reference that takes them one by one: every length, every boundary, head
 * counts and orders, workgroup shapes, both plane formats, extreme gates. */
#include "tests/engine/delta_rig.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static const struct delta_tuning small = { .chunk = 32,
                                           .strips = 1,
                                           .solve_size = 32,
                                           .rows = 8,
                                           .ahead = 4,
                                           .emit_size = 64,
                                           .columns = 32,
                                           .heads = 1 };
static const struct delta_tuning large = { .chunk = 64,
                                           .strips = 4,
                                           .solve_size = 288,
                                           .rows = 4,
                                           .ahead = 4,
                                           .emit_size = 256,
                                           .columns = 16,
                                           .heads = 1 };

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

/* Sizes that the table may name, with several heads a workgroup too. */
static void test_workgroup_shapes(void)
{
    /* never used, chunk, strips, solve, rows, ahead, emit, columns, heads, units */
    static const struct delta_tuning t[] = {
        { 0, 32, 4, 64, 8, 4, 512, 16, 3, 0, 0, 0 },
        { 0, 32, 2, 40, 4, 4, 8, 4, 2, 20, 0, 0 },
        { 0, 64, 8, 64, 4, 4, 64, 8, 2, 0, 0, 0 },
    };
    static const uint32_t lengths[] = { 65, 3 };
    struct shape shapes[LENGTH(t)];
    for (size_t i = 0; i < LENGTH(t); i++)
        shapes[i] = (struct shape){
            .n_k = 2, .n_v = i ? 4 : 6, .int8 = i & 1, .grouped = i / 2, .many = &t[i]
        };
    check_shapes(shapes, LENGTH(shapes), lengths, LENGTH(lengths));
}

/* What the table says for every kind of device, one with the least workgroup
 * memory and the smallest workgroups among them. */
static void test_tuning_table(void)
{
    static const char *const kinds[] = { "discrete", "cpu" };
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
        struct rig *r = rig_open(gpu, &(struct shape){ .n_k = 1, .n_v = 2, .many = &m });
        struct delta_step steps[DELTA_STEPS];
        delta_chunk_steps(steps, &m, &r->p, &(struct delta_spans){ 0 }, 70, false);
        CHECK(delta_chunk_shared(&m, &r->p) <= info.shared_bytes);
        for (int k = 0; k < DELTA_STEPS; k++)
            CHECK(steps[k].spec[0] <= info.group_size);
        check_passes(r, (uint32_t[]){ 70, 2 }, 2);
        rig_close(r);
        info = *gpu_info(gpu);
    }
    harness_close(gpu);
}

/* The scan's workgroups on a device of 132 compute units, for the head counts
 * of known models: as many as keep all busy, and those that read least. */
static void test_scan_workgroups(void)
{
    static const struct {
        uint32_t n_k, n_v, shared, columns, heads;
    } want[] = {
        { 16, 16, 49152, 16, 1 }, { 16, 32, 49152, 32, 1 }, { 16, 48, 49152, 16, 3 },
        { 16, 48, 32768, 16, 1 }, { 16, 64, 49152, 32, 2 }, { 1, 4, 49152, 4, 1 },
        { 16, 48, 16384, 16, 1 },
    };
    struct device_info info = { .kind = "discrete",
                                .subgroup_size = 32,
                                .group_size = 1024 };
    for (size_t i = 0; i < LENGTH(want); i++) {
        struct delta_step steps[DELTA_STEPS];
        struct push_delta p = { .n_k = want[i].n_k, .n_v = want[i].n_v };
        struct tuning t;
        info.shared_bytes = want[i].shared;
        tuning_choose(&t, &info);
        delta_chunk_steps(steps, &t.delta_many, &p, &(struct delta_spans){ 0 }, 256,
                          true);
        const uint32_t *spec = steps[2].spec;
        if (spec[2] != want[i].columns || spec[5] != want[i].heads)
            printf("# %u heads: %u columns of %u\n", p.n_v, spec[2], spec[5]);
        CHECK(spec[2] == want[i].columns && spec[5] == want[i].heads);
        CHECK(steps[2].dispatch.groups[0] * spec[2] * spec[5] == p.n_v * STATE_DIM);
        CHECK(spec[0] == 2 * t.delta_many.chunk / 4 * spec[2] / 4 * spec[5]);
        CHECK(delta_chunk_shared(&t.delta_many, &p) <= want[i].shared);
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
                if (t % 23 == 7)
                    row[r->p.alpha_offset + j] = 1e38f; /* a sum of two is infinite */
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
          T(test_scan_workgroups), T(test_extreme_gates), T(test_same_key),
          T(test_no_beta), T(test_stop))
