/* desk.h - everything that a chat needs, opened together: store, worker, lock,
 * signals and the conversation on top of them.
 * Thread-safety: one thread; open it before any other thread starts. */
#ifndef APP_DESK_H
#define APP_DESK_H

#include "base/err.h"

#include "storage/store.h"

#include "app/chat.h"
#include "app/env.h"
#include "app/lock.h"
#include "app/worker.h"

#include <stdbool.h>

struct desk {
    struct env *env;
    struct store *store;
    struct worker *worker;
    struct lock *lock;
    struct conversation c;
    int signal_fd;
    bool kept; /* conversations are stored on disk */
};

/* Where conversations cannot be stored, a notice says so and they are kept in
 * memory. No model is loaded yet. */
int desk_open(struct desk *d, struct env *env, struct err *err);
/* Half-open desks are fine. Sets env->exit_now if the worker does not end. */
void desk_close(struct desk *d);

/* Starts loading the model of options and configuration. Without one the
 * conversation's problem says why. */
void desk_load(struct desk *d);
/* Shows what -c and --new ask for. */
int desk_show(struct desk *d, struct err *err);

#endif
