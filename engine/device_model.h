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

#endif
