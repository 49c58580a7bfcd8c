/* desk.c - opening and closing in order. */
#include "app/desk.h"

#include "base/mem.h"

#include "app/keep.h"
#include "app/prefix.h"
#include "app/setup.h"
#include "app/signals.h"

#include <stdlib.h>
#include <unistd.h>

enum { KEEP_MS = 10000 /* for the timeline of the last answer */ };
enum { CLOSE_MS = 1500 /* a driver may take longer; nothing is lost then */ };
enum { TIDY_MS = 3000 /* the next program goes on where this one stops */ };

static void desk_setup(struct desk *d)
{
    struct chat_settings base;
    struct buf forced = BUF_INIT;
    env_settings(d->env, &base);
    env_forced(d->env, &forced);
    setup_open(&d->c, &(struct setup_params){ .base = &base,
                                              .presets = &d->env->conf.presets,
                                              .preset = d->env->conf.preset,
                                              .forced = buf_cstr(&forced) });
    settings_release(&base);
    buf_release(&forced);
}

int desk_open(struct desk *d, struct env *env, struct err *err)
{
    struct worker_params params = env_worker_params(env);
    char *root = keep_root();
    *d = (struct desk){ .env = env, .signal_fd = -1 };
    env_log_open(env);
    if (env_store_or_memory(env, &d->store, &d->kept, err) < 0)
        goto failed;
    params.keep_root = d->kept && env->conf.keep_bytes ? root : NULL;
    d->signal_fd = signals_open(err);
    if (d->signal_fd < 0 || worker_open(&d->worker, &params, err) < 0)
        goto failed;
    char *lock_path = d->kept ? env_lock_path(env) : NULL;
    lock_open(&d->lock, lock_path);
    free(lock_path);
    conversation_init(&d->c, d->store, d->worker);
    d->c.log = env->log;
    d->c.lock = d->lock;
    desk_setup(d);
    prefix_open(&d->c, params.keep_root, env->conf.keep_bytes);
    free(root);
    return 0;
failed:
    free(root);
    desk_close(d);
    return -1;
}

void desk_close(struct desk *d)
{
    if (d->worker)
        prefix_wait(&d->c, d->signal_fd, KEEP_MS);
    if (d->worker && !worker_close(d->worker, CLOSE_MS))
        d->env->exit_now = true;
    conversation_release(&d->c);
    if (d->store)
        store_tidy_all(d->store, TIDY_MS, NULL);
    lock_close(d->lock);
    store_close(d->store);
    if (d->signal_fd >= 0)
        signals_close(d->signal_fd);
    *d = (struct desk){ .env = d->env, .signal_fd = -1 };
}

void desk_load(struct desk *d)
{
    struct err err;
    char *path = env_model_path(d->env, &err);
    if (path)
        conversation_load(&d->c, path);
    else
        conversation_no_model(&d->c, err.text);
    free(path);
}

int desk_show(struct desk *d, struct err *err)
{
    const struct options *o = &d->env->opt;
    int64_t id = 0;
    if (o->chat && o->new_chat)
        return err_set(err, "-c and --new exclude each other");
    if (o->chat && o->system)
        return err_set(err, "-s is for new conversations; %s has its own", o->chat);
    if (o->chat && env_chat_id(d->store, o->chat, &id, err) < 0)
        return -1;
    if (!o->chat && !o->new_chat && d->env->conf.start_last &&
        store_chat_last(d->store, &id, err) < 0)
        return -1;
    return conversation_show(&d->c, id, err);
}
