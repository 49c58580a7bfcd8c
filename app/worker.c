/* worker.c - the inference thread.
 * Invariants: session is NULL unless engine is set, engine NULL unless model is.
 * After a failed generation the session is dropped; the next request opens a
 * new one, and if that fails too, a new engine: a lost device costs one answer.
 * Every generation ends in exactly one EVENT_DONE, every load in one
 * EVENT_READY or EVENT_UNUSABLE, unless the mailboxes are shut. */
#include "app/worker.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mailbox.h"
#include "base/mem.h"

#include "app/aside.h"
#include "app/keep.h"
#include "app/split.h"
#include "app/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUESTS = 8, EVENTS = 256 };
enum { MAX_STEPS = 8 };
#define SUBMIT_SECONDS 0.05 /* of one submit at most: the screen is to flow */
#define PROGRESS_NS    UINT64_C(30000000)
enum { WRITE_MS = 10000 /* that the end of the program waits for a timeline */ };

struct request {
    char *load_path;               /* malloced: load this model */
    struct generation *generation; /* malloced: else, generate */
    struct generation *restore;    /* malloced: else, fetch that timeline */
    struct generation *settle;     /* malloced: else, make the timeline this */
    struct generation *measure;    /* malloced: else, tell what is evaluated of it */
    struct generation *aside;      /* malloced: else, answer it beside the timeline */
    int64_t write_id;              /* else, write the timeline of this */
    int64_t forget_id;             /* else, remove what is kept of this */
};

struct worker {
    struct worker_params params;
    char *keep_root;
    struct mailbox *requests, *events;
    atomic_bool stop; /* ends the running generation */
    atomic_bool quit;
    atomic_bool waiting; /* a request is, for which a writing gives way */
    atomic_bool writing; /* a timeline, to disk */
    atomic_uint pending; /* requests that were not begun */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards finished */
    pthread_cond_t ended;
    bool finished;

    /* The thread's own. */
    struct model *model;
    struct engine *engine;
    struct session *session;
    int64_t timeline_id;  /* whose timeline the session holds, 0: nobody's */
    uint64_t progress_ns; /* when progress was last reported */
    uint64_t n_tokens;    /* of the running prompt */
};

/* ---- loading ------------------------------------------------------------- */

/* Progress is worth reporting now and then only, and never worth waiting. */
static void progress_post(struct worker *w, const struct worker_event *e)
{
    uint64_t now = clock_ns();
    if (e->done < e->total && now - w->progress_ns < PROGRESS_NS)
        return;
    w->progress_ns = now;
    mailbox_try_post(w->events, e);
}

static void load_progress(void *arg, uint64_t done, uint64_t total)
{
    progress_post(arg, &(struct worker_event){
                           .kind = EVENT_LOADING, .done = done, .total = total });
}

static void engine_drop(struct worker *w)
{
    session_close(w->session);
    w->session = NULL;
    engine_close(w->engine);
    w->engine = NULL;
}

static int engine_start(struct worker *w, struct err *err)
{
    const struct engine_params p = {
        .device = w->params.device,
        .math = w->params.math,
        .ctx_tokens = w->params.ctx_tokens,
        .validate = w->params.validate,
        .tested_folder = w->params.tested_folder,
        .tested_read_only = w->params.tested_read_only,
        .progress = load_progress,
        .arg = w,
    };
    return engine_open(&w->engine, w->model, &p, err);
}

static int session_start(struct worker *w, struct err *err)
{
    uint32_t wanted = w->params.ctx_tokens, most = model_info(w->model)->ctx_tokens;
    const struct session_params p = { .ctx_tokens = wanted < most ? wanted : most };
    w->timeline_id = 0;
    return session_open(&w->session, w->engine, &p, err);
}

/* A device that was lost meanwhile is of no use to the next request. */
static void lost_drop(struct worker *w)
{
    struct engine_info info;
    engine_info(w->engine, &info);
    if (info.lost)
        engine_drop(w);
}

/* A session, whatever the last generation left behind. */
static int session_ensure(struct worker *w, struct err *err)
{
    if (w->session || (w->engine && session_start(w, err) == 0))
        return 0;
    engine_drop(w);
    if (engine_start(w, err) < 0)
        return -1;
    return session_start(w, err);
}

