/* tune.c - the table, and how the attention kernels adapt to a model's head. */
#include "engine/tune.h"

#include "shaders/push.h"

#include <string.h>

enum device_kind { DEVICE_GPU, DEVICE_CPU, DEVICE_KINDS };

static const struct tuning table[DEVICE_KINDS] = {
    /* Discrete and integrated GPUs. Delta: 32 columns give 4 workgroups a v
     * head, enough for every compute unit from 32 heads on; 8 invocations a
     * column read 128 bytes in a row and hold 16 floats of state each.
     * Attention: 4 subgroups of 32 meet through 12 KiB; two positions a round,
     * loaded a round ahead, hide more latency than four do, and 16 positions
     * are worth a split of their own as long as units are idle. Products of one
     * token: an epilogue's block of 32 or 64 rows in one sweep, because narrow
     * matrices have fewer blocks than the device has compute units.
     * Delta rule for many tokens: sub-chunks of 64 cost some more arithmetic than
     * of 32, but make twice as many tiles of 4 by 4, which a device this wide
     * needs to hide its loads; 288 is a tile of each triangle an invocation. */
    [DEVICE_GPU] = {
        .product_one = { [EPILOGUE_STORE] = { .size = 256, .lanes = 32, .batch = 4, .tokens = 1 },
                         [EPILOGUE_RESIDUAL] = { .size = 256, .lanes = 16, .batch = 2, .tokens = 1 },
                         [EPILOGUE_SWIGLU] = { .size = 256, .lanes = 16, .batch = 4, .tokens = 1 } },
        .router_one = { .size = 128, .lanes = 32, .batch = 1, .tokens = 1 },
        .split_groups = 400,
        .product_many = { .size = 128, .lanes = 32, .batch = 2, .tokens = 8 },
        .product_experts = { .size = 512, .lanes = 32, .batch = 2, .tokens = 1 },
        .tile = { { 128, 128, 64, 64, 64 }, { 128, 64, 64, 32, 64 }, { 64, 64, 32, 32, 64 },
                  { 64, 32, 32, 16, 64 } },
        .tile_groups = 120, .tile_from = 9, .half_size = 256,
        .expert_tile = { 128, 32, 32, 32, 64 }, .expert_tile_from = 64,
        .embed_size = 256, .sample_size = 1024, .select_size = 256, .lanes = 32,
        .delta_columns = 32, .delta_parts = 8, .delta_each = 1, .delta_passes = 1,
        .delta_many = { .from = 32, .chunk = 64, .strips = 4, .solve_size = 288,
                        .rows = 4, .ahead = 8, .emit_size = 256, .columns = 32,
                        .heads = 4, .units = 132 },
        .attend_size = 128, .attend_floats = 64, .attend_batch = 2, .attend_ahead = true,
        .merge_size = 256,
        .chunk_tokens = 512, .prefill_splits = 4, .split_positions = 16,
        .max_splits = 64,
    },
    /* CPU devices: a subgroup of 8 is a vector register and runs on one core;
     * each invocation's load is an instruction of its own, a workgroup costs
     * about a microsecond, and a dispatch 14. So few large workgroups: one a v
     * head. A masked branch costs as much as one taken. Mesa before 23 silently
     * ends an invocation's loops after 65,535 rounds, all loops together. */
    [DEVICE_CPU] = {
        .product_one = { [EPILOGUE_STORE] = { .size = 32, .lanes = 1, .batch = 4, .tokens = 1 },
                         [EPILOGUE_RESIDUAL] = { .size = 32, .lanes = 1, .batch = 4, .tokens = 1 },
                         [EPILOGUE_SWIGLU] = { .size = 32, .lanes = 1, .batch = 4, .tokens = 1 } },
        .router_one = { .size = 32, .lanes = 1, .batch = 4, .tokens = 1 },
        .product_many = { .size = 32, .lanes = 1, .batch = 4, .tokens = 4 },
        .product_experts = { .size = 32, .lanes = 1, .batch = 4, .tokens = 1 },
        .tile = { { 64, 32, 64, 16, 64 }, { 64, 32, 64, 16, 64 }, { 64, 32, 64, 16, 64 },
                  { 64, 32, 64, 16, 64 } },
        .tile_groups = 2, .tile_from = UINT32_MAX, .half_size = 32,
        .expert_tile = { 64, 16, 64, 16, 64 }, .expert_tile_from = UINT32_MAX,
        .embed_size = 64, .sample_size = 16, .select_size = 16, .lanes = 8,
        .delta_columns = 128, .delta_parts = 8, .delta_each = 8, .delta_passes = 16,
        .delta_wide = true,
        .delta_many = { .from = 0, .chunk = 32, .strips = 1, .solve_size = 32,
                        .rows = 8, .ahead = 4, .emit_size = 64, .columns = 32,
                        .heads = 1 },
        .attend_size = 8, .attend_floats = 128, .attend_batch = 2, .merge_size = 8,
        .chunk_tokens = 64, .prefill_splits = 1, .split_positions = 32,
        .max_splits = 4, .max_rounds = 65000,
    },
};

