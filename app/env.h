/* env.h - what all commands share: options, configuration, log, and how the
 * store, the model file and a conversation are found.
 * Thread-safety: one thread. */
#ifndef APP_ENV_H
#define APP_ENV_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"

#include "storage/store.h"

#include "app/chat.h"
#include "app/config.h"
#include "app/options.h"
#include "app/worker.h"

#include <stdbool.h>
#include <stdint.h>

struct env {
    struct options opt;
    struct config conf;
    struct log *log;    /* may be NULL */
    char *log_path;     /* may be NULL */
    char *tested_path;  /* folder that remembers tested devices, may be NULL */
    struct buf notices; /* lines for the user, each with a newline */
    bool exit_now;      /* leave by _exit: a thread did not come back */
};

/* Options of one command and the configuration. A wrong option sets err and
 * returns -1; trouble with the configuration only adds to notices. */
int env_open(struct env *env, int argc, char **argv, uint64_t allowed, struct err *err);
void env_close(struct env *env);
/* Opens the log; without one, there is a notice. */
void env_log_open(struct env *env);

/* The user's conversations. */
int env_store(struct env *env, struct store **out, struct err *err);
/* The same for programs that go on without: where the file cannot be used, an
 * empty store in memory and a notice. *kept: whether anything will be kept. */
int env_store_or_memory(struct env *env, struct store **out, bool *kept, struct err *err);

/* The model file: -m, TERN_MODEL, the configuration, or the shipped one beside
 * the program or under the install prefix. malloced; NULL with the reason. */
char *env_model_path(const struct env *env, struct err *err);
struct worker_params env_worker_params(const struct env *env);
void env_engine_params(const struct env *env, struct engine_params *p);
uint32_t env_ctx_tokens(const struct env *env);
/* Sampling, thinking, limits and system prompt into c->settings. */
void env_settings(const struct env *env, struct chat_settings *s);
/* What the command line says of these, as lines (settings.h). */
void env_forced(const struct env *env, struct buf *lines);

/* A conversation as the user names it: a number or "last". */
int env_chat_id(struct store *st, const char *name, int64_t *id, struct err *err);
/* The lock file of conversations, NULL for none; malloced. */
char *env_lock_path(const struct env *env);

#endif