static int model_start(struct worker *w, const char *path, struct err *err)
{
    if (model_open(&w->model, path, err) < 0)
        return -1;
    const char *refusal = model_info(w->model)->refusal;
    if (refusal)
        return err_set(err, "%s: %s", path, refusal);
    if (session_ensure(w, err) < 0)
        return -1;
    return session_warm(w->session, err);
}

static void model_load(struct worker *w, const char *path)
{
    struct err err = { "" };
    engine_drop(w);
    model_close(w->model);
    w->model = NULL;
    struct worker_event e = { .kind = EVENT_READY };
    if (model_start(w, path, &err) < 0) {
        engine_drop(w);
        model_close(w->model);
        w->model = NULL;
        e.kind = EVENT_UNUSABLE;
        e.text = mem_strdup(err.text);
        e.text_bytes = strlen(e.text);
    } else {
        e.model = w->model;
        e.engine = mem_zalloc(sizeof *e.engine);
        engine_info(w->engine, e.engine);
        e.ctx_tokens = session_ctx_tokens(w->session);
    }
    if (!mailbox_post(w->events, &e))
        worker_event_release(&e);
}

/* ---- timelines on disk ---------------------------------------------------- */

static void note_post(struct worker *w, const char *what, const char *why)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s: %s", what, why);
    struct worker_event e = { .kind = EVENT_NOTE, .text_bytes = text.len };
    e.text = buf_detach(&text);
    if (!mailbox_post(w->events, &e))
        worker_event_release(&e);
}

static int timeline_read(struct worker *w, const struct generation *g, struct err *err)
{
    if (!w->keep_root || !g->keep_id)
        return 0;
    char *folder = keep_folder(w->keep_root, g->keep_id);
    const struct session_read_params p = {
        .dir = folder, .ids = g->ids.v, .n = g->ids.len, .cancel = &w->stop
    };
    struct session_read_result result = { 0 };
    int rc = session_read(w->session, &p, &result, err);
    if (result.n_removed)
        note_post(w, "a kept timeline was of no use", result.reason.text);
    if (result.tokens)
        w->timeline_id = g->keep_id;
    if (result.tokens || result.n_removed)
        mailbox_post(w->events, &(struct worker_event){ .kind = EVENT_RESTORED,
                                                        .keep_id = g->keep_id,
                                                        .done = result.tokens });
    free(folder);
    return rc;
}

/* Nobody waits for this. */
static void timeline_restore(struct worker *w, const struct generation *g)
{
    struct err err;
    if (!w->session || timeline_read(w, g, &err) == 0)
        return;
    note_post(w, "a kept timeline could not be fetched", err.text);
    session_close(w->session);
    w->session = NULL;
}

/* Nobody waits for this, and it waits for nobody. */
static void timeline_settle(struct worker *w, const struct generation *g)
{
    struct sync_result result;
    struct err err;
    const struct sync_params p = { .cancel = &w->waiting };
    if (!w->session || g->ids.len > session_ctx_tokens(w->session) ||
        session_sync(w->session, g->ids.v, g->ids.len, &p, &result, &err) == 0)
        return;
    note_post(w, "the timeline was lost", err.text);
    session_close(w->session);
    w->session = NULL;
}

/* Nor for this. */
static void timeline_write(struct worker *w, int64_t keep_id)
{
    struct worker_event e = { .kind = EVENT_KEPT, .keep_id = keep_id };
    if (w->keep_root && w->session && w->timeline_id == keep_id) {
        char *folder = keep_folder(w->keep_root, keep_id);
        const struct session_write_params p = { .dir = folder, .cancel = &w->waiting };
        struct err err;
        e.written = mem_zalloc(sizeof *e.written);
        if (session_write(w->session, &p, e.written, &err) < 0)
            note_post(w, "the timeline was not kept", err.text);
        lost_drop(w);
        if (e.written->removed)
            note_post(w, "a kept timeline was of no use", e.written->reason.text);
        free(folder);
    }
    atomic_store(&w->writing, false);
    if (!mailbox_post(w->events, &e))
        worker_event_release(&e);
}