static void product_fit(struct product_tuning *p, uint32_t lanes, uint32_t group_size)
{
    if (p->lanes > lanes)
        p->lanes = lanes;
    while (p->size > group_size)
        p->size /= 2;
}

uint32_t tuning_tile_shared(const struct tile_tuning *t)
{
    return (t->rows + t->tokens) * (t->depth + 8) * 2 + 16 * (t->rows + 4) * 4;
}

static void tile_fit(struct tile_tuning *t, const struct device_info *info)
{
    if (tuning_tile_shared(t) > info->shared_bytes)
        t->depth = 32;
    while (t->rows / t->sub_rows * (t->tokens / t->sub_tokens) * info->subgroup_size >
           info->group_size) {
        if (t->tokens > t->sub_tokens)
            t->tokens /= 2;
        else
            t->rows /= 2;
    }
}

static void delta_fit(struct delta_tuning *t, const struct device_info *info)
{
    t->most_shared = info->shared_bytes;
    t->most_size = info->group_size;
    if (t->most_shared < 32768)
        t->chunk = 32; /* what the solve step of 64 needs is more than 16 KiB */
    if (t->solve_size > t->most_size)
        t->solve_size = t->most_size;
    if (t->emit_size > t->most_size)
        t->emit_size = t->most_size;
}

