/* worker.h - the inference thread: sole owner of model, engine and session.
 * Requests go in, events come out, both without shared state; only model_*
 * functions may also be called from outside, on the model that EVENT_READY
 * lends.
 * Thread-safety: one thread calls these functions. */
#ifndef APP_WORKER_H
#define APP_WORKER_H

#include "base/err.h"
#include "base/record.h"
#include "base/tokens.h"

#include "engine/engine.h"

#include "app/stop.h"

#include <stdbool.h>
#include <stdint.h>

struct worker;

struct worker_params {
    int device; /* as in engine_params */
    enum math_path math;
    bool validate;
    uint32_t ctx_tokens;       /* 0: as session_open chooses; at most the model's */
    const char *keep_root;     /* folder of kept timelines (keep.h), NULL: none are */
    const char *tested_folder; /* as in engine_params; both must outlive the worker */
    bool tested_read_only;
};

struct generation {
    struct tokens ids; /* the prompt; worker_generate takes it over */
    size_t header;     /* where in it the answer's header begins */
    bool begun[2];     /* answer and reasoning have text already, which goes on */
    struct tokens_marks {
        size_t *v, n; /* where to keep state snapshots; taken over */
    } marks;
    struct sampler_params sampler;
    struct stop_list stops; /* texts that end the answer; taken over */
    int64_t keep_id;        /* the conversation, whose timeline is read from disk before
                             * the answer; 0: it is not */
    uint32_t max_tokens;    /* 0: as many as the context holds */
    uint64_t asked_ns;      /* clock_ns of the user's request */
};

enum worker_event_kind {
    EVENT_LOADING,  /* done, total: bytes */
    EVENT_READY,    /* model, engine, ctx_tokens */
    EVENT_UNUSABLE, /* text: why there is no model now */
    EVENT_PREFILL,  /* done, total: tokens to evaluate; reused */
    EVENT_TOKENS,   /* ids; text and thinking as far as they are whole; stats so far */
    EVENT_NOTE,     /* text: for the log */
    EVENT_KEPT,     /* keep_id; written, NULL: there was nothing to write */
    EVENT_RESTORED, /* keep_id; done: tokens that came from disk, 0: none did, but
                     * files were removed */
    EVENT_MEASURED, /* keep_id: the id that was given; total: tokens; reused: those
                     * that need not be evaluated */
    EVENT_SAID,     /* keep_id: the id that was given; text, empty: nothing came of it */
    EVENT_DONE,     /* state, stats; text: the reason if state is FAILED; at_stop: a
                     * stop text ended it, and ids are what the sampled ones become */
};

struct worker_event {
    enum worker_event_kind kind;
    enum message_state state;
    bool at_stop;
    uint64_t done, total, reused;
    int64_t keep_id;
    struct session_write_result *written; /* malloced */
    const struct model *model;            /* valid until the next worker_load or close */
    struct engine_info *engine;           /* malloced */
    uint32_t ctx_tokens, ctx_used;
    uint64_t snapshot_bytes;
    struct tokens ids;
    char *text, *thinking; /* malloced or NULL; UTF-8 without NUL */
    size_t text_bytes, thinking_bytes;
    struct message_stats stats;
};

int worker_open(struct worker **out, const struct worker_params *p, struct err *err);
/* Ends what is going on and the thread; a timeline that is being written gets some
 * seconds more. False if the thread does not come back within the time (a driver
 * call that takes long): then it still runs and the process must leave by _exit.
 * NULL is fine. */
bool worker_close(struct worker *w, int timeout_ms);

/* Loads a model in place of the one there is; ends in EVENT_READY or
 * EVENT_UNUSABLE. The model lent before is invalid from now on. */
void worker_load(struct worker *w, const char *path);
/* Starts an answer; ends in EVENT_DONE. Only while a model is ready and no other
 * answer is running. */
void worker_generate(struct worker *w, struct generation *g);
/* Fetches the timeline of a conversation from disk, as far as it agrees with the
 * ids (taken over), for a worker_generate that may follow. */
void worker_restore(struct worker *w, int64_t keep_id, struct tokens *ids);
/* Makes the timeline equal these ids (taken over) as far as time allows: a
 * worker_generate or worker_load that comes meanwhile stops it. */
void worker_settle(struct worker *w, struct tokens *ids);
/* A short answer to a prompt (ids, taken over) that has nothing to do with a
 * conversation's timeline, if there is room on the device for it; ends in EVENT_SAID.
 * Any request that comes meanwhile stops it. */
void worker_say(struct worker *w, int64_t id, struct tokens *ids, size_t header,
                uint32_t max_tokens);
/* Finds how much of a prompt (ids, taken over) is evaluated; ends in EVENT_MEASURED. */
void worker_measure(struct worker *w, int64_t id, struct tokens *ids);
/* Writes the timeline of the conversation that was answered last to disk; ends in
 * EVENT_KEPT. A worker_generate or worker_load that comes meanwhile stops it. */
void worker_keep(struct worker *w, int64_t keep_id);
void worker_keep_stop(struct worker *w);
/* Removes what is kept of a conversation. */
void worker_forget(struct worker *w, int64_t keep_id);
/* Makes the running answer end soon, within a prefill chunk or one submit. */
void worker_stop(struct worker *w);

/* To poll for events. */
int worker_fd(const struct worker *w);
/* The oldest event, without waiting; release it. False when there is none. */
bool worker_next(struct worker *w, struct worker_event *e);
void worker_event_release(struct worker_event *e);

#endif