static void timelines_forget(struct worker *w, int64_t keep_id)
{
    struct err err;
    if (w->keep_root && keep_remove(w->keep_root, keep_id, &err) < 0)
        note_post(w, "a kept timeline stays", err.text);
}

static void prompt_measure(struct worker *w, const struct generation *g)
{
    const size_t n = g->ids.len;
    mailbox_post(w->events,
                 &(struct worker_event){
                     .kind = EVENT_MEASURED,
                     .keep_id = g->keep_id,
                     .total = n,
                     .reused = w->session ? session_reusable(w->session, g->ids.v, n) : 0,
                 });
}

static bool somebody_waits(void *arg)
{
    struct worker *w = arg;
    return atomic_load(&w->quit) || atomic_load(&w->pending);
}

/* Without an answer nothing is lost. */
static void aside_answer(struct worker *w, const struct generation *g)
{
    struct worker_event e = { .kind = EVENT_SAID, .keep_id = g->keep_id };
    struct err err;
    const struct aside a = {
        .model = w->model,
        .engine = w->engine,
        .ids = &g->ids,
        .header = g->header,
        .max_tokens = g->max_tokens,
        .stop = somebody_waits,
        .arg = w,
    };
    if (!w->session)
        return;
    if (aside_run(&a, &e.text, &err) < 0)
        lost_drop(w);
    e.text_bytes = e.text ? strlen(e.text) : 0;
    if (!mailbox_post(w->events, &e))
        worker_event_release(&e);
}

/* ---- generating ---------------------------------------------------------- */

struct run {
    struct worker *w;
    const struct generation *g;
    struct splitter split;
    struct stopper stop;
    struct trace trace; /* only where there are stop texts */
    struct message_stats stats;
    uint64_t first_ns, last_ns; /* when the first and the newest token came */
    double step_seconds;        /* of late */
    bool ended;                 /* an end token came */
};

static void prefill_progress(void *arg, size_t done, size_t total)
{
    struct worker *w = arg;
    /* n - 1 tokens are to be in the timeline; those not evaluated are reused. */
    progress_post(w, &(struct worker_event){ .kind = EVENT_PREFILL,
                                             .done = done,
                                             .total = total,
                                             .reused = w->n_tokens - 1 - total });
}

static int prefill(struct run *r, bool *cancelled, struct err *err)
{
    struct worker *w = r->w;
    const struct generation *g = r->g;
    struct sync_result result = { 0 };
    const struct sync_params p = {
        .marks = g->marks.v,
        .n_marks = g->marks.n,
        .progress = prefill_progress,
        .arg = w,
        .cancel = &w->stop,
    };
    w->n_tokens = g->ids.len;
    if (session_sync(w->session, g->ids.v, g->ids.len, &p, &result, err) < 0)
        return -1;
    *cancelled = result.cancelled;
    r->stats.prompt_tokens = (uint32_t)g->ids.len;
    r->stats.reused_tokens = (uint32_t)result.reused;
    /* The last token of the prompt is evaluated by the first decode step. */
    r->stats.evaluated_tokens = (uint32_t)(result.evaluated + !result.cancelled);
    if (result.seconds > 0)
        r->stats.prefill_tps = (double)result.evaluated / result.seconds;
    return 0;
}

/* How many tokens the next submit is to bring, 0: no room for any. */
static uint32_t steps_next(const struct run *r)
{
    size_t in_context = session_tokens(r->w->session, NULL);
    size_t room = session_ctx_tokens(r->w->session) - in_context;
    if (r->g->max_tokens && room > r->g->max_tokens - r->stats.generated_tokens)
        room = r->g->max_tokens - r->stats.generated_tokens;
    size_t steps = MAX_STEPS;
    if (!r->stats.generated_tokens)
        steps = 1;
    else if (r->step_seconds * MAX_STEPS > SUBMIT_SECONDS)
        steps = (size_t)(SUBMIT_SECONDS / r->step_seconds);
    steps = steps ? steps : 1;
    return (uint32_t)(steps < room ? steps : room);
}

