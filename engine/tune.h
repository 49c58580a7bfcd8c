/* tune.h - workgroup shapes and limits by kind of device: one table, and the
 * specialization constants that follow from it. Every value here changes
 * speed, none changes results beyond rounding. */
#ifndef ENGINE_TUNE_H
#define ENGINE_TUNE_H

#include "engine/engine.h"
#include "engine/kernel.h"

#include <stdbool.h>
#include <stdint.h>

/* Shape of the product kernels (engine/kernel.h). */
struct product_tuning {
    uint32_t size;   /* workgroup */
    uint32_t lanes;  /* invocations that share a row */
    uint32_t batch;  /* rows an invocation works on at once */
    uint32_t tokens; /* a workgroup */
};

enum { TUNING_TILES = 4 };

/* Shape of the tile kernels: rows and tokens of a workgroup, of a subgroup, and
 * the columns of a step. */
struct tile_tuning {
    uint32_t rows, tokens, sub_rows, sub_tokens, depth;
};

/* The chunked delta rule (engine/delta_chunk.h). */
struct delta_tuning {
    uint32_t from;       /* tokens of a pass from which on it is used; 0: never */
    uint32_t chunk;      /* tokens of a sub-chunk: 32 or 64 */
    uint32_t strips;     /* of 8 tokens, a workgroup of the convolution: 1, 2, 4 */
    uint32_t solve_size; /* workgroup, at least chunk */
    uint32_t rows;       /* of an invocation's tile of four columns: 4 or 8, at
                          * least chunk / 16 */
    uint32_t ahead;      /* rows of an operand loaded ahead: 4 or 8 */
    uint32_t emit_size;  /* workgroup */
    uint32_t columns;    /* value columns of a head that a workgroup of the scan
                          * takes: a power of two from 4 to 32 */
    uint32_t heads;      /* v heads that it takes */
    uint32_t units;      /* compute units to share the scan among: fewer columns
                          * and heads where that suits them; 0: as above */
    uint32_t most_shared, most_size; /* bytes and invocations that the device
                                      * allows a workgroup; 0: enough */
};

struct tuning {
    struct product_tuning product_one[EPILOGUE_COUNT]; /* one token */
    struct product_tuning product_many;                /* a chunk */
    struct product_tuning router_one;  /* of one token: few rows */
    uint32_t split_groups; /* workgroups that a product of one token is split into, at
                            * least, if its rows alone make fewer; 0: never */
    struct product_tuning product_experts;           /* both; tokens is 1 */
    struct tile_tuning tile[TUNING_TILES]; /* the most efficient first */
    uint32_t tile_groups;       /* workgroups that keep the device busy */
    uint32_t tile_from;         /* tokens of a pass from which tiles pay */
    struct tile_tuning expert_tile;
    uint32_t expert_tile_from;  /* the same for experts, whose tokens are spread */
    uint32_t half_size;         /* workgroup that turns a token's activations to f16 */
    uint32_t embed_size, sample_size, select_size;   /* workgroups */
    uint32_t lanes;           /* most neighbouring invocations that share a vector; a
                               * power of two, at most the subgroup size */
    uint32_t delta_columns;   /* value columns a workgroup: 32, 64 or 128 */
    uint32_t delta_parts;     /* invocations that share a column */
    uint32_t delta_each;      /* columns an invocation holds at once */
    uint32_t delta_passes;    /* times it takes the next columns; 1: the state
                               * stays in registers for a whole pass */
    bool delta_wide;        /* loads of eight floats, where the device can */
    struct delta_tuning delta_many; /* a chunk of tokens */
    uint32_t attend_size;     /* workgroup */
    uint32_t attend_floats;   /* of queries that an invocation holds */
    uint32_t attend_batch;    /* positions a round */
    bool attend_ahead;        /* rounds are loaded one ahead */
    uint32_t merge_size;      /* workgroup, where the head is not larger */
    uint32_t chunk_tokens;    /* prefill tokens a submit */
    uint32_t prefill_splits;  /* of the positions, for a chunk */
    uint32_t split_positions; /* decode: positions worth a split of their own */
    uint32_t max_splits;
    uint32_t max_rounds; /* of all loops of an invocation; 0: no limit */
};

/* The row for this device, with the subgroup size filled in. */
void tuning_choose(struct tuning *t, const struct device_info *info);

/* Specialization constants of a kernel into spec (room for 8); returns how
 * many. head_dim is a multiple of 64; queries: query heads a kv head. */
enum { TUNING_SPEC = 8 };
uint32_t tuning_delta(const struct tuning *t, bool int8, uint32_t spec[TUNING_SPEC]);
uint32_t tuning_qk(const struct tuning *t, uint32_t head_dim, uint32_t spec[TUNING_SPEC]);
uint32_t tuning_attend(const struct tuning *t, uint32_t head_dim, uint32_t queries,
                       uint32_t spec[TUNING_SPEC]);
uint32_t tuning_merge(const struct tuning *t, bool int8, uint32_t head_dim,
                      uint32_t spec[TUNING_SPEC]);

/* The tile shape for a matrix and a pass, and its constants 0 to 7; the last 8
 * is the caller's. */
const struct tile_tuning *tuning_tile(const struct tuning *t, uint32_t rows,
                                      uint32_t tokens, uint32_t subgroup_size,
                                      uint32_t spec[TUNING_SPEC]);

/* Constants 0 to 7 of a tile shape. */
void tuning_tile_spec(const struct tile_tuning *t, uint32_t subgroup_size,
                      uint32_t spec[TUNING_SPEC]);
/* Bytes of workgroup memory that a tile takes. */
uint32_t tuning_tile_shared(const struct tile_tuning *t);

/* Most tokens of one pass, and most positions of one split, for which no
 * invocation makes more than max_rounds loop rounds. */
uint32_t tuning_max_tokens(const struct tuning *t);
uint32_t tuning_max_positions(const struct tuning *t, uint32_t head_dim,
                              uint32_t queries);

#endif
