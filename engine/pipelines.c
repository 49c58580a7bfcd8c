/* pipelines.c - a short list, searched from the front: a model needs about
 * twenty pipelines, and looks them up only while recording. */
#include "engine/pipelines.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct pipeline {
    struct gpu_kernel kernel;
    uint32_t spec[GPU_MAX_SPEC], n_spec;
};

void pipelines_init(struct pipelines *p, struct gpu *gpu)
{
    *p = (struct pipelines){ .gpu = gpu };
}

void pipelines_release(struct pipelines *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        gpu_kernel_close(&p->v[i]->kernel, p->gpu);
        free(p->v[i]);
    }
    free(p->v);
    *p = (struct pipelines){ 0 };
}

const struct gpu_kernel *pipelines_get(struct pipelines *p, const struct gpu_module *m,
                                       const uint32_t *spec, uint32_t n_spec,
                                       struct err *err)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct pipeline *l = p->v[i];
        if (l->kernel.module == m && l->n_spec == n_spec &&
            !memcmp(l->spec, spec, n_spec * sizeof *spec))
            return &l->kernel;
    }
    struct pipeline *made = mem_zalloc(sizeof *made);
    made->n_spec = n_spec;
    memcpy(made->spec, spec, n_spec * sizeof *spec);
    if (gpu_kernel_open(&made->kernel, p->gpu, m, spec, n_spec, err) < 0) {
        free(made);
        return NULL;
    }
    p->v = mem_regrow(p->v, p->n + 1, sizeof(void *));
    p->v[p->n++] = made;
    return &made->kernel;
}