static void token_take(struct run *r, int32_t id, struct buf *text, struct buf *thinking)
{
    struct buf added = BUF_INIT;
    bool thought = r->split.thinking;
    r->ended = model_is_end(r->w->model, id);
    if (r->ended)
        return;
    splitter_add(&r->split, id, &added, thinking);
    if (thought || r->split.thinking) {
        r->stats.thinking_tokens++;
        r->stats.thinking_ms = (double)(r->last_ns - r->first_ns) / 1e6;
    }
    if (r->g->stops.n)
        trace_add(&r->trace, id, buf_cstr(&added), added.len, !r->split.held.len);
    stopper_add(&r->stop, buf_cstr(&added), added.len, text);
    buf_release(&added);
}

/* No more tokens will come: lets go what was held back. */
static void tokens_end(struct run *r, struct buf *text, struct buf *thinking)
{
    struct buf rest = BUF_INIT;
    splitter_end(&r->split, &rest, thinking);
    stopper_add(&r->stop, buf_cstr(&rest), rest.len, text);
    stopper_end(&r->stop, text);
    buf_release(&rest);
}

static void tokens_post(struct run *r, const int32_t *ids, size_t n)
{
    struct buf text = BUF_INIT, thinking = BUF_INIT;
    struct worker_event e = { .kind = EVENT_TOKENS };
    for (size_t i = 0; i < n && !r->stop.hit; i++)
        token_take(r, ids[i], &text, &thinking);
    e.stats = r->stats;
    if (!r->stop.hit && (r->ended || n == 0))
        tokens_end(r, &text, &thinking);
    tokens_add(&e.ids, ids, n);
    e.text_bytes = text.len;
    e.thinking_bytes = thinking.len;
    e.text = text.len ? buf_detach(&text) : NULL;
    e.thinking = thinking.len ? buf_detach(&thinking) : NULL;
    buf_release(&text);
    buf_release(&thinking);
    if (!mailbox_post(r->w->events, &e))
        worker_event_release(&e);
}

static int decode(struct run *r, uint32_t steps, struct err *err)
{
    int32_t ids[MAX_STEPS];
    size_t n = 0;
    uint64_t from = clock_ns();
    if (session_decode(r->w->session, steps, &r->g->sampler, ids, &n, err) < 0)
        return -1;
    r->last_ns = clock_ns();
    if (n && !r->stats.generated_tokens) {
        r->first_ns = r->last_ns;
        r->stats.ttft_ms = (double)(r->first_ns - r->g->asked_ns) / 1e6;
    }
    double seconds = (double)(r->last_ns - from) / 1e9 / (double)(n ? n : 1);
    r->step_seconds = r->step_seconds > 0 ? 0.5 * (r->step_seconds + seconds) : seconds;
    r->stats.generated_tokens += (uint32_t)n;
    if (r->last_ns > r->first_ns)
        r->stats.decode_tps = (double)(r->stats.generated_tokens - 1) * 1e9 /
                              (double)(r->last_ns - r->first_ns);
    tokens_post(r, ids, n);
    return 0;
}

static enum message_state generate(struct run *r, struct err *err)
{
    bool cancelled = false;
    if (session_ensure(r->w, err) < 0 || timeline_read(r->w, r->g, err) < 0 ||
        prefill(r, &cancelled, err) < 0)
        return STATE_FAILED;
    while (!cancelled && !r->ended && !r->stop.hit) {
        if (atomic_load(&r->w->stop))
            break;
        uint32_t steps = steps_next(r);
        if (!steps)
            return STATE_LENGTH;
        if (decode(r, steps, err) < 0)
            return STATE_FAILED;
    }
    return r->ended || r->stop.hit ? STATE_COMPLETE : STATE_STOPPED;
}

static void generation_close(struct generation *g)
{
    tokens_release(&g->ids);
    free(g->marks.v);
    stop_list_release(&g->stops);
    free(g);
}

