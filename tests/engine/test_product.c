/* test_product.c - packing, products with every format, epilogue and norm, and
 * the embedding look-up, against the C reference on odd shapes. */
#include "tests/engine/product_rig.h"

/* A workgroup is at least a subgroup. */
static void run_setup(struct gpu *gpu, const struct setup *given)
{
    struct setup own = *given, *u = &own;
    if (u->size < gpu_info(gpu)->subgroup_size)
        u->size = gpu_info(gpu)->subgroup_size;
    struct rig r;
    rig_open(&r, gpu, u);
    uint32_t unit = u->epilogue == EPILOGUE_SWIGLU ? 64 : 32;
    uint32_t per_group = u->size / u->lanes * u->batch;
    if (u->epilogue != EPILOGUE_STORE)
        per_group = (per_group + unit - 1) / unit * unit;
    const uint32_t split = u->split ? u->split : 1;
    struct harness_job job = {
        .module = kernel_product_module(u->format, u->int8, u->epilogue),
        .spec = { u->size, u->lanes, per_group, u->per_group, u->batch, u->norm, split,
                  u->each },
        .n_spec = 8,
        .buffers = { [3] = &r.a.x, [4] = &r.a.s, [5] = &r.a.ss },
        .groups = { ((uint32_t)u->shape.rows + per_group - 1) / per_group,
                    (u->shape.grid_tokens + u->per_group - 1) / u->per_group, split },
    };
    rig_bind(&r, &job, 6);
    harness_run(gpu, &job);
    rig_check(&r, 1e-4);
    uint32_t counters[16] = { 1 };
    harness_read(gpu, &r.parts, counters, job.groups[0] * sizeof *counters);
    for (uint32_t i = 0; i < job.groups[0]; i++)
        CHECK(counters[i] == 0);
    rig_close(&r);
}

/* Every epilogue of a format in both kinds of arithmetic, in turn with short
 * rows, one an invocation, and with rows three times as long, one a subgroup. */
static void run_format(struct gpu *gpu, enum device_format f)
{
    static const struct shape store[] = { { 1, 1, 1, 1 }, { 70, 3, 3, 5 } };
    static const struct shape fused[] = { { 64, 1, 1, 1 }, { 192, 3, 3, 7 } };
    size_t shortest = quant_format(quants[f])->elements;
    for (int i = 0; i < 2 * EPILOGUE_COUNT; i++) {
        bool int8 = i >= EPILOGUE_COUNT, shared = i & 1;
        enum epilogue e = (enum epilogue)(i % EPILOGUE_COUNT);
        struct setup u = { .format = f,
                           .type = quants[f],
                           .int8 = int8,
                           .epilogue = e,
                           .norm = (enum ref_norm)((i + i / 3 + f) % 3),
                           .shape = e == EPILOGUE_STORE ? store[shared] : fused[shared],
                           .size = shared ? 64 : 16,
                           .batch = 2,
                           .lanes = shared ? gpu_info(gpu)->subgroup_size : 1,
                           .per_group = shared ? 2 : 1 };
        u.shape.cols *= shortest < 128 ? 128 : shortest;
        int before = test_failures;
        run_setup(gpu, &u);
        if (test_failures != before)
            printf("# %s int8 %d epilogue %d norm %d rows %zu lanes %u\n",
                   quant_format(u.type)->name, int8, e, u.norm, u.shape.rows, u.lanes);
    }
}

static void test_products(void)
{
    struct gpu *gpu = harness_open();
    for (int f = 0; f < FORMAT_COUNT; f++)
        run_format(gpu, (enum device_format)f);
    harness_close(gpu);
}

/* Rows that share a subgroup, for formats with and without sums of activations
 * of their own. */
static void test_products_with_shared_subgroups(void)
{
    struct gpu *gpu = harness_open();
    static const enum device_format formats[] = { FORMAT_F16, FORMAT_Q2_0, FORMAT_Q6_K };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (uint32_t lanes = 2; lanes < gpu_info(gpu)->subgroup_size; lanes *= 2) {
            enum device_format f = formats[i];
            run_setup(gpu, &(struct setup){ .format = f,
                                            .type = quants[f],
                                            .int8 = true,
                                            .epilogue = EPILOGUE_RESIDUAL,
                                            .norm = REF_NORM_ROW,
                                            .shape = { 96, 768, 2, 3 },
                                            .size = 64,
                                            .lanes = lanes,
                                            .batch = 4,
                                            .per_group = 2 });
        }
    harness_close(gpu);
}

/* Workgroups that share rows: rounds that divide evenly among them or not, more
 * of them than there is work for, each with several blocks of rows. */
static void test_split_rows(void)
{
    static const struct {
        uint32_t lanes, split, each;
        size_t cols;
    } cases[] = { { 8, 2, 1, 512 },
                  { 8, 3, 2, 1280 },
                  { 4, 5, 1, 512 },
                  { 2, 16, 1, 1024 },
                  { 8, 4, 3, 768 } };
    struct gpu *gpu = harness_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int f = 0; f < 2; f++)
            run_setup(gpu, &(struct setup){ .format = f ? FORMAT_Q4_K : FORMAT_Q2_0,
                                            .type = f ? QUANT_Q4_K : QUANT_Q2_0,
                                            .int8 = i != 2,
                                            .epilogue = EPILOGUE_RESIDUAL,
                                            .norm = (enum ref_norm)(i % 3),
                                            .shape = { 160, cases[i].cols, 1, 1 },
                                            .size = 64,
                                            .lanes = cases[i].lanes,
                                            .batch = 4,
                                            .per_group = 1,
                                            .split = cases[i].split,
                                            .each = cases[i].each });
    harness_close(gpu);
}

