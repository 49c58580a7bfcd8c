/* chat.c - conversations as the user sees them: the shown branch and the actions
 * on it.
 * Invariants: path holds stored messages only, from the root on, with room for
 * one more; every action either happens as a whole or leaves store and path as
 * they were. */
#include "app/chat.h"

#include "base/mem.h"

#include "app/draft.h"
#include "app/generate.h"
#include "app/prefix.h"
#include "app/prompt.h"
#include "app/queue.h"
#include "app/setup.h"

#include <stdlib.h>
#include <string.h>

void conversation_init(struct conversation *c, struct store *st, struct worker *w)
{
    *c = (struct conversation){
        .store = st,
        .worker = w,
        .chat = { .title = mem_strdup(""), .model = mem_strdup("") },
        .path.v = mem_alloc(sizeof(struct message)),
        .model_name = mem_strdup(""),
        .titles = TITLES_FIRST,
    };
    settings_init(&c->settings);
    settings_init(&c->base);
}

void conversation_release(struct conversation *c)
{
    answer_release(&c->answer);
    chat_release(&c->chat);
    message_list_release(&c->path);
    queue_release(c);
    setup_release(c);
    free(c->model_path);
    free(c->model_name);
    free(c->problem);
    free(c->keep_root);
    free(c->last_command);
    free(c->notice);
    *c = (struct conversation){ 0 };
}

/* ---- what is shown -------------------------------------------------------- */

static bool answer_is_open(const struct conversation *c)
{
    return (c->answer.running || c->answer.unsaved || c->stale) &&
           answer_has_message(&c->answer);
}

static void path_set(struct conversation *c, struct message_list *list)
{
    message_list_release(&c->path);
    c->path = *list;
    c->stale = false;
    c->path.v = mem_regrow(c->path.v, c->path.len + 1, sizeof *c->path.v);
    /* The row of a growing answer is older than what is in memory. */
    if (c->path.len && answer_is_open(c) &&
        c->path.v[c->path.len - 1].id == c->answer.m.id)
        path_cut(c, c->path.len - 1);
}

static int chat_load(struct conversation *c, int64_t chat_id, struct err *err)
{
    struct chat chat;
    struct message_list list = { 0 };
    if (store_chat_get(c->store, chat_id, &chat, err) < 0)
        return -1;
    if (store_path(c->store, chat.leaf_id, &list, err) < 0) {
        chat_release(&chat);
        return -1;
    }
    chat_release(&c->chat);
    c->chat = chat;
    path_set(c, &list);
    return 0;
}

int conversation_reload(struct conversation *c, struct err *err)
{
    return c->chat.id ? chat_load(c, c->chat.id, err) : 0;
}

static void lock_chat(struct conversation *c)
{
    c->shared = c->lock && !lock_take(c->lock, c->chat.id);
    if (c->shared)
        conversation_notice(c, "open in another program too: what you write here "
                               "becomes a branch of its own");
}

static void ctx_count(struct conversation *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->path.len; i++)
        n += c->path.v[i].n_ids;
    c->ctx_used = (uint32_t)n;
}

/* Another model has to read everything anew. */
static void model_compare(struct conversation *c)
{
    if (*c->chat.model && *c->model_name && strcmp(c->chat.model, c->model_name) != 0)
        conversation_notice(c, "written with %s; /model chooses another model",
                            c->chat.model);
}

int conversation_show(struct conversation *c, int64_t chat_id, struct err *err)
{
    int64_t before = c->chat.id;
    if (chat_id) {
        if (chat_load(c, chat_id, err) < 0)
            return -1;
    } else {
        chat_release(&c->chat);
        c->chat = (struct chat){ .title = mem_strdup(""), .model = mem_strdup("") };
        path_cut(c, 0);
        c->stale = false;
    }
    if (before != chat_id) {
        queue_release(c);
        c->undone_leaf = 0;
    }
    if (before != chat_id || !chat_id)
        setup_show(c);
    if (before != chat_id)
        model_compare(c);
    lock_chat(c);
    ctx_count(c);
    prefix_restore(c);
    return 0;
}