static void generation_run(struct worker *w, const struct generation *g)
{
    struct err err = { "" };
    struct run r = { .w = w, .g = g };
    struct tokens kept = { 0 };
    splitter_init(&r.split, w->model, g->ids.v + g->header, g->ids.len - g->header);
    memcpy(r.split.begun, g->begun, sizeof g->begun);
    stopper_init(&r.stop, &g->stops);
    struct worker_event e = { .kind = EVENT_DONE };
    e.state = generate(&r, &err);
    w->timeline_id = g->keep_id;
    if (e.state != STATE_FAILED && model_check(w->model, &err) < 0)
        e.state = STATE_FAILED;
    if (r.stats.generated_tokens && !r.ended && !r.stop.hit)
        tokens_post(&r, NULL, 0);
    e.at_stop = r.stop.hit;
    if (r.stop.hit) {
        trace_cut(&r.trace, w->model, r.stop.passed, &kept);
        tokens_add(&e.ids, kept.v, kept.len);
    }
    if (e.state == STATE_FAILED) {
        session_close(w->session);
        w->session = NULL;
        e.text = mem_strdup(err.text);
        e.text_bytes = strlen(e.text);
    } else {
        e.ctx_used = (uint32_t)(r.stop.hit ? g->ids.len + kept.len
                                           : session_tokens(w->session, NULL));
        e.snapshot_bytes = session_snapshot_bytes(w->session);
    }
    e.stats = r.stats;
    if (!mailbox_post(w->events, &e))
        worker_event_release(&e);
    tokens_release(&kept);
    splitter_release(&r.split);
    stopper_release(&r.stop);
    trace_release(&r.trace);
}

/* ---- thread -------------------------------------------------------------- */

static void request_release(struct request *q)
{
    free(q->load_path);
    if (q->generation)
        generation_close(q->generation);
    if (q->restore)
        generation_close(q->restore);
    if (q->settle)
        generation_close(q->settle);
    if (q->measure)
        generation_close(q->measure);
    if (q->aside)
        generation_close(q->aside);
}

static void request_run(struct worker *w, const struct request *q)
{
    bool quit = atomic_load(&w->quit);
    if (q->forget_id)
        timelines_forget(w, q->forget_id);
    else if (q->write_id)
        timeline_write(w, q->write_id);
    else if (!quit && q->load_path)
        model_load(w, q->load_path);
    else if (!quit && q->restore)
        timeline_restore(w, q->restore);
    else if (!quit && q->settle)
        timeline_settle(w, q->settle);
    else if (!quit && q->measure)
        prompt_measure(w, q->measure);
    else if (!quit && q->aside)
        aside_answer(w, q->aside);
    else if (!quit && q->generation)
        generation_run(w, q->generation);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct request q;
    while (mailbox_take(w->requests, &q)) {
        atomic_fetch_sub(&w->pending, 1);
        if (q.load_path || q.generation)
            atomic_store(&w->waiting, false);
        request_run(w, &q);
        request_release(&q);
    }
    engine_drop(w);
    model_close(w->model);
    pthread_mutex_lock(&w->lock);
    w->finished = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Waits by a clock that nobody sets. */
static void ended_init(pthread_cond_t *ended)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(ended, &attr);
    pthread_condattr_destroy(&attr);
}

int worker_open(struct worker **out, const struct worker_params *p, struct err *err)
{
    struct worker *w = mem_zalloc(sizeof *w);
    *out = NULL;
    w->params = *p;
    w->keep_root = p->keep_root ? mem_strdup(p->keep_root) : NULL;
    pthread_mutex_init(&w->lock, NULL);
    ended_init(&w->ended);
    if (mailbox_open(&w->requests, sizeof(struct request), REQUESTS, err) < 0 ||
        mailbox_open(&w->events, sizeof(struct worker_event), EVENTS, err) < 0)
        goto fail;
    int rc = pthread_create(&w->thread, NULL, worker_main, w);
    if (rc) {
        err_set(err, "cannot start a thread: %s", strerror(rc));
        goto fail;
    }
    w->started = true;
    *out = w;
    return 0;
fail:
    worker_close(w, 0);
    return -1;
}

