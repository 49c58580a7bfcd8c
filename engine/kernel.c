/* kernel.c - the kernels' SPIR-V, generated from shaders/, with what each one
 * is bound to. */
#include "engine/kernel.h"

#include "shaders/spirv.h"

#include <xxhash.h>

#define MODULE(spv, n, written, push)                                      \
    {                                                                      \
        .name = #spv, .spirv = spv_##spv, .spirv_bytes = sizeof spv_##spv, \
        .n_bindings = n, .writes = written, .push_bytes = sizeof(push)     \
    }

#define KERNEL_ROW(id, spv, n, written, push) \
    [KERNEL_##id] = MODULE(spv, n, written, push),
static const struct gpu_module kernels[KERNEL_COUNT] = { KERNEL_LIST(KERNEL_ROW) };
#undef KERNEL_ROW

/* Bindings of the epilogues, as engine/kernel.h lists them. */
#define PRODUCTS(spv)                                                             \
    {                                                                             \
        [EPILOGUE_STORE] = MODULE(spv##_store, 7, 1u << 6, struct push_product),  \
        [EPILOGUE_RESIDUAL] =                                                     \
            MODULE(spv##_residual, 12, 15u << 6 | 1u << 11, struct push_product), \
        [EPILOGUE_SWIGLU] = MODULE(spv##_swiglu, 9, 7u << 6, struct push_product) \
    }
#define PRODUCT_ROW(id, name) \
    [FORMAT_##id] = { PRODUCTS(product_##name##_float), PRODUCTS(product_##name##_int8) },
static const struct gpu_module products[FORMAT_COUNT][2][EPILOGUE_COUNT] = {
    DEVICE_FORMATS(PRODUCT_ROW)
};
#undef PRODUCT_ROW

#define EXPERTS(spv)                                                                     \
    {                                                                                    \
        [EPILOGUE_RESIDUAL] = MODULE(spv##_residual, 13, 15u << 6, struct push_product), \
        [EPILOGUE_SWIGLU] = MODULE(spv##_swiglu, 10, 7u << 6, struct push_product)       \
    }
#define EXPERTS_ROW(id, name) \
    [FORMAT_##id] = { EXPERTS(experts_##name##_float), EXPERTS(experts_##name##_int8) },
static const struct gpu_module experts[FORMAT_COUNT][2][EPILOGUE_COUNT] = {
    DEVICE_FORMATS(EXPERTS_ROW)
};
#undef EXPERTS_ROW

#define TILES(spv)                                                                       \
    {                                                                                    \
        [EPILOGUE_STORE] = MODULE(spv##_store, 6, 1u << 5, struct push_product),         \
        [EPILOGUE_RESIDUAL] = MODULE(spv##_residual, 10, 15u << 5, struct push_product), \
        [EPILOGUE_SWIGLU] = MODULE(spv##_swiglu, 8, 7u << 5, struct push_product)        \
    }
#define TILE_ROW(id, name) \
    [FORMAT_##id] = { TILES(tile_plain_##name), TILES(tile_matrix_##name) },
static const struct gpu_module tiles[FORMAT_COUNT][2][EPILOGUE_COUNT] = { DEVICE_FORMATS(
    TILE_ROW) };
#undef TILE_ROW

#define EXPERT_TILES(spv)                                                         \
    {                                                                             \
        [EPILOGUE_STORE] = MODULE(spv##_store, 7, 1u << 5, struct push_product),  \
        [EPILOGUE_SWIGLU] = MODULE(spv##_swiglu, 9, 7u << 5, struct push_product) \
    }
#define EXPERT_TILE_ROW(id, name)                              \
    [FORMAT_##id] = { EXPERT_TILES(tile_plain_experts_##name), \
                      EXPERT_TILES(tile_matrix_experts_##name) },
static const struct gpu_module expert_tiles[FORMAT_COUNT][2][EPILOGUE_COUNT] = {
    DEVICE_FORMATS(EXPERT_TILE_ROW)
};
#undef EXPERT_TILE_ROW

#define EMBED_ROW(id, name) \
    [FORMAT_##id] = MODULE(embed_##name, 8, 15u << 3, struct push_embed),
static const struct gpu_module embeds[FORMAT_COUNT] = { DEVICE_FORMATS(EMBED_ROW) };
#undef EMBED_ROW

const struct gpu_module *kernel_module(enum kernel_id id)
{
    return &kernels[id];
}

const struct gpu_module *kernel_product_module(enum device_format f, bool int8,
                                               enum epilogue e)
{
    return &products[f][int8][e];
}

const struct gpu_module *kernel_experts_module(enum device_format f, bool int8,
                                               enum epilogue e)
{
    return &experts[f][int8][e];
}

const struct gpu_module *kernel_tile_module(enum device_format f, bool matrix,
                                            enum epilogue e)
{
    return &tiles[f][matrix][e];
}

const struct gpu_module *kernel_expert_tile_module(enum device_format f, bool matrix,
                                                   enum epilogue e)
{
    return &expert_tiles[f][matrix][e];
}

const struct gpu_module *kernel_embed_module(enum device_format f)
{
    return &embeds[f];
}

static uint64_t fingerprint_add(uint64_t sum, const struct gpu_module *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum = XXH3_64bits_withSeed(m[i].spirv, m[i].spirv_bytes, sum);
    return sum;
}

uint64_t kernel_fingerprint(void)
{
    uint64_t sum = fingerprint_add(0, kernels, KERNEL_COUNT);
    sum = fingerprint_add(sum, embeds, FORMAT_COUNT);
    for (int f = 0; f < FORMAT_COUNT; f++)
        for (int i = 0; i < 2; i++) {
            sum = fingerprint_add(sum, products[f][i], EPILOGUE_COUNT);
            sum = fingerprint_add(sum, &experts[f][i][EPILOGUE_RESIDUAL], 2);
            sum = fingerprint_add(sum, tiles[f][i], EPILOGUE_COUNT);
        }
    return sum;
}
