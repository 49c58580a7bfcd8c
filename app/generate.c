/* generate.c - prompts to the worker, its events to the answer, the answer to the
 * store.
 * Invariant: the worker has a request of ours exactly while answer.running. */
#include "app/generate.h"

#include "base/clock.h"
#include "base/mem.h"

#include "app/caption.h"
#include "app/prefix.h"
#include "app/queue.h"

#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_ROOM = 32 /* tokens without which an answer is not worth starting */ };

void conversation_notice(struct conversation *c, const char *fmt, ...)
{
    free(c->notice);
    c->notice = NULL;
    if (!fmt)
        return;
    struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    c->notice = buf_detach(&b);
}

/* ---- starting ------------------------------------------------------------ */

static bool thinks(const struct conversation *c)
{
    return c->settings.thinking < 0 ? model_info(c->model)->thinking_default
                                    : c->settings.thinking;
}

struct prompt_style generate_style(const struct conversation *c)
{
    return (struct prompt_style){ .thinking = thinks(c),
                                  .strip_thinking = c->settings.preserve_thinking == 0,
                                  .effort = c->settings.effort };
}

int generate_compose(struct conversation *c, const struct message *path, size_t n,
                     struct prompt *p, struct err *err)
{
    const struct prompt_style style = generate_style(c);
    if (prompt_compose(p, c->model, path, n, &style, err) < 0)
        return -1;
    if (p->ids.len + ANSWER_ROOM <= c->ctx_tokens)
        return 0;
    return err_set(err,
                   "context full: this needs %zu tokens and %d for an answer, the "
                   "context holds %u; start a new conversation, edit an earlier "
                   "message, or run with a larger --ctx",
                   p->ids.len, ANSWER_ROOM, c->ctx_tokens);
}

static uint64_t seed_random(void)
{
    uint64_t seed;
    if (getentropy(&seed, sizeof seed) < 0)
        seed = clock_ns();
    return seed;
}

static struct sampler_params sampler(const struct conversation *c)
{
    const struct chat_settings *s = &c->settings;
    struct sampler_params p;
    model_sampling(c->model, thinks(c), &p);
    if (s->temperature >= 0)
        p.temperature = (float)s->temperature;
    if (s->top_k >= 0)
        p.top_k = (uint32_t)s->top_k;
    if (s->top_p >= 0)
        p.top_p = (float)s->top_p;
    if (s->min_p >= 0)
        p.min_p = (float)s->min_p;
    if (!isnan(s->repeat_penalty))
        p.repeat_penalty = (float)s->repeat_penalty;
    if (!isnan(s->presence_penalty))
        p.presence_penalty = (float)s->presence_penalty;
    if (!isnan(s->frequency_penalty))
        p.frequency_penalty = (float)s->frequency_penalty;
    /* Another answer to the same message is to be another one. */
    p.seed = s->has_seed ? s->seed + c->variant : seed_random();
    return p;
}

/* Keeps the ids of turns that were tokenised just now. An answer does not depend
 * on it: a failure only means that the text is tokenised again. */
static void ids_keep(struct conversation *c, const struct message *path,
                     const struct prompt *p)
{
    for (size_t i = 0; i < p->n_turns; i++) {
        struct message m = path[i];
        struct err err;
        if (m.n_ids || !m.id)
            continue;
        struct tokens ids = { 0 };
        size_t n;
        const int32_t *turn = prompt_turn(p, i, &n);
        tokens_add(&ids, turn, n);
        char *ids_model = mem_strdup(model_info(c->model)->tokenizer_id);
        m.ids = ids.v;
        m.n_ids = n;
        m.ids_model = ids_model;
        if (store_message_update(c->store, &m, &err) < 0)
            log_line(c->log, LOG_WARN, "token ids not kept: %s", err.text);
        tokens_release(&ids);
        free(ids_model);
    }
}