const struct message *conversation_messages(struct conversation *c, size_t *n)
{
    size_t last = c->path.len;
    *n = c->path.len;
    c->path.v = mem_regrow(c->path.v, c->path.len + 1 + c->n_queue, sizeof *c->path.v);
    if (last && answer_is_open(c) && c->path.v[last - 1].id == c->answer.m.parent_id)
        c->path.v[(*n)++] = c->answer.m;
    for (size_t i = 0; i < c->n_queue; i++)
        c->path.v[(*n)++] = queue_message(c, i);
    return c->path.v;
}

int path_find(const struct conversation *c, int64_t id, size_t *at, struct err *err)
{
    for (*at = 0; *at < c->path.len; ++*at)
        if (c->path.v[*at].id == id)
            return 0;
    return err_set(err, "that message is not on this branch");
}

int conversation_show_message(struct conversation *c, int64_t chat_id, int64_t message_id,
                              struct err *err)
{
    int64_t leaf;
    size_t at;
    if (conversation_show(c, chat_id, err) < 0)
        return -1;
    if (!message_id || path_find(c, message_id, &at, err) == 0 ||
        message_id == c->answer.m.id)
        return 0;
    if (store_newest_leaf(c->store, message_id, &leaf, err) < 0 ||
        store_chat_set_leaf(c->store, chat_id, leaf, err) < 0)
        return -1;
    return conversation_show(c, chat_id, err);
}

/* ---- sending ------------------------------------------------------------- */

int path_check_free(struct conversation *c, struct err *err)
{
    if (c->answer.running)
        return err_set(err, "an answer is still being written; stop it first");
    if (c->waiting_leaf)
        return err_set(err, "a message is still waiting for the model");
    if (answer_save(&c->answer, c->store, 0, err) < 0)
        return -1;
    return c->stale ? conversation_reload(c, err) : 0;
}

/* Stores a new user message after the first `keep` messages of the path and has
 * it answered. */
static int send_after(struct conversation *c, size_t keep, const char *text, size_t bytes,
                      struct err *err)
{
    struct draft d;
    struct prompt p = { 0 };
    const char *system = c->settings.system;
    int rc = -1;
    if (path_check_free(c, err) < 0)
        return -1;
    draft_begin(&d, c, keep);
    if (!c->chat.id && system && *system)
        draft_add(&d, ROLE_SYSTEM, system, strlen(system), NULL);
    draft_add(&d, ROLE_USER, text, bytes, keep < c->path.len ? &c->path.v[keep] : NULL);
    if (c->phase == MODEL_READY) {
        if (generate_compose(c, d.v, d.n, &p, err) < 0)
            goto out;
        draft_ids(&d, &p, model_info(c->model)->tokenizer_id);
    }
    if (draft_store(&d, c, err) < 0)
        goto out;
    rc = 0;
    c->variant = 0;
    c->undone_leaf = 0;
    if (d.new_chat)
        lock_chat(c);
    if (c->phase == MODEL_READY)
        generate_start(c, c->path.v, c->path.len, &p);
    else
        c->waiting_leaf = c->path.v[c->path.len - 1].id;
    if (c->phase == MODEL_UNUSABLE)
        conversation_notice(c, "the message is kept, but there is no model: %s",
                            c->problem);
out:
    prompt_release(&p);
    draft_release(&d);
    return rc;
}

int conversation_send(struct conversation *c, const char *text, size_t bytes,
                      struct err *err)
{
    size_t at = 0;
    while (at < bytes && strchr(" \t\r\n", text[at]) && text[at])
        at++;
    if (at == bytes)
        return err_set(err, "there is nothing to send");
    return send_after(c, c->path.len, text, bytes, err);
}

