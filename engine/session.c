/* session.c - one token timeline: keeping it equal to a prompt, and decoding.
 * See session.h for the invariants. Does not know about text. */
#include "engine/session.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/sample.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void check(const struct session *s)
{
    assert(s->ids.len == s->evaluated || s->ids.len == s->evaluated + 1);
    assert(s->evaluated <= s->params.ctx_tokens);
    (void)s;
}

void session_defaults(struct session_params *p, const struct engine *e)
{
    uint32_t trained = e->model->hp.ctx_tokens;
    if (!p->ctx_tokens)
        p->ctx_tokens = trained < 32768 ? trained : 32768;
    uint32_t most = tuning_max_tokens(&e->tune);
    if (!p->chunk_tokens)
        p->chunk_tokens = e->tune.chunk_tokens;
    if (p->chunk_tokens > most)
        p->chunk_tokens = most;
    if (!p->snapshot_bytes)
        p->snapshot_bytes = 1ull << 30;
}

/* Everything a pass reads but the model: control block fields that stay. */
static void fill_control(struct session *s)
{
    struct ctl_block *ctl = s->ctl.map;
    const struct model *m = s->engine->model;
    ctl->n_vocab = m->hp.n_vocab;
    ctl->n_eog = 0;
    for (uint32_t id = 0; id < m->hp.n_vocab && ctl->n_eog < CTL_MAX_EOG; id++)
        if (model_is_end(m, (int32_t)id))
            ctl->eog[ctl->n_eog++] = id;
}

int session_open(struct session **out, struct engine *e, const struct session_params *p,
                 struct err *err)
{
    struct session *s = mem_zalloc(sizeof *s);
    *out = NULL;
    s->engine = e;
    if (p)
        s->params = *p;
    session_defaults(&s->params, e);
    if (session_check_memory(s, err) < 0 || session_memory_open(s, err) < 0 ||
        gpu_commands_open(&s->decode, e->gpu, err) < 0 ||
        gpu_commands_open(&s->prefill, e->gpu, err) < 0) {
        session_close(s);
        return -1;
    }
    gpu_profile_enable(s->decode, s->params.profile);
    gpu_profile_enable(s->prefill, s->params.profile);
    fill_control(s);
    *out = s;
    return 0;
}

void session_close(struct session *s)
{
    if (!s)
        return;
    snapshot_release(s);
    gpu_commands_close(s->decode);
    gpu_commands_close(s->prefill);
    session_memory_close(s);
    tokens_release(&s->ids);
    free(s);
}

uint32_t session_ctx_tokens(const struct session *s)
{
    return s->params.ctx_tokens;
}

uint32_t session_chunk_tokens(const struct session *s)
{
    return s->params.chunk_tokens;
}

size_t session_tokens(const struct session *s, const int32_t **ids)
{
    if (ids)
        *ids = s->ids.v;
    return s->ids.len;
}

uint64_t session_snapshot_bytes(const struct session *s)
{
    return s->n_snapshots * s->layout.bytes;
}

/* ---- running passes ----------------------------------------------------- */

/* Splits of the KV history that suit a depth, in steps of powers of two so
 * that a recorded list lasts. */
static uint32_t decode_splits(const struct session *s, size_t depth)
{
    const struct tuning *t = &s->engine->tune;
    uint32_t splits = 1;
    while (splits < t->max_splits && (uint64_t)splits * t->split_positions < depth)
        splits *= 2;
    uint32_t least = session_least_splits(s, depth);
    return splits > least ? splits : least;
}

static int recorded(struct session *s, struct gpu_commands *c, struct pass *now,
                    struct pass want, struct err *err)
{
    if (now->tokens == want.tokens && now->splits == want.splits && now->head == want.head)
        return 0;
    now->tokens = 0;
    if (forward_record(s, c, &want, err) < 0)
        return -1;
    *now = want;
    return 0;
}

