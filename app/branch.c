/* branch.c - what makes another branch of what was said, or goes on at its end.
 * Invariant: as in chat.c, an action happens as a whole or changes nothing. */
#include "base/mem.h"

#include "app/draft.h"
#include "app/generate.h"
#include "app/setup.h"

#include <stdlib.h>
#include <string.h>

enum {
    READ_WORTH = 32,      /* tokens from which on a rate means something */
    UNKNOWN_WORTH = 2000, /* that may take a while at any rate */
};

/* ---- back and forth --------------------------------------------------------- */

int conversation_undo(struct conversation *c, char **text, struct err *err)
{
    *text = NULL;
    if (path_check_free(c, err) < 0)
        return -1;
    size_t at = c->path.len;
    while (at > 0 && c->path.v[at - 1].role != ROLE_USER)
        at--;
    if (at == 0)
        return err_set(err, "there is nothing to take back");
    at--;
    int64_t leaf = c->path.v[c->path.len - 1].id;
    char *said = mem_strdup(c->path.v[at].text);
    if (path_show_leaf(c, at ? c->path.v[at - 1].id : 0, err) < 0) {
        free(said);
        return -1;
    }
    if (!c->undone_leaf)
        c->undone_leaf = leaf;
    *text = said;
    return 0;
}

int conversation_redo(struct conversation *c, struct err *err)
{
    int64_t leaf = c->undone_leaf, last;
    if (path_check_free(c, err) < 0)
        return -1;
    last = c->path.len ? c->path.v[c->path.len - 1].id : 0;
    if (!leaf && last && store_newest_leaf(c->store, last, &leaf, err) < 0)
        return -1;
    if (!leaf || leaf == last)
        return err_set(err, "there is nothing that was taken back");
    if (path_show_leaf(c, leaf, err) < 0)
        return -1;
    c->undone_leaf = 0;
    return 0;
}

/* ---- copies ------------------------------------------------------------------ */

/* The title of a conversation that is made from another. */
static char *fork_title(const struct conversation *c)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s (fork)", c->chat.title);
    return buf_detach(&b);
}

/* Everything as it is, in a conversation of its own. */
static int fork_store(struct conversation *c, size_t n, int64_t *id, struct err *err)
{
    char *title = fork_title(c);
    int64_t parent = 0;
    int rc = store_chat_new(c->store, title, c->chat.model, id, err);
    if (rc == 0)
        rc = store_chat_rename(c->store, *id, title, err); /* which stays */
    free(title);
    if (rc == 0 && c->chat.settings && *c->chat.settings)
        rc = store_chat_set_settings(c->store, *id, c->chat.settings, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct message m = c->path.v[i]; /* lends its texts */
        m.chat_id = *id;
        m.parent_id = parent;
        rc = store_message_add(c->store, &m, err);
        parent = m.id;
    }
    return rc;
}

int conversation_fork(struct conversation *c, int64_t id, struct err *err)
{
    size_t at = c->path.len;
    int64_t chat = 0;
    if (path_check_free(c, err) < 0 || (id && path_find(c, id, &at, err) < 0))
        return -1;
    size_t n = id ? at + 1 : c->path.len;
    if (!n)
        return err_set(err, "this conversation is still empty");
    int rc = store_begin(c->store, err);
    if (rc == 0)
        rc = fork_store(c, n, &chat, err);
    if (store_end(c->store, rc, err) < 0)
        return -1;
    return conversation_show(c, chat, err);
}

int conversation_set_system(struct conversation *c, const char *text, struct err *err)
{
    struct draft d;
    if (!c->chat.id)
        return setup_set(c, "system", *text ? text : NULL, err);
    if (path_check_free(c, err) < 0)
        return -1;
    bool has = c->path.len && c->path.v[0].role == ROLE_SYSTEM;
    if (has ? !strcmp(c->path.v[0].text, text) : !*text)
        return 0;
    if (!*text && c->path.len == has)
        return err_set(err, "there is no message yet to keep without it");
    draft_begin(&d, c, 0);
    if (*text)
        draft_add(&d, ROLE_SYSTEM, text, strlen(text), has ? &c->path.v[0] : NULL);
    for (size_t i = has; i < c->path.len; i++)
        draft_copy(&d, &c->path.v[i]);
    int rc = draft_store(&d, c, err);
    draft_release(&d);
    return rc < 0 ? -1 : conversation_show(c, c->chat.id, err);
}

