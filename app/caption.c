/* caption.c - the question for a title, and what becomes of the answer. */
#include "app/caption.h"

#include "base/mem.h"
#include "base/utf8.h"

#include "app/prompt.h"
#include "app/title.h"

#include <stdlib.h>

enum {
    QUOTED_BYTES = 1000, /* of each message: more says no more about the subject */
    TITLE_TOKENS = 32,
    LAST_MESSAGE = 6, /* further on a conversation has the title that it has */
};
/* Smaller models rarely find a better title than the first words are. */
#define PARAMS_MIN  UINT64_C(1000000000)
#define SECONDS_MAX 5.0 /* of a device's time */

/* ---- asking ------------------------------------------------------------------ */

/* Whether it is worth it by the speed of the last answer. */
static bool cheap(const struct conversation *c, size_t prompt_tokens)
{
    const struct message_stats *s = &c->answer.m.stats;
    return s->decode_tps > 0 && s->prefill_tps > 0 &&
           (double)prompt_tokens / s->prefill_tps + TITLE_TOKENS / s->decode_tps <=
               SECONDS_MAX;
}

static void quote(struct buf *b, const char *who, const struct message *m)
{
    size_t n = m->text_bytes;
    if (n > QUOTED_BYTES)
        n = utf8_complete(m->text, QUOTED_BYTES);
    buf_printf(b, "%s: ", who);
    buf_add(b, m->text, n);
    buf_str(b, n < m->text_bytes ? " [...]\n\n" : "\n\n");
}

/* False if there is nothing to quote. */
static bool question(struct buf *b, const struct message_list *path)
{
    size_t said = 0;
    buf_str(b, "Here is the beginning of a conversation.\n\n");
    for (size_t i = 0; i < path->len && said < 2; i++) {
        const struct message *m = &path->v[i];
        if (m->role == ROLE_SYSTEM || !m->text_bytes)
            continue;
        quote(b, m->role == ROLE_USER ? "User" : "Assistant", m);
        said++;
    }
    buf_str(b, "Write a title for it, at most six words, in the language of the "
               "conversation. Answer with the title and nothing else.");
    return said == 2;
}

static bool wanted(const struct conversation *c, const struct chat *chat,
                   const struct message_list *path)
{
    const bool always = c->titles == TITLES_MODEL;
    if (chat->title_source != TITLE_FIRST_MESSAGE || path->len > LAST_MESSAGE)
        return false;
    return always || model_info(c->model)->n_params >= PARAMS_MIN;
}

static void ask(struct conversation *c, const struct message_list *path)
{
    struct prompt p = { 0 };
    struct buf text = BUF_INIT;
    const struct prompt_style plain = { .thinking = false };
    if (question(&text, path)) {
        const struct message m = { .role = ROLE_USER,
                                   .text = text.v,
                                   .text_bytes = text.len };
        if (prompt_compose(&p, c->model, &m, 1, &plain, NULL) == 0 &&
            (c->titles == TITLES_MODEL || cheap(c, p.ids.len)))
            worker_say(c->worker, c->answer.m.chat_id, &p.ids, p.starts[p.n_turns],
                       TITLE_TOKENS);
    }
    prompt_release(&p);
    buf_release(&text);
}

void caption_ask(struct conversation *c)
{
    const struct message *m = &c->answer.m;
    struct message_list path = { 0 };
    struct chat chat;
    if (c->titles == TITLES_FIRST || c->phase != MODEL_READY || c->answer.unsaved ||
        m->state != STATE_COMPLETE || conversation_busy(c) ||
        store_chat_get(c->store, m->chat_id, &chat, NULL) < 0)
        return;
    if (store_path(c->store, m->id, &path, NULL) == 0 && wanted(c, &chat, &path))
        ask(c, &path);
    message_list_release(&path);
    chat_release(&chat);
}

/* ---- the answer -------------------------------------------------------------- */

void caption_take(struct conversation *c, const struct worker_event *e)
{
    struct err err;
    struct chat chat;
    char *title = e->text ? title_from_answer(e->text, e->text_bytes) : NULL;
    if (!title)
        return;
    if (store_chat_propose(c->store, e->keep_id, title, &err) < 0) {
        log_line(c->log, LOG_WARN, "title not kept: %s", err.text);
    } else if (c->chat.id == e->keep_id &&
               store_chat_get(c->store, e->keep_id, &chat, NULL) == 0) {
        chat_release(&c->chat);
        c->chat = chat;
    }
    free(title);
}