static struct ctl_block *begin_pass(struct session *s, const int32_t *ids, uint32_t n)
{
    struct ctl_block *ctl = s->ctl.map;
    ctl->pos = (uint32_t)s->evaluated;
    ctl->n_tokens = n;
    ctl->side = s->side;
    ctl->stop = 0;
    ctl->n_out = 0;
    for (uint32_t i = 0; i < n; i++)
        ctl->tokens[i] = (uint32_t)ids[i];
    return ctl;
}

/* Evaluates ids.v[evaluated .. evaluated + n), n <= chunk_tokens. */
static int evaluate_chunk(struct session *s, uint32_t n, struct err *err)
{
    struct pass want = { .tokens = n, .splits = session_least_splits(s, s->evaluated + n) };
    if (recorded(s, s->prefill, &s->prefill_pass, want, err) < 0)
        return -1;
    begin_pass(s, s->ids.v + s->evaluated, n);
    if (gpu_submit(s->engine->gpu, &s->prefill, 1, 1, err) < 0 ||
        gpu_wait(s->engine->gpu, 0, err) < 0)
        return -1;
    s->evaluated += n;
    s->side ^= 1;
    return 0;
}

/* After a failure nobody knows what the device holds: the next sync starts
 * over, with a state that it clears itself. */
static void forget(struct session *s)
{
    snapshot_release(s);
    s->ids.len = s->evaluated = 0;
    s->has_logits = false;
    s->unknown = true;
}

/* ---- sync --------------------------------------------------------------- */

static size_t common_prefix(const struct tokens *t, const int32_t *ids, size_t n)
{
    size_t i = 0;
    while (i < t->len && i < n && t->v[i] == ids[i])
        i++;
    return i;
}

size_t session_reusable(const struct session *s, const int32_t *ids, size_t n)
{
    size_t keep = n ? common_prefix(&s->ids, ids, n - 1) : 0, best = 0;
    if (keep >= s->evaluated || session_rewinds(s))
        return keep < s->evaluated ? keep : s->evaluated;
    for (size_t i = 0; i < s->n_snapshots; i++)
        if (s->snapshots[i].pos <= keep)
            best = s->snapshots[i].pos;
    return best;
}

/* Cuts the timeline back to what it shares with ids[0, n), at most n - 1
 * tokens of which stay evaluated. */
static int rewind_to(struct session *s, const int32_t *ids, size_t n, struct err *err)
{
    size_t keep = common_prefix(&s->ids, ids, n);
    if (keep > n - 1)
        keep = n - 1;
    if ((s->unknown || keep < s->evaluated) && snapshot_rewind(s, keep, err) < 0)
        return -1;
    s->unknown = false;
    s->ids.len = s->evaluated;
    return 0;
}

static size_t next_stop(const struct session *s, const struct sync_params *p, size_t end)
{
    size_t stop = s->evaluated + s->params.chunk_tokens;
    for (size_t i = 0; p && i < p->n_marks; i++)
        if (p->marks[i] > s->evaluated && p->marks[i] < stop)
            stop = p->marks[i];
    return stop < end ? stop : end;
}

static bool is_mark(const struct sync_params *p, size_t pos)
{
    for (size_t i = 0; p && i < p->n_marks; i++)
        if (p->marks[i] == pos)
            return true;
    return false;
}

/* Evaluates up to `end` tokens, chunk by chunk. */
static int evaluate_to(struct session *s, size_t end, const struct sync_params *p,
                       struct sync_result *result, struct err *err)
{
    size_t start = s->evaluated;
    while (s->evaluated < end) {
        if (p && p->cancel && atomic_load(p->cancel)) {
            result->cancelled = true;
            break;
        }
        size_t stop = next_stop(s, p, end);
        if (evaluate_chunk(s, (uint32_t)(stop - s->evaluated), err) < 0)
            return -1;
        if (is_mark(p, s->evaluated) && snapshot_keep(s, err) < 0)
            return -1;
        if (p && p->progress)
            p->progress(p->arg, s->evaluated - start, end - start);
    }
    result->evaluated = s->evaluated - start;
    return 0;
}

