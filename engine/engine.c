/* engine.c - opening a model on a device. */
#include "engine/device_model.h"

#include "base/mem.h"
#include "engine/selftest.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether most weight bytes are in integer formats, which is where int8
 * activations pay. */
static bool mostly_integer(const struct device_weights *w)
{
    uint64_t integer = 0, all = 0;
    for (uint32_t i = 0; i < w->n_layers; i++) {
        const struct device_layer *ly = &w->layers[i];
        const struct matrix *m[] = { &ly->proj[0].m, &ly->out, &ly->gate_up, &ly->down };
        for (size_t k = 0; k < sizeof m / sizeof *m; k++) {
            all += m[k]->codes.bytes;
            if (m[k]->format >= FORMAT_Q8_0)
                integer += m[k]->codes.bytes;
        }
    }
    return integer * 2 > all;
}

static int choose_math(struct engine *e, enum math_path wanted, struct err *err)
{
    bool can = gpu_info(e->gpu)->int_dot;
    if (wanted == MATH_INT8 && !can)
        return err_set(err, "%s has no integer dot products: use --math float",
                       gpu_info(e->gpu)->name);
    bool useful = mostly_integer(&e->weights);
    e->int8 = wanted == MATH_INT8 || (wanted == MATH_AUTO && can && useful);
    if (wanted == MATH_AUTO && useful && !can)
        snprintf(e->note, sizeof e->note, "float products: no integer dot products here");
    return 0;
}

static int choose_tiles(struct engine *e, const struct engine_params *p, struct err *err)
{
    const struct device_info *d = gpu_info(e->gpu);
    e->tiles = p->tiles;
    if (p->tiles == TILES_AUTO)
        e->tiles =
            d->coopmat && d->f16 && p->math != MATH_FLOAT ? TILES_MATRIX : TILES_NONE;
    else
        e->tune.tile_from = e->tune.expert_tile_from = 2;
    if (p->tiles == TILES_NONE)
        e->tune.delta_many.from = 0;
    if (e->tiles == TILES_MATRIX && !d->coopmat)
        return err_set(err, "%s has no cooperative matrices", d->name);
    if (e->tiles != TILES_NONE && !d->f16)
        return err_set(err, "%s has no f16 arithmetic", d->name);
    return 0;
}

int engine_open(struct engine **out, const struct model *m, const struct engine_params *p,
                struct err *err)
{
    struct engine_params none = { 0 };
    p = p ? p : &none;
    *out = NULL;
    if (!m->info.computes)
        return err_set(err, "%s: %s", m->info.path, m->info.refusal);
    struct engine *e = mem_zalloc(sizeof *e);
    e->model = m;
    struct gpu_params gp = { .device = p->device, .validate = p->validate };
    struct weights_progress progress = { .tell = p->progress, .arg = p->arg };
    if (gpu_open(&e->gpu, &gp, err) < 0)
        goto fail;
    tuning_choose(&e->tune, gpu_info(e->gpu));
    pipelines_init(&e->pipelines, e->gpu);
    device_weights_layout(&e->weights, &m->hp);
    if (choose_tiles(e, p, err) < 0 || engine_check_memory(e, p->ctx_tokens, err) < 0 ||
        device_weights_open(&e->weights, e->gpu, m, &progress, err) < 0 ||
        gguf_check(m->file, true, err) < 0 ||
        choose_math(e, p->math, err) < 0 ||
        (p->tested_folder &&
         selftest_once(e, p->tested_folder, !p->tested_read_only, err) < 0))
        goto fail;
    *out = e;
    return 0;

fail:
    engine_close(e);
    return -1;
}

void engine_close(struct engine *e)
{
    if (!e)
        return;
    if (e->gpu) {
        pipelines_release(&e->pipelines);
        device_weights_close(&e->weights);
    }
    gpu_close(e->gpu);
    free(e);
}

void engine_info(const struct engine *e, struct engine_info *out)
{
    *out =
        (struct engine_info){ .device = *gpu_info(e->gpu),
                              .device_bytes = gpu_allocated(e->gpu),
                              .math = e->int8 ? "int8" : "float",
                              .note = e->note,
                              .validation_errors = gpu_validation_errors(e->gpu, NULL),
                              .lost = gpu_lost(e->gpu) };
}
