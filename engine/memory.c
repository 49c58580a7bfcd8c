/* memory.c - how much device memory a model and a timeline take, counted by the
 * same code that allocates it, and whether the device has so much. */
#include "engine/session.h"

#include <stdlib.h>

/* A device like those that large models run on. */
static const struct device_info usual = {
    .kind = "discrete", .subgroup_size = 32, .group_size = 1024, .int64 = true
};

static uint64_t total(const struct model_memory *m)
{
    return m->weights + m->kv + m->state + m->scratch;
}

/* Of an engine that has chosen its tuning and tiles, and a session. */
static struct model_memory plan(struct engine *e, struct session_params params)
{
    struct model_memory out = { .weights = device_weights_allocation(e->model) };
    struct session s = { .engine = e, .params = params };
    session_defaults(&s.params, e);
    session_memory_plan(&s, &out);
    return out;
}

void model_memory(const struct model *m, uint32_t ctx_tokens, struct model_memory *out)
{
    *out = (struct model_memory){ .weights = m->info.weight_bytes };
    if (!m->complete)
        return;
    struct engine e = { .model = m, .tiles = TILES_MATRIX };
    tuning_choose(&e.tune, &usual);
    device_weights_layout(&e.weights, &m->hp);
    *out = plan(&e, (struct session_params){ .ctx_tokens = ctx_tokens });
}

static unsigned long long mib_up(uint64_t bytes)
{
    return (unsigned long long)((bytes + (1 << 20) - 1) >> 20);
}

int memory_check(const struct model_memory *need, uint32_t ctx_tokens,
                 uint64_t free_bytes, const char *device, struct err *err)
{
    const char *hint =
        need->weights > free_bytes
            ? "use a smaller model or quantisation, or another device (see "
              "tern devices)"
            : "use a smaller context (--ctx), or another device (see tern "
              "devices)";
    if (total(need) <= free_bytes)
        return 0;
    return err_set(err,
                   "%llu MiB of device memory are needed (weights %llu, a context of %u "
                   "tokens %llu, working memory %llu), %s has %llu MiB free: %s",
                   mib_up(total(need)), mib_up(need->weights), ctx_tokens,
                   mib_up(need->kv + need->state), mib_up(need->scratch), device,
                   (unsigned long long)(free_bytes >> 20), hint);
}

int engine_check_memory(struct engine *e, uint32_t ctx_tokens, struct err *err)
{
    struct session_params params = { .ctx_tokens = ctx_tokens };
    if (params.ctx_tokens > e->model->hp.ctx_tokens)
        params.ctx_tokens = e->model->hp.ctx_tokens;
    session_defaults(&params, e);
    const struct model_memory need = plan(e, params);
    return memory_check(&need, params.ctx_tokens, gpu_free_bytes(e->gpu),
                        gpu_info(e->gpu)->name, err);
}

int session_check_memory(const struct session *s, struct err *err)
{
    struct model_memory need = { .weights = 0 };
    session_memory_plan(s, &need);
    return memory_check(&need, s->params.ctx_tokens, gpu_free_bytes(s->engine->gpu),
                        gpu_info(s->engine->gpu)->name, err);
}
