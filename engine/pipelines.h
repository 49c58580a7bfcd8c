/* pipelines.h - compute pipelines by module and specialization, built once and
 * kept for the engine's life. */
#ifndef ENGINE_PIPELINES_H
#define ENGINE_PIPELINES_H

#include "engine/gpu.h"

struct pipelines {
    struct gpu *gpu;
    struct pipeline **v; /* pointers to kernels stay valid */
    uint32_t n;
};

void pipelines_init(struct pipelines *p, struct gpu *gpu);
void pipelines_release(struct pipelines *p);
/* The kernel of a module with these specialization constants, built at its
 * first use; NULL with the reason in err. */
const struct gpu_kernel *pipelines_get(struct pipelines *p, const struct gpu_module *m,
                                       const uint32_t *spec, uint32_t n_spec,
                                       struct err *err);

#endif
