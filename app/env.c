/* env.c - options over configuration over what the model says; paths. */
#include "app/env.h"

#include "base/file.h"
#include "base/mem.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note(struct env *env, const char *text)
{
    buf_printf(&env->notices, "%s\n", text);
}

int env_open(struct env *env, int argc, char **argv, uint64_t allowed, struct err *err)
{
    struct err reason;
    *env = (struct env){ 0 };
    int rc = options_parse(&env->opt, argc, argv, allowed, err);
    env->tested_path = file_xdg(FILE_CACHE, "tern/devices", &reason);
    char *path = file_xdg(FILE_CONFIG, "tern/config", &reason);
    if (config_load(&env->conf, path, &env->notices, &reason) < 0)
        note(env, reason.text);
    free(path);
    return rc;
}

void env_log_open(struct env *env)
{
    struct err reason;
    env->log_path = file_xdg(FILE_STATE, "tern/log", &reason);
    if (!env->log_path || log_open(&env->log, env->log_path, &reason) < 0)
        note(env, reason.text);
}

void env_close(struct env *env)
{
    options_release(&env->opt);
    config_release(&env->conf);
    log_close(env->log);
    free(env->log_path);
    free(env->tested_path);
    buf_release(&env->notices);
}

/* ---- store --------------------------------------------------------------- */

int env_store(struct env *env, struct store **out, struct err *err)
{
    *out = NULL;
    if (env->opt.incognito)
        return store_open(out, ":memory:", err);
    char *path = store_default_path(err);
    if (!path)
        return -1;
    int rc = store_open(out, path, err);
    free(path);
    return rc;
}

int env_store_or_memory(struct env *env, struct store **out, bool *kept, struct err *err)
{
    struct err reason;
    *kept = !env->opt.incognito;
    if (env_store(env, out, &reason) == 0)
        return 0;
    *kept = false;
    struct buf notices = BUF_INIT; /* this one first: nothing matters more */
    buf_printf(&notices, "not saved: %s\n%s", reason.text, buf_cstr(&env->notices));
    buf_release(&env->notices);
    env->notices = notices;
    log_line(env->log, LOG_ERROR, "store: %s", reason.text);
    return store_open(out, ":memory:", err);
}

int env_chat_id(struct store *st, const char *name, int64_t *id, struct err *err)
{
    if (!strcmp(name, "last")) {
        if (store_chat_last(st, id, err) < 0)
            return -1;
        return *id ? 0 : err_set(err, "there is no conversation yet");
    }
    if (!parse_int(name, 1, INT64_MAX, id))
        return err_set(err,
                       "\"%s\" is no conversation: give its number from tern ls, or "
                       "last",
                       name);
    return 0;
}

char *env_lock_path(const struct env *env)
{
    return env->opt.incognito ? NULL : file_xdg(FILE_STATE, "tern/open", NULL);
}

/* ---- model --------------------------------------------------------------- */

#define SHIPPED "tern-mini.gguf"

/* The folder that the running program lies in; malloced, NULL if unknown. */
static char *program_folder(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return NULL;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    return slash ? mem_strndup(path, (size_t)(slash - path)) : NULL;
}

static char *shipped_model(void)
{
    static const char *const beside[] = { "/../assets/", "/assets/",
                                          "/../share/tern/assets/" };
    char *folder = program_folder();
    char *found = NULL;
    for (size_t i = 0; !found && i <= sizeof beside / sizeof *beside; i++) {
        struct buf b = BUF_INIT;
        if (i == sizeof beside / sizeof *beside)
            buf_str(&b, TERN_PREFIX "/share/tern/assets/" SHIPPED);
        else if (folder)
            buf_printf(&b, "%s%s" SHIPPED, folder, beside[i]);
        else
            continue;
        char *path = buf_detach(&b);
        if (access(path, R_OK) == 0)
            found = path;
        else
            free(path);
    }
    free(folder);
    return found;
}

char *env_model_path(const struct env *env, struct err *err)
{
    const char *variable = getenv("TERN_MODEL");
    const char *named = env->opt.model            ? env->opt.model
                        : variable && variable[0] ? variable
                                                  : env->conf.model;
    char *path = named ? mem_strdup(named) : shipped_model();
    if (!path)
        err_set(err,
                "there is no model file: name one with -m FILE, in TERN_MODEL, or as "
                "model = FILE in the configuration");
    return path;
}

/* ---- options over configuration -------------------------------------------- */