/* The user's words in the model's mouth: the conversation goes on from them. */
static int answer_replace(struct conversation *c, size_t at, const char *text,
                          size_t bytes, struct err *err)
{
    struct draft d;
    if (path_check_free(c, err) < 0)
        return -1;
    draft_begin(&d, c, at);
    draft_add(&d, ROLE_ASSISTANT, text, bytes, &c->path.v[at]);
    int rc = draft_store(&d, c, err);
    draft_release(&d);
    if (rc == 0)
        ctx_count(c);
    return rc;
}

int conversation_edit(struct conversation *c, int64_t id, const char *text, size_t bytes,
                      struct err *err)
{
    size_t at;
    if (path_find(c, id, &at, err) < 0)
        return -1;
    if (c->path.v[at].role == ROLE_SYSTEM)
        return conversation_set_system(c, text, err);
    if (c->path.v[at].role == ROLE_ASSISTANT)
        return answer_replace(c, at, text, bytes, err);
    return send_after(c, at, text, bytes, err);
}

/* ---- versions ------------------------------------------------------------ */

int conversation_regenerate(struct conversation *c, int64_t id, struct err *err)
{
    struct prompt p = { 0 };
    size_t at;
    if (path_check_free(c, err) < 0 || path_find(c, id, &at, err) < 0)
        return -1;
    /* at: where the answer is, or is to be. */
    at += c->path.v[at].role == ROLE_USER;
    if (!at || c->path.v[at - 1].role != ROLE_USER)
        return err_set(err, "there is no message to answer");
    c->variant = at < c->path.len ? c->path.v[at].siblings : 0;
    if (c->phase != MODEL_READY) {
        c->waiting_leaf = c->path.v[at - 1].id;
        path_cut(c, at);
        return 0;
    }
    int rc = generate_compose(c, c->path.v, at, &p, err);
    if (rc == 0) {
        path_cut(c, at);
        generate_start(c, c->path.v, at, &p);
    }
    prompt_release(&p);
    return rc;
}

int path_show_leaf(struct conversation *c, int64_t leaf, struct err *err)
{
    if (store_chat_set_leaf(c->store, c->chat.id, leaf, err) < 0 ||
        conversation_reload(c, err) < 0)
        return -1;
    ctx_count(c);
    prefix_restore(c);
    return 0;
}

int conversation_sibling(struct conversation *c, int64_t id, int delta, struct err *err)
{
    int64_t *ids = NULL, leaf;
    size_t at, n, i = 0;
    int rc = -1;
    if (path_check_free(c, err) < 0 || path_find(c, id, &at, err) < 0 ||
        store_siblings(c->store, id, &ids, &n, err) < 0)
        return -1;
    while (i < n && ids[i] != id)
        i++;
    if ((delta < 0 && i < (size_t)-delta) || (delta > 0 && i + (size_t)delta >= n)) {
        err_set(err, "there is no %s version", delta < 0 ? "earlier" : "later");
        goto out;
    }
    i = delta < 0 ? i - (size_t)-delta : i + (size_t)delta;
    if (store_newest_leaf(c->store, ids[i], &leaf, err) == 0)
        rc = path_show_leaf(c, leaf, err);
out:
    free(ids);
    return rc;
}

/* ---- conversations -------------------------------------------------------- */

int conversation_delete(struct conversation *c, int64_t chat_id, struct err *err)
{
    if (conversation_busy(c) && c->answer.m.chat_id == chat_id)
        return err_set(err, "an answer is still being written there; stop it first");
    if (store_chat_delete(c->store, chat_id, err) < 0)
        return -1;
    worker_forget(c->worker, chat_id);
    if (c->answer.m.chat_id == chat_id)
        answer_release(&c->answer);
    return c->chat.id == chat_id ? conversation_show(c, 0, err) : 0;
}

int conversation_rename(struct conversation *c, int64_t chat_id, const char *title,
                        struct err *err)
{
    if (store_chat_rename(c->store, chat_id, title, err) < 0)
        return -1;
    return c->chat.id == chat_id ? conversation_reload(c, err) : 0;
}