static void test_stop_writes_nothing(void)
{
    struct gpu *gpu = harness_open();
    struct setup u = { .format = FORMAT_Q2_0,
                       .type = QUANT_Q2_0,
                       .int8 = true,
                       .epilogue = EPILOGUE_RESIDUAL,
                       .shape = { 64, 128, 0, 2 },
                       .size = 64,
                       .lanes = 8,
                       .batch = 4,
                       .per_group = 1 };
    run_setup(gpu, &u); /* no token is below n_tokens */
    harness_close(gpu);
}

static void embed_format(struct gpu *gpu, enum device_format f, bool int8)
{
    const size_t rows = 11, cols = 768;
    const uint32_t tokens = 5, grid = 6;
    struct setup u = { .format = f,
                       .type = quants[f],
                       .shape = { rows, cols, tokens, grid } };
    struct weights_pair w = { 0 };
    weights_make(&w, gpu, &u);
    float norm[768], got[6 * 768], want[6 * 768] = { 0 };
    for (size_t i = 0; i < cols; i++)
        norm[i] = 1.0f + 0.25f * random_value();
    struct ctl_block ctl = { .n_tokens = tokens, .n_vocab = (uint32_t)rows };
    for (uint32_t t = 0; t < tokens; t++) {
        ctl.tokens[t] = t * 7 % 11;
        quant_dequantize(u.type, w.data[0] + ctl.tokens[t] * quant_bytes(u.type, cols),
                         cols, want + t * cols);
    }
    struct gpu_buffer b[6] = { harness_buffer(gpu, &ctl, sizeof ctl),
                               harness_buffer(gpu, NULL, sizeof got),
                               harness_buffer(gpu, NULL, grid * cols * 4),
                               harness_buffer(gpu, NULL, grid * cols / 4),
                               harness_buffer(gpu, NULL, grid * cols / 8),
                               harness_buffer(gpu, norm, sizeof norm) };
    struct push_embed push = { .cols = (uint32_t)cols, .units = w.m.units };
    harness_run(gpu,
                &(struct harness_job){ .module = kernel_embed_module(f),
                                       .spec = { 64, int8 },
                                       .n_spec = 2,
                                       .buffers = { [0] = &b[0],
                                                    [3] = &b[1],
                                                    [4] = &b[2],
                                                    [5] = &b[3],
                                                    [6] = &b[4],
                                                    [7] = &b[5] },
                                       .spans = { [1] = w.m.codes, [2] = w.m.scales },
                                       .push = &push,
                                       .groups = { 1, grid, 1 } });
    harness_read(gpu, &b[1], got, sizeof got);
    CHECK(harness_near(got, want, grid * cols, 1e-6));
    check_planes(gpu, b + 2,
                 &(struct planes_want){ .tokens = grid,
                                        .written = tokens,
                                        .n = cols,
                                        .int8 = int8,
                                        .values = want,
                                        .w = norm });
    for (int i = 0; i < 6; i++)
        gpu_buffer_close(&b[i], gpu);
    arena_release(&w.arena);
    free(w.data[0]);
}

static void test_embedding(void)
{
    struct gpu *gpu = harness_open();
    for (int f = 0; f < FORMAT_COUNT; f++)
        for (int int8 = 0; int8 < 2; int8++)
            embed_format(gpu, (enum device_format)f, int8);
    harness_close(gpu);
}

/* A mixture of formats in one matrix is converted, not misread. */
static void test_mixed_parts_become_f16(void)
{
    struct gpu *gpu = harness_open();
    uint8_t *a = random_weights(QUANT_Q8_0, 3, 64),
            *b = random_weights(QUANT_Q4_0, 2, 64);
    struct tensor ta = tensor_of(QUANT_Q8_0, a, 3, 64),
                  tb = tensor_of(QUANT_Q4_0, b, 2, 64);
    struct pack_source src = { .parts = { &ta, &tb }, .n_parts = 2 };
    struct arena arena;
    struct matrix m;
    struct err err = { "" };
    arena_init(&arena, gpu, pack_matrix_bytes(&src));
    HARNESS_OK(pack_matrix(&m, &arena, &src, &err), &err);
    CHECK(m.format == FORMAT_F16 && m.rows == 5);
    uint16_t got[5 * 64];
    float want[5 * 64];
    HARNESS_OK(gpu_download(gpu, got, m.codes, &err), &err);
    quant_dequantize(QUANT_Q8_0, a, 3 * 64, want);
    quant_dequantize(QUANT_Q4_0, b, 2 * 64, want + 3 * 64);
    for (int i = 0; i < 5 * 64; i++)
        CHECK(got[i] == quant_f32_to_f16(want[i]));
    arena_release(&arena);
    free(a);
    free(b);
    harness_close(gpu);
}

TEST_MAIN(T(test_products), T(test_products_with_shared_subgroups), T(test_split_rows),
          T(test_stop_writes_nothing), T(test_embedding), T(test_mixed_parts_become_f16))
