/* open.c - opening in order, closing in reverse. */
#include "app/open.h"

#include <stdlib.h>

static int session_start(struct opened *o, const struct env *env, uint32_t ctx_tokens,
                         struct err *err)
{
    const struct model_info *info = model_info(o->model);
    uint32_t wanted = env_ctx_tokens(env);
    struct engine_params p;
    env_engine_params(env, &p);
    if (!info->computes)
        return err_set(err, "%s: %s", info->path, info->refusal);
    if (wanted > info->ctx_tokens)
        wanted = info->ctx_tokens;
    if (ctx_tokens < wanted)
        ctx_tokens = wanted;
    if (ctx_tokens > info->ctx_tokens)
        return err_set(err, "%u tokens are asked for, and %s was made for %u", ctx_tokens,
                       info->path, info->ctx_tokens);
    const struct session_params s = { .ctx_tokens = ctx_tokens };
    if (engine_open(&o->engine, o->model, &p, err) < 0)
        return -1;
    return session_open(&o->session, o->engine, &s, err);
}

int opened_open(struct opened *o, const struct env *env, enum open_what what,
                uint32_t ctx_tokens, struct err *err)
{
    *o = (struct opened){ 0 };
    char *path = env_model_path(env, err);
    if (!path)
        return -1;
    int rc = model_open(&o->model, path, err);
    if (rc == 0 && what == OPEN_SESSION)
        rc = session_start(o, env, ctx_tokens, err);
    if (rc < 0)
        opened_close(o);
    free(path);
    return rc;
}

void opened_close(struct opened *o)
{
    session_close(o->session);
    engine_close(o->engine);
    model_close(o->model);
    *o = (struct opened){ 0 };
}
