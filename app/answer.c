/* answer.c - the growing answer.
 * Invariant: m.text, m.thinking and m.ids are the buffers' memory as of the last
 * event; m.id is set exactly if the row exists. */
#include "app/answer.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>

static void lend(struct answer *a)
{
    /* A reader of struct message expects memory that it could change. */
    buf_reserve(&a->text, 1);
    a->m.text = a->text.v;
    a->m.text[a->text.len] = 0;
    a->m.text_bytes = a->text.len;
    a->m.thinking = a->thinking.len ? a->thinking.v : NULL;
    a->m.thinking_bytes = a->thinking.len;
    a->m.ids = a->ids.v;
    a->m.n_ids = a->ids.len;
}

void answer_begin(struct answer *a, int64_t chat_id, int64_t parent_id,
                  const int32_t *header, size_t n, const char *ids_model)
{
    answer_release(a);
    a->running = true;
    a->m = (struct message){
        .chat_id = chat_id,
        .parent_id = parent_id,
        .role = ROLE_ASSISTANT,
        .state = STATE_PARTIAL,
        .created_ms = clock_wall_ms(),
        .ids_model = ids_model ? mem_strdup(ids_model) : NULL,
        .siblings = 1,
    };
    struct tokens ids = { 0 };
    tokens_add(&ids, header, n);
    a->ids = ids;
    rate_reset(&a->rate);
    graph_reset(&a->graph);
    lend(a);
}

void answer_resume(struct answer *a, const struct message *m)
{
    a->m.id = m->id;
    a->m.created_ms = m->created_ms;
    a->m.siblings = m->siblings;
    a->m.sibling_index = m->sibling_index;
    a->before = m->stats;
    buf_add(&a->text, m->text, m->text_bytes);
    if (m->thinking)
        buf_add(&a->thinking, m->thinking, m->thinking_bytes);
    lend(a);
}

static void stats_set(struct answer *a, const struct message_stats *now)
{
    a->m.stats = *now;
    a->m.stats.generated_tokens += a->before.generated_tokens;
    a->m.stats.thinking_tokens += a->before.thinking_tokens;
    a->m.stats.thinking_ms += a->before.thinking_ms;
}

void answer_event(struct answer *a, const struct worker_event *e, uint64_t now_ns)
{
    switch (e->kind) {
    case EVENT_PREFILL:
        if (!a->prefill_total) {
            a->prefill_ns[0] = now_ns;
            a->prefill_first = e->done;
        }
        a->prefill_ns[1] = now_ns;
        a->prefill_done = e->done;
        a->prefill_total = e->total;
        a->reused = e->reused;
        break;
    case EVENT_TOKENS:
        buf_add(&a->text, e->text, e->text_bytes);
        buf_add(&a->thinking, e->thinking, e->thinking_bytes);
        tokens_add(&a->ids, e->ids.v, e->ids.len);
        a->generated += (uint32_t)e->ids.len;
        stats_set(a, &e->stats);
        if (e->ids.len)
            rate_add(&a->rate, now_ns, (uint32_t)e->ids.len);
        graph_add(&a->graph, now_ns, a->generated);
        a->unsaved = true;
        break;
    case EVENT_DONE:
        a->running = false;
        a->at_stop = e->at_stop;
        if (e->at_stop) {
            a->ids.len -= a->generated;
            tokens_add(&a->ids, e->ids.v, e->ids.len);
        }
        a->m.state = e->state;
        stats_set(a, &e->stats);
        a->unsaved = answer_has_message(a);
        break;
    default:
        break;
    }
    lend(a);
}

double answer_reading_tps(const struct answer *a)
{
    uint64_t ns = a->prefill_ns[1] - a->prefill_ns[0];
    return ns ? (double)(a->prefill_done - a->prefill_first) * 1e9 / (double)ns : 0;
}

bool answer_has_message(const struct answer *a)
{
    return a->generated > 0 || a->m.id;
}

int answer_save(struct answer *a, struct store *st, uint64_t now_ns, struct err *err)
{
    if (!a->unsaved)
        return 0;
    a->saved_ns = now_ns;
    int rc = a->m.id ? store_message_update(st, &a->m, err)
                     : store_message_add(st, &a->m, err);
    if (rc == 0)
        a->unsaved = false;
    return rc;
}

void answer_release(struct answer *a)
{
    buf_release(&a->text);
    buf_release(&a->thinking);
    tokens_release(&a->ids);
    free(a->m.ids_model);
    free(a->m.model);
    *a = (struct answer){ 0 };
}