/* ---- what it costs ----------------------------------------------------------- */

/* Tokens a second that were read of late in this conversation, 0: not known. */
static double reading_rate(const struct conversation *c)
{
    double rate = 0;
    for (size_t i = 0; i < c->path.len; i++) {
        const struct message *m = &c->path.v[i];
        if (m->stats.evaluated_tokens >= READ_WORTH && m->stats.prefill_tps > 0)
            rate = m->stats.prefill_tps;
    }
    return rate;
}

struct reading conversation_reading(const struct conversation *c, size_t keep)
{
    struct reading r = { 0 };
    double rate = reading_rate(c);
    for (size_t i = keep; i < c->path.len; i++) {
        const struct message *m = &c->path.v[i];
        /* A text that was never read: some four bytes are a token. */
        r.tokens += m->n_ids ? m->n_ids : m->text_bytes / 4;
    }
    if (rate > 0)
        r.seconds = (double)r.tokens / rate;
    return r;
}

void conversation_editing(struct conversation *c, int64_t id)
{
    struct prompt p = { 0 };
    size_t at;
    if (c->phase != MODEL_READY || conversation_busy(c) ||
        path_find(c, id, &at, NULL) < 0 || c->path.v[at].role != ROLE_USER)
        return;
    const struct prompt_style style = generate_style(c);
    if (prompt_compose(&p, c->model, c->path.v, at + 1, &style, NULL) == 0)
        worker_measure(c->worker, id, &p.ids);
    prompt_release(&p);
}

void conversation_measured(struct conversation *c, const struct worker_event *e)
{
    double rate = reading_rate(c);
    uint64_t again = e->total - e->reused;
    size_t at;
    if (conversation_busy(c) || path_find(c, e->keep_id, &at, NULL) < 0)
        return;
    if (rate > 0 && (double)again > rate)
        conversation_notice(c, "sending this reads %llu tokens again, some %.0f s",
                            (unsigned long long)again, (double)again / rate);
    else if (rate <= 0 && again >= UNKNOWN_WORTH)
        conversation_notice(c, "sending this reads %llu tokens again",
                            (unsigned long long)again);
}

/* ---- going on ---------------------------------------------------------------- */

/* The prompt that ends in the middle of the last answer. */
static int continue_compose(struct conversation *c, struct prompt *p, struct err *err)
{
    const struct message *m = &c->path.v[c->path.len - 1];
    const struct model_info *info = model_info(c->model);
    bool known = m->n_ids && m->ids_model && !strcmp(m->ids_model, info->tokenizer_id);
    struct prompt_style style = generate_style(c);
    size_t n = m->n_ids;
    style.thinking = style.thinking && known;
    if (prompt_compose(p, c->model, c->path.v, c->path.len - 1, &style, err) < 0)
        return -1;
    if (known) {
        while (n && model_is_end(c->model, m->ids[n - 1]))
            n--;
        p->ids.len = p->starts[p->n_turns];
        tokens_add(&p->ids, m->ids, n);
    } else {
        model_tokenize(c->model, m->text, m->text_bytes, 0, &p->ids);
    }
    if (p->ids.len >= c->ctx_tokens)
        return err_set(err, "context full: %zu of %u tokens; there is no room to go on",
                       p->ids.len, c->ctx_tokens);
    return 0;
}

int conversation_continue(struct conversation *c, struct err *err)
{
    struct prompt p = { 0 };
    if (path_check_free(c, err) < 0)
        return -1;
    size_t n = c->path.len;
    if (n < 2 || c->path.v[n - 1].role != ROLE_ASSISTANT)
        return err_set(err, "there is no answer that could go on");
    if (c->phase != MODEL_READY)
        return err_set(err, "there is no model to go on with: %s",
                       c->problem ? c->problem : "it is still being loaded");
    int rc = continue_compose(c, &p, err);
    if (rc == 0) {
        struct message m = c->path.v[n - 1]; /* lives on until the end of this */
        c->variant = m.siblings - 1;
        p.begun[0] = m.text_bytes > 0;
        p.begun[1] = m.thinking_bytes > 0;
        generate_start(c, c->path.v, n - 1, &p);
        answer_resume(&c->answer, &m);
        path_cut(c, n - 1);
    }
    prompt_release(&p);
    return rc;
}