static int64_t int_first(int64_t option, int64_t config)
{
    return option >= 0 ? option : config;
}

static double real_first(double option, double config)
{
    return option >= 0 ? option : config;
}

static double given_first(double option, double config)
{
    return isnan(option) ? config : option;
}

uint32_t env_ctx_tokens(const struct env *env)
{
    int64_t v = int_first(env->opt.ctx, env->conf.ctx);
    return v > 0 ? (uint32_t)v : 0;
}

struct worker_params env_worker_params(const struct env *env)
{
    struct engine_params p;
    env_engine_params(env, &p);
    return (struct worker_params){ .device = p.device,
                                   .math = p.math,
                                   .validate = p.validate,
                                   .tested_folder = p.tested_folder,
                                   .tested_read_only = p.tested_read_only,
                                   .ctx_tokens = env_ctx_tokens(env) };
}

void env_engine_params(const struct env *env, struct engine_params *p)
{
    int64_t device = int_first(env->opt.device, env->conf.device);
    *p = (struct engine_params){
        .device = device > 0 ? (int)device : 0,
        .math = env->opt.math != MATH_AUTO ? env->opt.math : env->conf.math,
        .ctx_tokens = env_ctx_tokens(env),
        .validate = env->opt.validate,
        .tested_folder = env->tested_path,
        .tested_read_only = env->opt.incognito,
    };
}

void env_settings(const struct env *env, struct chat_settings *s)
{
    const struct options *o = &env->opt;
    const struct config *c = &env->conf;
    const char *system = o->system ? o->system : c->system;
    *s = (struct chat_settings){
        .system = system ? mem_strdup(system) : NULL,
        .thinking = int_first(o->thinking, c->thinking),
        .preserve_thinking = int_first(o->preserve_thinking, c->preserve_thinking),
        .effort = o->effort ? o->effort : c->effort,
        .repeat_penalty = given_first(o->repeat_penalty, c->repeat_penalty),
        .presence_penalty = given_first(o->presence_penalty, c->presence_penalty),
        .frequency_penalty = given_first(o->frequency_penalty, c->frequency_penalty),
        .temperature = real_first(o->temperature, c->temperature),
        .top_p = real_first(o->top_p, c->top_p),
        .min_p = real_first(o->min_p, c->min_p),
        .top_k = int_first(o->top_k, c->top_k),
        .seed = o->seed,
        .has_seed = o->has_seed,
        .max_tokens = o->count > 0 ? (uint32_t)o->count : 0,
        .ctx_tokens = env_ctx_tokens(env),
    };
    stop_list_copy(&s->stops, o->stops.n ? &o->stops : &c->stops);
}

static void number_line(struct buf *lines, const char *key, double v, bool given)
{
    struct buf b = BUF_INIT;
    if (given) {
        buf_printf(&b, "%.17g", v);
        setting_lines_set(lines, key, b.v);
    }
    buf_release(&b);
}

static void choice_line(struct buf *lines, const char *key, int64_t v)
{
    if (v >= 0)
        setting_lines_set(lines, key, v ? "on" : "off");
}

void env_forced(const struct env *env, struct buf *lines)
{
    static const char *const efforts[EFFORT_COUNT] = {
        [EFFORT_LOW] = "low", [EFFORT_MEDIUM] = "medium", [EFFORT_XHIGH] = "high"
    };
    const struct options *o = &env->opt;
    if (o->system)
        setting_lines_set(lines, "system", o->system);
    choice_line(lines, "thinking", o->thinking);
    choice_line(lines, "preserve_thinking", o->preserve_thinking);
    if (o->effort != EFFORT_DEFAULT)
        setting_lines_set(lines, "effort", efforts[o->effort]);
    number_line(lines, "temperature", o->temperature, o->temperature >= 0);
    number_line(lines, "top_p", o->top_p, o->top_p >= 0);
    number_line(lines, "min_p", o->min_p, o->min_p >= 0);
    number_line(lines, "top_k", (double)o->top_k, o->top_k >= 0);
    number_line(lines, "repeat_penalty", o->repeat_penalty, !isnan(o->repeat_penalty));
    number_line(lines, "presence_penalty", o->presence_penalty,
                !isnan(o->presence_penalty));
    number_line(lines, "frequency_penalty", o->frequency_penalty,
                !isnan(o->frequency_penalty));
    number_line(lines, "max_tokens", (double)o->count, o->count > 0);
}
