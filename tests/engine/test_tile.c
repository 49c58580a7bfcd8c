/* test_tile.c - products of a chunk in tiles, by plain arithmetic and with
 * cooperative matrices where the device has them, against the C reference. */
#include "engine/tune.h"
#include "tests/engine/product_rig.h"

/* f16 rounds weights and activations to 11 bits each; what is added to them, or
 * multiplied with a twin, may make the error larger beside the result. */
static const double tolerances[EPILOGUE_COUNT] = { 4e-3, 6e-3, 1e-2 };

struct tiled {
    struct setup u;
    struct tile_tuning tile;
    bool matrix;
};

static void run_tiled(struct gpu *gpu, const struct tiled *t)
{
    const struct setup *u = &t->u;
    const uint32_t cols = (uint32_t)u->shape.cols, grid = u->shape.grid_tokens;
    const uint32_t lanes = gpu_info(gpu)->subgroup_size;
    uint32_t size =
        t->tile.rows / t->tile.sub_rows * (t->tile.tokens / t->tile.sub_tokens) * lanes;
    struct rig r;
    rig_open(&r, gpu, u);
    const size_t room = (grid + 127) / 128 * 128 * 2 * (size_t)((cols + 63) / 64 * 64);
    struct gpu_buffer halves = harness_buffer(gpu, NULL, room),
                      factors = harness_buffer(gpu, NULL, grid * 4);
    struct push_half push = { .cols = cols, .eps = 1e-6f, .vectors = 1 };
    harness_run(gpu, &(struct harness_job){ .module = kernel_module(KERNEL_TO_HALF),
                                            .spec = { 64, u->int8, u->norm },
                                            .n_spec = 3,
                                            .buffers = { &r.ctl, &r.a.x, &r.a.s, &r.a.ss,
                                                         &halves, &factors },
                                            .push = &push,
                                            .groups = { 1, grid, 1 } });
    struct harness_job job = {
        .module = kernel_tile_module(u->format, t->matrix, u->epilogue),
        .spec = { size, t->tile.rows, t->tile.tokens, t->tile.sub_rows,
                  t->tile.sub_tokens, t->tile.depth, size, lanes, u->int8 },
        .n_spec = 9,
        .buffers = { [3] = &halves, [4] = &factors },
        .groups = { (grid + t->tile.tokens - 1) / t->tile.tokens,
                    ((uint32_t)u->shape.rows + t->tile.rows - 1) / t->tile.rows, 1 },
    };
    rig_bind(&r, &job, 5);
    harness_run(gpu, &job);
    int before = test_failures;
    rig_check(&r, tolerances[u->epilogue]);
    if (test_failures != before)
        printf("# %s matrix %d int8 %d epilogue %d norm %d rows %zu cols %zu tokens %u\n",
               quant_format(u->type)->name, t->matrix, u->int8, u->epilogue, u->norm,
               u->shape.rows, u->shape.cols, u->shape.tokens);
    gpu_buffer_close(&halves, gpu);
    gpu_buffer_close(&factors, gpu);
    rig_close(&r);
}

static void run_paths(struct gpu *gpu, struct tiled t)
{
    for (int matrix = 0; matrix <= gpu_info(gpu)->coopmat; matrix++) {
        t.matrix = matrix;
        run_tiled(gpu, &t);
    }
}

/* Steps of 32 and 64 columns in turn, rows and tokens that fill no tile, columns
 * that fill no step. */
static struct tiled format_setup(int f, enum epilogue e)
{
    static const size_t rows[EPILOGUE_COUNT] = { 71, 96, 192 };
    int k = f / 3 + (int)e;
    size_t cols = quant_format(quants[f])->elements;
    if (cols < 128)
        cols = cols == 32 && k % 3 != REF_NORM_HEADS ? 160 : 128;
    return (struct tiled){ .u = { .format = (enum device_format)f,
                                  .type = quants[f],
                                  .int8 = k & 1,
                                  .epilogue = e,
                                  .norm = (enum ref_norm)(k % 3),
                                  .shape = { rows[e], cols, 13 + (uint32_t)f % 5, 18 } },
                           .tile = { e == EPILOGUE_SWIGLU ? 64 : 32, 16, 16, 16,
                                     k & 2 ? 32 : 64 } };
}

