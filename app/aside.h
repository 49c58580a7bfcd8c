/* aside.h - a few tokens in a session of their own, beside the conversation's: for
 * the time in which nobody waits for the engine.
 * Thread-safety: that of the engine, one thread. */
#ifndef APP_ASIDE_H
#define APP_ASIDE_H

#include "base/err.h"
#include "base/tokens.h"

#include "engine/engine.h"

#include <stdbool.h>

struct aside {
    const struct model *model;
    struct engine *engine;
    const struct tokens *ids; /* the prompt */
    size_t header;            /* where in it the answer's header begins */
    uint32_t max_tokens;
    bool (*stop)(void *arg); /* asked before every small piece of work */
    void *arg;
};

/* The likeliest answer without its reasoning, malloced; empty if there is none, or no
 * end of it before it is stopped or max_tokens are there. Device memory that is taken is
 * given back; what other sessions hold is untouched. -1: there is no room, or the device
 * failed. */
int aside_run(const struct aside *a, char **text, struct err *err);

#endif