int session_sync(struct session *s, const int32_t *ids, size_t n,
                 const struct sync_params *p, struct sync_result *result, struct err *err)
{
    struct sync_result ignored;
    result = result ? result : &ignored;
    *result = (struct sync_result){ 0 };
    uint64_t begin = clock_ns();
    if (!n || n > s->params.ctx_tokens)
        return err_set(err, "a prompt of %zu tokens does not fit a context of %u", n,
                       s->params.ctx_tokens);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->engine->model->hp.n_vocab)
            return err_set(err, "token id %d is outside the vocabulary of %u", ids[i],
                           s->engine->model->hp.n_vocab);
    s->has_logits = false;
    if (rewind_to(s, ids, n, err) < 0)
        goto failed;
    result->reused = s->evaluated;
    tokens_add(&s->ids, ids + s->evaluated, n - s->evaluated);
    if (is_mark(p, s->evaluated) && s->evaluated && snapshot_keep(s, err) < 0)
        goto failed;
    if (evaluate_to(s, n - 1, p, result, err) < 0)
        goto failed;
    if (result->cancelled)
        s->ids.len = s->evaluated;
    if (gpu_fill(s->engine->gpu, gpu_span_all(&s->counts), 0, err) < 0)
        goto failed;
    result->seconds = (double)(clock_ns() - begin) * 1e-9;
    check(s);
    return 0;

failed:
    forget(s);
    return -1;
}

/* ---- decode ------------------------------------------------------------- */

int session_decode(struct session *s, uint32_t steps, const struct sampler_params *p,
                   int32_t *ids, size_t *n_ids, struct err *err)
{
    *n_ids = 0;
    if (s->ids.len != s->evaluated + 1)
        return err_set(err, "decode: no token is pending");
    size_t room = s->params.ctx_tokens - s->ids.len;
    if (!room)
        return err_set(err, "the context of %u tokens is full", s->params.ctx_tokens);
    if (steps < 1)
        steps = 1;
    if (steps > DECODE_MAX_STEPS)
        steps = DECODE_MAX_STEPS;
    if (steps > room)
        steps = (uint32_t)room;
    struct pass want = { .tokens = 1, .splits = decode_splits(s, s->evaluated + steps),
                         .head = true };
    if (recorded(s, s->decode, &s->decode_pass, want, err) < 0)
        return -1;
    struct ctl_block *ctl = begin_pass(s, s->ids.v + s->evaluated, 1);
    if (sample_configure(ctl, p, err) < 0)
        return -1;
    struct out_block *out = s->out.map;
    *out = (struct out_block){ 0 };
    if (gpu_submit(s->engine->gpu, &s->decode, 1, steps, err) < 0 ||
        gpu_wait(s->engine->gpu, 0, err) < 0) {
        forget(s);
        return -1;
    }
    uint32_t n = out->n_out;
    if (n < 1 || n > steps) {
        forget(s);
        return err_set(err, "the device returned %u tokens for %u steps", n, steps);
    }
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (int32_t)out->ids[i];
        tokens_push(&s->ids, ids[i]);
    }
    s->evaluated += n;
    s->side ^= n & 1;
    s->has_logits = true;
    *n_ids = n;
    check(s);
    return 0;
}

int session_warm(struct session *s, struct err *err)
{
    static const int32_t ids[9];
    size_t n = sizeof ids / sizeof *ids, made;
    int32_t id;
    if (n >= s->params.ctx_tokens)
        return 0;
    int rc = session_sync(s, ids, n, NULL, NULL, err);
    if (rc == 0)
        rc = session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &made, err);
    forget(s);
    return rc;
}

int session_logits(struct session *s, float *out, struct err *err)
{
    if (!s->has_logits)
        return err_set(err, "logits: nothing was decoded yet");
    uint64_t bytes = (uint64_t)s->engine->model->hp.n_vocab * 4;
    return gpu_download(s->engine->gpu, out, gpu_span_at(&s->scratch.logits, 0, bytes), err);
}