void generate_start(struct conversation *c, const struct message *path, size_t n,
                    struct prompt *p)
{
    const struct message *last = &path[n - 1];
    size_t header = p->starts[p->n_turns];
    struct generation g = {
        .header = header,
        .sampler = sampler(c),
        .keep_id = last->chat_id,
        .max_tokens = c->settings.max_tokens,
        .begun = { p->begun[0], p->begun[1] },
        .asked_ns = clock_ns(),
    };
    stop_list_copy(&g.stops, &c->settings.stops);
    ids_keep(c, path, p);
    answer_begin(&c->answer, last->chat_id, last->id, p->ids.v + header,
                 p->ids.len - header, model_info(c->model)->tokenizer_id);
    c->answer.m.siblings = c->variant + 1;
    c->answer.m.sibling_index = c->variant;
    c->ctx_used = (uint32_t)p->ids.len;
    c->waiting_leaf = 0;
    c->hold_queue = false;
    c->answer.m.model = mem_strdup(c->model_name);
    store_chat_set_model(c->store, last->chat_id, c->model_name, c->model_path, NULL);
    g.marks.v = prompt_marks(p, &g.marks.n);
    g.ids = p->ids;
    p->ids = (struct tokens){ 0 };
    worker_generate(c->worker, &g);
}

static void start_waiting(struct conversation *c)
{
    struct message_list path = { 0 };
    struct prompt p = { 0 };
    struct err err;
    if (!c->waiting_leaf)
        return;
    if (store_path(c->store, c->waiting_leaf, &path, &err) < 0 ||
        generate_compose(c, path.v, path.len, &p, &err) < 0)
        conversation_notice(c, "%s", err.text);
    else
        generate_start(c, path.v, path.len, &p);
    c->waiting_leaf = 0;
    prompt_release(&p);
    message_list_release(&path);
}

/* The path gets what the answer has become, and its place among its siblings. */
static void refresh(struct conversation *c)
{
    struct err err;
    if (!c->stale || c->answer.unsaved)
        return;
    if (conversation_reload(c, &err) < 0)
        conversation_notice(c, "%s", err.text);
}

/* ---- model --------------------------------------------------------------- */

static void text_set(char **field, const char *text)
{
    char *copy = text ? mem_strdup(text) : NULL;
    free(*field);
    *field = copy;
}

void conversation_load(struct conversation *c, const char *path)
{
    conversation_stop(c);
    text_set(&c->model_path, path);
    text_set(&c->problem, NULL);
    c->model = NULL;
    c->phase = MODEL_LOADING;
    c->load_done = c->load_total = 0;
    worker_load(c->worker, path);
}

void conversation_no_model(struct conversation *c, const char *reason)
{
    c->phase = MODEL_UNUSABLE;
    c->model = NULL;
    text_set(&c->problem, reason);
    conversation_notice(c, "%s", reason);
    log_line(c->log, LOG_ERROR, "no model: %s", reason);
}

static void model_ready(struct conversation *c, const struct worker_event *e)
{
    c->phase = MODEL_READY;
    c->model = e->model;
    c->engine = *e->engine;
    c->ctx_tokens = e->ctx_tokens;
    text_set(&c->model_name, model_info(c->model)->name);
    log_line(c->log, LOG_NOTE, "model %s on %s, %u tokens of context", c->model_path,
             c->engine.device.name, c->ctx_tokens);
    const struct model_info *info = model_info(c->model);
    if (info->aside)
        log_line(c->log, LOG_NOTE, "%s: %s", c->model_path, info->aside);
    if (info->assumed)
        conversation_notice(c, "%s", info->assumed);
    if (c->settings.ctx_tokens > c->ctx_tokens)
        conversation_notice(c, "the context is %u tokens: the model was made for no more",
                            c->ctx_tokens);
    start_waiting(c);
    prefix_restore(c);
}

/* ---- the answer ---------------------------------------------------------- */

static void save(struct conversation *c, uint64_t now_ns)
{
    struct err err;
    bool failed = answer_save(&c->answer, c->store, now_ns, &err) < 0;
    if (failed) {
        conversation_notice(c, "not saved: %s; trying again", err.text);
        log_line(c->log, LOG_ERROR, "answer not saved: %s", err.text);
    } else if (c->save_failed) {
        conversation_notice(c, "saved");
    }
    c->save_failed = failed;
}

static void end_notice(struct conversation *c, const struct worker_event *e)
{
    if (e->state == STATE_FAILED) {
        conversation_notice(c, "the answer failed: %s", e->text);
        log_line(c->log, LOG_ERROR, "answer failed: %s", e->text);
    } else if (e->state == STATE_LENGTH && c->ctx_used >= c->ctx_tokens) {
        conversation_notice(c,
                            "context full: %u of %u tokens; start a new conversation "
                            "or edit an earlier message",
                            c->ctx_used, c->ctx_tokens);
    } else if (c->ctx_used > c->ctx_tokens / 10 * 8) {
        conversation_notice(c, "the context is nearly full: %u of %u tokens", c->ctx_used,
                            c->ctx_tokens);
    }
}