/* Every format; the epilogues in turn, with cooperative matrices all. */
static void test_formats(void)
{
    struct gpu *gpu = harness_open();
    REQUIRE(gpu_info(gpu)->f16);
    for (int f = 0; f < FORMAT_COUNT; f++)
        for (int e = 0; e < EPILOGUE_COUNT; e++) {
            struct tiled t = format_setup(f, (enum epilogue)e);
            t.matrix = gpu_info(gpu)->coopmat;
            if (e == f % EPILOGUE_COUNT)
                run_paths(gpu, t);
            else if (t.matrix)
                run_tiled(gpu, &t);
        }
    harness_close(gpu);
}

/* Every shape of tile that tuning may choose, several workgroups each way. */
static void test_shapes(void)
{
    static const struct tile_tuning tiles[] = {
        { 128, 128, 64, 64, 64 }, { 128, 64, 64, 32, 64 }, { 64, 64, 32, 32, 64 },
        { 64, 32, 32, 16, 64 },   { 64, 32, 64, 16, 64 },  { 128, 32, 64, 32, 32 },
    };
    struct gpu *gpu = harness_open();
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        if (tuning_tile_shared(&tiles[i]) > gpu_info(gpu)->shared_bytes)
            continue;
        run_paths(gpu, (struct tiled){ .u = { .format = FORMAT_Q8_0,
                                              .type = QUANT_Q8_0,
                                              .int8 = i & 1,
                                              .epilogue = (enum epilogue)(i % 3),
                                              .norm = REF_NORM_ROW,
                                              .shape = { 192, 160, 32, 32 } },
                                       .tile = tiles[i] });
    }
    harness_close(gpu);
}

static void test_stop_writes_nothing(void)
{
    struct gpu *gpu = harness_open();
    run_paths(gpu, (struct tiled){ .u = { .format = FORMAT_Q4_0,
                                          .type = QUANT_Q4_0,
                                          .int8 = true,
                                          .epilogue = EPILOGUE_RESIDUAL,
                                          .shape = { 64, 128, 0, 17 } },
                                   .tile = { 64, 16, 32, 16, 64 } });
    harness_close(gpu);
}

/* A residual stream of 1e6 and one of 1e-6 beside each other: f16 holds neither,
 * the tokens' own scales do. */
static void test_scale_of_activations(void)
{
    struct gpu *gpu = harness_open();
    struct setup u = { .format = FORMAT_F16,
                       .type = QUANT_F16,
                       .shape = { 32, 64, 3, 3 } };
    struct rig r;
    rig_open(&r, gpu, &u);
    float x[3 * 64], f[3];
    uint16_t h[3 * 64];
    for (int i = 0; i < 3 * 64; i++)
        x[i] = (float)(i % 64 - 20) * (i < 64 ? 1e6f : i < 128 ? 1e-6f : 0);
    struct err err = { "" };
    HARNESS_OK(gpu_upload(gpu, gpu_span_at(&r.a.x, 0, sizeof x), x, &err), &err);
    struct gpu_buffer halves = harness_buffer(gpu, NULL, sizeof h),
                      factors = harness_buffer(gpu, NULL, sizeof f);
    struct push_half push = { .cols = 64, .eps = 1e-6f, .vectors = 1 };
    harness_run(gpu, &(struct harness_job){ .module = kernel_module(KERNEL_TO_HALF),
                                            .spec = { 64, false, REF_NORM_NONE },
                                            .n_spec = 3,
                                            .buffers = { &r.ctl, &r.a.x, &r.a.s, &r.a.ss,
                                                         &halves, &factors },
                                            .push = &push,
                                            .groups = { 1, 3, 1 } });
    harness_read(gpu, &halves, h, sizeof h);
    harness_read(gpu, &factors, f, sizeof f);
    for (int i = 0; i < 3 * 64; i++)
        CHECK(fabsf(quant_f16_to_f32(h[i]) * f[i / 64] - x[i]) <= 1e-3f * fabsf(x[i]));
    gpu_buffer_close(&halves, gpu);
    gpu_buffer_close(&factors, gpu);
    rig_close(&r);
    harness_close(gpu);
}

TEST_MAIN(T(test_formats), T(test_shapes), T(test_stop_writes_nothing),
          T(test_scale_of_activations))
