/* queue.c - texts that wait for the end of an answer. */
#include "app/queue.h"

#include "base/buf.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define DRAFT_KEY "draft" /* of the conversation that is not stored yet */

/* ---- drafts -------------------------------------------------------------- */

static void text_join(struct buf *b, const char *text)
{
    if (b->len && *text)
        buf_str(b, "\n\n");
    buf_str(b, text);
}

static int draft_write(struct conversation *c, const char *text, struct err *err)
{
    if (c->chat.id)
        return store_chat_set_draft(c->store, c->chat.id, text, err);
    return store_setting_set(c->store, DRAFT_KEY, *text ? text : NULL, err);
}

void draft_save(struct conversation *c, const char *typed)
{
    struct buf b = BUF_INIT;
    struct err err;
    for (size_t i = 0; i < c->n_queue; i++)
        text_join(&b, c->queue[i]);
    text_join(&b, typed);
    bool changed = b.len || c->has_draft;
    if (changed && draft_write(c, buf_cstr(&b), &err) < 0)
        log_line(c->log, LOG_WARN, "draft not kept: %s", err.text);
    c->has_draft = b.len > 0;
    buf_release(&b);
}

char *draft_take(struct conversation *c)
{
    char *text = NULL;
    struct chat chat;
    if (!c->chat.id) {
        store_setting_get(c->store, DRAFT_KEY, &text, NULL);
    } else if (store_chat_get(c->store, c->chat.id, &chat, NULL) == 0) {
        text = mem_strdup(chat.draft);
        chat_release(&chat);
    }
    if (text && *text) {
        draft_write(c, "", NULL);
        return text;
    }
    free(text);
    return NULL;
}

/* ---- queue --------------------------------------------------------------- */

bool queue_wanted(const struct conversation *c)
{
    return c->answer.running || (c->waiting_leaf && c->phase == MODEL_LOADING);
}

void queue_add(struct conversation *c, const char *text, size_t bytes)
{
    c->queue = mem_regrow(c->queue, c->n_queue + 1, sizeof *c->queue);
    c->queue[c->n_queue++] = mem_strndup(text, bytes);
    draft_save(c, "");
}

static void drop_first(struct conversation *c)
{
    free(c->queue[0]);
    memmove(c->queue, c->queue + 1, --c->n_queue * sizeof *c->queue);
}

void queue_next(struct conversation *c)
{
    struct err err;
    bool fresh = !c->chat.id;
    if (!c->n_queue || c->hold_queue || queue_wanted(c))
        return;
    if (conversation_send(c, c->queue[0], strlen(c->queue[0]), &err) < 0) {
        conversation_notice(c, "%s", err.text);
        return;
    }
    drop_first(c);
    if (fresh)
        store_setting_set(c->store, DRAFT_KEY, NULL, NULL);
    draft_save(c, "");
}

char *queue_take(struct conversation *c, bool all)
{
    struct buf b = BUF_INIT;
    if (!c->n_queue)
        return NULL;
    size_t from = all ? 0 : c->n_queue - 1;
    for (size_t i = from; i < c->n_queue; i++) {
        text_join(&b, c->queue[i]);
        free(c->queue[i]);
    }
    c->n_queue = from;
    draft_save(c, "");
    return buf_detach(&b);
}

struct message queue_message(const struct conversation *c, size_t i)
{
    return (struct message){ .id = -1 - (int64_t)i,
                             .chat_id = c->chat.id,
                             .role = ROLE_USER,
                             .text = c->queue[i],
                             .text_bytes = strlen(c->queue[i]),
                             .siblings = 1 };
}

void queue_release(struct conversation *c)
{
    for (size_t i = 0; i < c->n_queue; i++)
        free(c->queue[i]);
    free(c->queue);
    c->queue = NULL;
    c->n_queue = 0;
    c->has_draft = false;
}
