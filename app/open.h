/* open.h - model, engine and session opened together, for commands that drive a
 * session themselves.
 * Thread-safety: one thread. */
#ifndef APP_OPEN_H
#define APP_OPEN_H

#include "base/err.h"

#include "engine/engine.h"

#include "app/env.h"

struct opened {
    struct model *model;
    struct engine *engine;   /* NULL without OPEN_SESSION */
    struct session *session; /* NULL without OPEN_SESSION */
};

enum open_what { OPEN_MODEL, OPEN_SESSION };

/* ctx_tokens: room that is needed; the session has more if --ctx says so. On
 * failure everything is closed again. */
int opened_open(struct opened *o, const struct env *env, enum open_what what,
                uint32_t ctx_tokens, struct err *err);
void opened_close(struct opened *o);

#endif