void tuning_choose(struct tuning *t, const struct device_info *info)
{
    *t = table[strcmp(info->kind, "cpu") == 0 ? DEVICE_CPU : DEVICE_GPU];
    /* Largest power of two that the subgroup holds. */
    uint32_t lanes = 8;
    while (lanes * 2 <= info->subgroup_size && lanes < t->lanes)
        lanes *= 2;
    t->lanes = lanes;
    if (t->delta_wide && !info->int64) {
        t->delta_wide = false;
        t->delta_passes = 1; /* moving the state is dearer then: keep it */
    }
    delta_fit(&t->delta_many, info);
    for (int e = 0; e < EPILOGUE_COUNT; e++)
        product_fit(&t->product_one[e], lanes, info->group_size);
    product_fit(&t->product_many, lanes, info->group_size);
    product_fit(&t->router_one, lanes, info->group_size);
    product_fit(&t->product_experts, lanes, info->group_size);
    for (int i = 0; i < TUNING_TILES; i++)
        tile_fit(&t->tile[i], info);
    tile_fit(&t->expert_tile, info);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t tuning_delta(const struct tuning *t, bool int8, uint32_t spec[TUNING_SPEC])
{
    uint32_t runs = t->delta_columns / t->delta_passes / t->delta_each;
    memcpy(spec,
           (uint32_t[]){ runs * t->delta_parts, int8, t->delta_columns, t->delta_parts,
                         t->delta_each, t->delta_passes },
           6 * sizeof *spec);
    return 6;
}

/* Invocations that share a head's dims, eight dims at a time. */
static uint32_t head_lanes(const struct tuning *t, uint32_t head_dim)
{
    uint32_t lanes = t->lanes;
    while (head_dim % (8 * lanes))
        lanes /= 2;
    return lanes;
}

uint32_t tuning_qk(const struct tuning *t, uint32_t head_dim, uint32_t spec[TUNING_SPEC])
{
    uint32_t lanes = head_lanes(t, head_dim);
    memcpy(spec, (uint32_t[]){ lanes, head_dim, lanes }, 3 * sizeof *spec);
    return 3;
}

/* Query heads worked on at a time: as many as fit, a divisor of all. */
static uint32_t heads_at_once(const struct tuning *t, uint32_t head_dim, uint32_t queries)
{
    uint32_t fit = t->attend_floats / (head_dim / head_lanes(t, head_dim));
    uint32_t heads = fit < 1 ? 1 : smaller(fit, queries);
    while (queries % heads)
        heads--;
    return heads;
}

uint32_t tuning_attend(const struct tuning *t, uint32_t head_dim, uint32_t queries,
                       uint32_t spec[TUNING_SPEC])
{
    uint32_t lanes = head_lanes(t, head_dim);
    uint32_t heads = heads_at_once(t, head_dim, queries);
    uint32_t streams = t->attend_size / lanes;
    /* Half of the streams hand their sums over in 15 KiB of workgroup memory. */
    while (streams > 1 && streams / 2 * heads * head_dim > 15 * 256)
        streams /= 2;
    memcpy(spec,
           (uint32_t[]){ lanes * streams, head_dim, queries, lanes, streams, heads,
                         t->attend_batch, t->attend_ahead },
           8 * sizeof *spec);
    return 8;
}

uint32_t tuning_merge(const struct tuning *t, bool int8, uint32_t head_dim,
                      uint32_t spec[TUNING_SPEC])
{
    uint32_t parts = t->merge_size / (head_dim / 4);
    parts = parts < 1 ? 1 : smaller(parts, 8);
    memcpy(spec, (uint32_t[]){ parts * (head_dim / 4), int8, head_dim, parts },
           4 * sizeof *spec);
    return 4;
}

uint32_t tuning_max_tokens(const struct tuning *t)
{
    if (!t->max_rounds)
        return CTL_MAX_TOK;
    /* Rounds of the delta kernel per token, at most: of the convolution (its
     * items are channel quads), the gates, the scalars, the steps, the results,
     * and as many again for the loops around those of a short tile. */
    uint32_t group = t->delta_columns / t->delta_passes / t->delta_each * t->delta_parts;
    uint32_t quads = 2 * STATE_DIM / 4 + t->delta_columns / 4;
    uint32_t rounds = quads / group + 2 * t->delta_columns / 4 / group + 8 / group +
                      t->delta_passes + 5;
    return smaller(CTL_MAX_TOK, t->max_rounds / (2 * rounds));
}

uint32_t tuning_max_positions(const struct tuning *t, uint32_t head_dim, uint32_t queries)
{
    if (!t->max_rounds)
        return UINT32_MAX;
    uint32_t spec[TUNING_SPEC];
    tuning_attend(t, head_dim, queries, spec);
    uint32_t sweeps = queries / spec[5];
    return (t->max_rounds / sweeps - 64) * spec[4] * spec[6];
}

void tuning_tile_spec(const struct tile_tuning *t, uint32_t subgroup_size,
                      uint32_t spec[TUNING_SPEC])
{
    uint32_t size = t->rows / t->sub_rows * (t->tokens / t->sub_tokens) * subgroup_size;
    memcpy(spec,
           (uint32_t[]){ size, t->rows, t->tokens, t->sub_rows, t->sub_tokens, t->depth,
                         size, subgroup_size },
           8 * sizeof *spec);
}

const struct tile_tuning *tuning_tile(const struct tuning *t, uint32_t rows,
                                      uint32_t tokens, uint32_t subgroup_size,
                                      uint32_t spec[TUNING_SPEC])
{
    const struct tile_tuning *tile = t->tile;
    for (int i = 1; i < TUNING_TILES; i++) {
        uint64_t groups = (uint64_t)((rows + tile->rows - 1) / tile->rows) *
                          ((tokens + tile->tokens - 1) / tile->tokens);
        if (groups >= t->tile_groups && tokens > tile->tokens / 2)
            break;
        tile = &t->tile[i];
    }
    tuning_tile_spec(tile, subgroup_size, spec);
    return tile;
}
