/* draft.c - new messages at the end of a branch. */
#include "app/draft.h"

#include "base/mem.h"

#include "app/setup.h"
#include "app/title.h"

#include <stdlib.h>
#include <string.h>

void path_cut(struct conversation *c, size_t n)
{
    while (c->path.len > n)
        message_release(&c->path.v[--c->path.len]);
}

void draft_begin(struct draft *d, const struct conversation *c, size_t keep)
{
    *d = (struct draft){ .v = mem_array(keep + 1, sizeof *d->v),
                         .n = keep,
                         .stored = keep };
    if (keep)
        memcpy(d->v, c->path.v, keep * sizeof *d->v);
}

static struct message *room(struct draft *d)
{
    d->v = mem_regrow(d->v, d->n + 1, sizeof *d->v);
    return &d->v[d->n++];
}

void draft_add(struct draft *d, enum role role, const char *text, size_t bytes,
               const struct message *old)
{
    *room(d) = (struct message){
        .role = role,
        .text = mem_strndup(text, bytes),
        .text_bytes = bytes,
        .siblings = old ? old->siblings + 1 : 1,
        .sibling_index = old ? old->siblings : 0,
    };
}

void draft_copy(struct draft *d, const struct message *m)
{
    struct tokens ids = { 0 };
    tokens_add(&ids, m->ids, m->n_ids);
    *room(d) = (struct message){
        .role = m->role,
        .state = m->state,
        .created_ms = m->created_ms,
        .text = mem_strndup(m->text, m->text_bytes),
        .text_bytes = m->text_bytes,
        .thinking = m->thinking ? mem_strndup(m->thinking, m->thinking_bytes) : NULL,
        .thinking_bytes = m->thinking_bytes,
        .ids = ids.v,
        .n_ids = m->n_ids,
        .ids_model = m->ids_model ? mem_strdup(m->ids_model) : NULL,
        .model = m->model ? mem_strdup(m->model) : NULL,
        .stats = m->stats,
        .siblings = 1,
    };
}

void draft_release(struct draft *d)
{
    for (size_t i = d->stored; i < d->n; i++)
        message_release(&d->v[i]);
    free(d->v);
}

void draft_ids(struct draft *d, const struct prompt *p, const char *tokenizer_id)
{
    for (size_t i = d->stored; i < d->n; i++) {
        struct tokens ids = { 0 };
        const int32_t *turn = prompt_turn(p, i, &d->v[i].n_ids);
        tokens_add(&ids, turn, d->v[i].n_ids);
        d->v[i].ids = ids.v;
        d->v[i].ids_model = mem_strdup(tokenizer_id);
    }
}

/* ---- storing --------------------------------------------------------------- */

static int chat_add(struct draft *d, struct conversation *c, struct err *err)
{
    const struct message *m = &d->v[d->n - 1];
    if (c->chat.id)
        return 0;
    char *title = title_from_text(m->text, m->text_bytes);
    int rc = store_chat_new(c->store, title, c->model_name, &c->chat.id, err);
    d->new_chat = rc == 0;
    free(title);
    return rc < 0 ? -1 : setup_save(c, err);
}

static int all_add(struct draft *d, struct conversation *c, struct err *err)
{
    if (chat_add(d, c, err) < 0)
        return -1;
    for (size_t i = d->stored; i < d->n; i++) {
        d->v[i].chat_id = c->chat.id;
        d->v[i].parent_id = i ? d->v[i - 1].id : 0;
        if (store_message_add(c->store, &d->v[i], err) < 0)
            return -1;
    }
    return 0;
}

static void show(struct draft *d, struct conversation *c)
{
    struct chat chat;
    path_cut(c, d->stored);
    c->path.v = mem_regrow(c->path.v, d->n + 1, sizeof *c->path.v);
    for (size_t i = d->stored; i < d->n; i++)
        c->path.v[c->path.len++] = d->v[i];
    d->n = d->stored;
    if (store_chat_get(c->store, c->chat.id, &chat, NULL) == 0) {
        chat_release(&c->chat);
        c->chat = chat;
    }
}

int draft_store(struct draft *d, struct conversation *c, struct err *err)
{
    int rc = store_begin(c->store, err);
    if (rc == 0)
        rc = all_add(d, c, err);
    if (store_end(c->store, rc, err) < 0) {
        if (d->new_chat)
            c->chat.id = 0;
        return -1;
    }
    show(d, c);
    return 0;
}