/* The next prompt will hold this answer as something else than what was sampled:
 * it is read that way now, while nobody waits. */
static void timeline_settle(struct conversation *c)
{
    const struct message *m = &c->answer.m;
    struct message_list path = { 0 };
    struct prompt p = { 0 };
    if (c->answer.unsaved || !m->id || c->phase != MODEL_READY)
        return;
    const struct prompt_style style = generate_style(c);
    if (!c->answer.at_stop && !(style.strip_thinking && m->thinking_bytes))
        return;
    if (store_path(c->store, m->id, &path, NULL) == 0 &&
        prompt_compose(&p, c->model, path.v, path.len, &style, NULL) == 0) {
        p.ids.len = p.starts[p.n_turns];
        c->ctx_used = (uint32_t)p.ids.len;
        worker_settle(c->worker, &p.ids);
    }
    prompt_release(&p);
    message_list_release(&path);
}

static void answer_done(struct conversation *c, const struct worker_event *e,
                        uint64_t now_ns)
{
    if (e->ctx_used)
        c->ctx_used = e->ctx_used;
    c->snapshot_bytes = e->snapshot_bytes;
    c->stale = c->chat.id == c->answer.m.chat_id;
    end_notice(c, e);
    save(c, now_ns);
    refresh(c);
    timeline_settle(c);
    prefix_keep(c);
    start_waiting(c);
    if (e->state == STATE_COMPLETE || e->state == STATE_LENGTH)
        queue_next(c);
    if (c->chat.id != c->answer.m.chat_id)
        prefix_restore(c);
    caption_ask(c);
}

bool conversation_event(struct conversation *c, const struct worker_event *e)
{
    uint64_t now = clock_ns();
    switch (e->kind) {
    case EVENT_LOADING:
        c->load_done = e->done;
        c->load_total = e->total;
        break;
    case EVENT_READY:
        model_ready(c, e);
        break;
    case EVENT_UNUSABLE:
        conversation_no_model(c, e->text);
        break;
    case EVENT_NOTE:
        log_line(c->log, LOG_WARN, "%s", e->text);
        return false;
    case EVENT_KEPT:
    case EVENT_RESTORED:
        prefix_event(c, e);
        return false;
    case EVENT_SAID:
        caption_take(c, e);
        break;
    case EVENT_MEASURED:
        conversation_measured(c, e);
        break;
    case EVENT_PREFILL:
        answer_event(&c->answer, e, now);
        break;
    case EVENT_TOKENS:
        answer_event(&c->answer, e, now);
        c->ctx_used += (uint32_t)e->ids.len;
        if (!c->answer.m.id && !c->answer.saved_ns)
            save(c, now);
        break;
    case EVENT_DONE:
        answer_event(&c->answer, e, now);
        answer_done(c, e, now);
        break;
    }
    return true;
}

void conversation_stop(struct conversation *c)
{
    /* The branch may have been cut to where a new answer was to be. */
    c->stale = c->stale || (c->waiting_leaf && c->chat.id);
    c->waiting_leaf = 0;
    c->hold_queue = true;
    if (c->answer.running)
        worker_stop(c->worker);
    else
        refresh(c);
}

bool conversation_busy(const struct conversation *c)
{
    return c->answer.running || c->waiting_leaf;
}

int conversation_tick(struct conversation *c, uint64_t now_ns)
{
    if (!c->answer.unsaved && !c->stale)
        return -1;
    if (now_ns - c->answer.saved_ns >= ANSWER_SAVE_NS) {
        save(c, now_ns);
        refresh(c);
        c->answer.saved_ns = now_ns;
    }
    return (int)((c->answer.saved_ns + ANSWER_SAVE_NS - now_ns) / 1000000) + 1;
}

int conversation_finish(struct conversation *c, int timeout_ms, struct err *err)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_ms * 1000000;
    conversation_stop(c);
    while (c->answer.running && clock_ns() < until) {
        struct pollfd fd = { .fd = worker_fd(c->worker), .events = POLLIN };
        struct worker_event e;
        poll(&fd, 1, 50);
        while (worker_next(c->worker, &e)) {
            conversation_event(c, &e);
            worker_event_release(&e);
        }
    }
    if (c->answer.running && answer_has_message(&c->answer)) {
        c->answer.m.state = STATE_STOPPED;
        c->answer.unsaved = true;
    }
    return answer_save(&c->answer, c->store, clock_ns(), err);
}