/* Waits for the thread's end; false once the time is over. */
static bool thread_wait(struct worker *w, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&w->lock);
    int rc = 0;
    while (!w->finished && rc == 0)
        rc = pthread_cond_timedwait(&w->ended, &w->lock, &until);
    bool finished = w->finished;
    pthread_mutex_unlock(&w->lock);
    return finished;
}

static bool thread_end(struct worker *w, int timeout_ms)
{
    if (thread_wait(w, timeout_ms))
        return true;
    if (!atomic_load(&w->writing))
        return false;
    if (thread_wait(w, WRITE_MS))
        return true;
    atomic_store(&w->waiting, true);
    return thread_wait(w, timeout_ms);
}

bool worker_close(struct worker *w, int timeout_ms)
{
    if (!w)
        return true;
    atomic_store(&w->stop, true);
    atomic_store(&w->quit, true);
    if (w->started) {
        mailbox_shut(w->requests);
        mailbox_shut(w->events);
        if (!thread_end(w, timeout_ms))
            return false;
        pthread_join(w->thread, NULL);
        struct worker_event e;
        while (mailbox_try_take(w->events, &e))
            worker_event_release(&e);
    }
    mailbox_close(w->requests);
    mailbox_close(w->events);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    free(w->keep_root);
    free(w);
    return true;
}

/* ---- the other side ------------------------------------------------------ */

static void request_post(struct worker *w, struct request q)
{
    if (q.load_path || q.generation)
        atomic_store(&w->waiting, true);
    atomic_fetch_add(&w->pending, 1);
    if (!mailbox_post(w->requests, &q)) {
        atomic_fetch_sub(&w->pending, 1);
        request_release(&q);
    }
}

void worker_load(struct worker *w, const char *path)
{
    request_post(w, (struct request){ .load_path = mem_strdup(path) });
}

void worker_generate(struct worker *w, struct generation *g)
{
    struct generation *own = mem_alloc(sizeof *own);
    *own = *g;
    *g = (struct generation){ 0 };
    atomic_store(&w->stop, false);
    request_post(w, (struct request){ .generation = own });
}

void worker_restore(struct worker *w, int64_t keep_id, struct tokens *ids)
{
    struct generation *own = mem_zalloc(sizeof *own);
    own->ids = *ids;
    own->keep_id = keep_id;
    *ids = (struct tokens){ 0 };
    atomic_store(&w->stop, false);
    request_post(w, (struct request){ .restore = own });
}

void worker_settle(struct worker *w, struct tokens *ids)
{
    struct generation *own = mem_zalloc(sizeof *own);
    own->ids = *ids;
    *ids = (struct tokens){ 0 };
    request_post(w, (struct request){ .settle = own });
}

void worker_say(struct worker *w, int64_t id, struct tokens *ids, size_t header,
                uint32_t max_tokens)
{
    struct generation *own = mem_zalloc(sizeof *own);
    own->ids = *ids;
    own->header = header;
    own->keep_id = id;
    own->max_tokens = max_tokens;
    *ids = (struct tokens){ 0 };
    request_post(w, (struct request){ .aside = own });
}

void worker_measure(struct worker *w, int64_t id, struct tokens *ids)
{
    struct generation *own = mem_zalloc(sizeof *own);
    own->ids = *ids;
    own->keep_id = id;
    *ids = (struct tokens){ 0 };
    request_post(w, (struct request){ .measure = own });
}

void worker_keep(struct worker *w, int64_t keep_id)
{
    atomic_store(&w->writing, true);
    request_post(w, (struct request){ .write_id = keep_id });
}

void worker_keep_stop(struct worker *w)
{
    atomic_store(&w->waiting, true);
}

void worker_forget(struct worker *w, int64_t keep_id)
{
    request_post(w, (struct request){ .forget_id = keep_id });
}

void worker_stop(struct worker *w)
{
    atomic_store(&w->stop, true);
}

int worker_fd(const struct worker *w)
{
    return mailbox_fd(w->events);
}

bool worker_next(struct worker *w, struct worker_event *e)
{
    return mailbox_try_take(w->events, e);
}

void worker_event_release(struct worker_event *e)
{
    free(e->engine);
    free(e->written);
    free(e->text);
    free(e->thinking);
    tokens_release(&e->ids);
}
