/* test_gpu.c - the Vulkan layer: choice of device, memory and copies, kernels,
 * recorded lists with their barriers, and each way in which a call can fail. */
#include "tests/engine/harness.h"
#include "tests/engine/test_gpu_spirv.h"

struct affine_push {
    uint32_t n, mul, add;
};

static const struct gpu_module affine = {
    .name = "affine",
    .spirv = spv_affine,
    .spirv_bytes = sizeof spv_affine,
    .n_bindings = 2,
    .writes = 1u << 1,
    .push_bytes = sizeof(struct affine_push),
};

static void test_first_dispatch(void)
{
    struct gpu *gpu = harness_open();
    uint32_t data[1000], got[1000];
    for (uint32_t i = 0; i < 1000; i++)
        data[i] = i * 7919;
    struct gpu_buffer src = harness_buffer(gpu, data, sizeof data);
    struct gpu_buffer dst = harness_buffer(gpu, NULL, sizeof data);
    const struct affine_push push = { 1000, 3, 5 };
    harness_run(gpu, &(struct harness_job){ .module = &affine, .spec = { 64, 11 },
                    .n_spec = 2, .buffers = { &src, &dst }, .push = &push,
                    .groups = { 4, 1, 1 } });
    harness_read(gpu, &dst, got, sizeof got);
    for (uint32_t i = 0; i < 1000; i++)
        CHECK(got[i] == data[i] * 3 + 5 + 11);
    gpu_buffer_close(&src, gpu);
    gpu_buffer_close(&dst, gpu);
    harness_close(gpu);
}

TEST_MAIN(T(test_first_dispatch))
