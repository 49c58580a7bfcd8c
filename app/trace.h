/* trace.h - which sampled ids made which bytes of an answer, for an answer that
 * ends in the middle of what was sampled.
 * Thread-safety: each trace belongs to one thread. */
#ifndef APP_TRACE_H
#define APP_TRACE_H

#include "base/buf.h"
#include "base/tokens.h"

#include "engine/engine.h"

struct trace {
    struct tokens ids;
    size_t *ends; /* bytes of text after each id, or SIZE_MAX: in between */
    struct buf text;
};

/* An id, and what it added to the answer; whole: no byte of it is held back. */
void trace_add(struct trace *t, int32_t id, const char *text, size_t bytes, bool whole);
/* Appends the ids of an answer that is cut after n bytes: those sampled, as far as
 * they end there, then what is left of the text as the model's tokens. */
void trace_cut(const struct trace *t, const struct model *m, size_t n,
               struct tokens *out);
void trace_release(struct trace *t);

#endif
