/* device_model.h - inside of an engine, for engine/ only: weights, pipelines
 * and tuning of one model on one device. */
#ifndef ENGINE_DEVICE_MODEL_H
#define ENGINE_DEVICE_MODEL_H

#include "engine/pipelines.h"
#include "engine/tune.h"
#include "engine/weights.h"

struct engine {
    const struct model *model;
    struct gpu *gpu;
    struct pipelines pipelines;
    struct tuning tune;
    struct device_weights weights;
    enum tile_path tiles;   /* of a chunk's products; not TILES_AUTO */
    bool int8;              /* int8 activations; false: float path */
    char note[256];
};

/* Whether free_bytes hold it; if not, -1 with all the numbers (memory.c). */
int memory_check(const struct model_memory *need, uint32_t ctx_tokens, uint64_t free_bytes,
                 const char *device, struct err *err);
/* Whether the device has room for weights and a session; tuning and tiles are
 * chosen, nothing is uploaded yet. */
int engine_check_memory(struct engine *e, uint32_t ctx_tokens, struct err *err);

#endif
