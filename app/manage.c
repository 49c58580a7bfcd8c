/* manage.c - `tern ls`, `show`, `search` and `rm`. */
#include "app/command.h"

#include "base/mem.h"

#include "app/json.h"
#include "app/keep.h"
#include "app/out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEARCH_HITS = 50, TIDY_MS = 10000 };

static void chat_print_json(struct json_writer *w, const struct chat *c)
{
    json_open(w, '{');
    json_key(w, "id");
    json_int(w, c->id);
    json_key(w, "title");
    json_str(w, c->title);
    json_key(w, "model");
    json_str(w, c->model);
    json_key(w, "created_ms");
    json_int(w, c->created_ms);
    json_key(w, "updated_ms");
    json_int(w, c->updated_ms);
    json_key(w, "messages");
    json_int(w, c->n_messages);
    json_key(w, "bytes");
    json_int(w, (int64_t)c->n_bytes);
    json_key(w, "pinned");
    json_bool(w, c->pinned);
    json_close(w, '}');
}

static void chats_print_json(const struct chat_list *l)
{
    struct buf b = BUF_INIT;
    struct json_writer w = { .out = &b };
    json_open(&w, '[');
    for (size_t i = 0; i < l->len; i++)
        chat_print_json(&w, &l->v[i]);
    json_close(&w, ']');
    out_printf("%s\n", buf_cstr(&b));
    buf_release(&b);
}

int cmd_ls(struct env *env, struct err *err)
{
    struct store *st = NULL;
    struct chat_list list = { 0 };
    int rc = -1;
    if (env_store(env, &st, err) < 0 || store_chat_list(st, &list, err) < 0)
        goto out;
    rc = EXIT_OK;
    if (env->opt.json) {
        chats_print_json(&list);
        goto out;
    }
    for (size_t i = 0; i < list.len; i++) {
        struct buf date = BUF_INIT;
        date_format(&date, list.v[i].updated_ms);
        out_printf("%5lld %c%s  %4u  ", (long long)list.v[i].id,
                   list.v[i].pinned ? '^' : ' ', buf_cstr(&date), list.v[i].n_messages);
        out_line(list.v[i].title);
        buf_release(&date);
    }
out:
    chat_list_release(&list);
    store_close(st);
    return rc;
}

/* ---- show ---------------------------------------------------------------- */

static void message_print(const struct message *m)
{
    static const char *const names[ROLE_COUNT] = {
        [ROLE_SYSTEM] = "System", [ROLE_USER] = "You", [ROLE_ASSISTANT] = "Answer"
    };
    out_printf("\n%s", names[m->role]);
    if (m->siblings > 1)
        out_printf(" (version %u of %u)", m->sibling_index + 1, m->siblings);
    if (m->state != STATE_COMPLETE)
        out_printf(" [%s]", state_name(m->state));
    out_printf(":\n");
    out_text(m->text, m->text_bytes);
    out_printf("\n");
}

int cmd_show(struct env *env, struct err *err)
{
    struct store *st = NULL;
    struct chat chat = { 0 };
    struct message_list path = { 0 };
    int64_t id;
    int rc = -1;
    if (env_store(env, &st, err) < 0 || env_chat_id(st, env->opt.args[0], &id, err) < 0 ||
        store_chat_get(st, id, &chat, err) < 0 ||
        store_path(st, chat.leaf_id, &path, err) < 0)
        goto out;
    out_printf("%lld  ", (long long)chat.id);
    out_line(chat.title);
    for (size_t i = 0; i < path.len; i++)
        message_print(&path.v[i]);
    rc = EXIT_OK;
out:
    message_list_release(&path);
    chat_release(&chat);
    store_close(st);
    return rc;
}

/* ---- search -------------------------------------------------------------- */

/* The snippet with its match marks as bold on a terminal, else without. */
static void snippet_print(const char *snippet)
{
    bool bold = isatty(STDOUT_FILENO);
    while (*snippet) {
        size_t n = strcspn(snippet, "\002\003\n");
        out_text(snippet, n);
        snippet += n;
        if (*snippet == '\n')
            out_text(" ", 1);
        else if (*snippet && bold)
            out_printf(*snippet == '\002' ? "\033[1m" : "\033[22m");
        snippet += *snippet != 0;
    }
    out_printf("\n");
}

static void hits_print_json(const struct hit_list *l)
{
    struct buf b = BUF_INIT;
    struct json_writer w = { .out = &b };
    json_open(&w, '[');
    for (size_t i = 0; i < l->len; i++) {
        json_open(&w, '{');
        json_key(&w, "conversation");
        json_int(&w, l->v[i].chat_id);
        json_key(&w, "message");
        json_int(&w, l->v[i].message_id);
        json_key(&w, "title");
        json_str(&w, l->v[i].title);
        json_key(&w, "snippet");
        json_str(&w, l->v[i].snippet);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    out_printf("%s\n", buf_cstr(&b));
    buf_release(&b);
}

int cmd_search(struct env *env, struct err *err)
{
    struct store *st = NULL;
    struct hit_list hits = { 0 };
    struct buf words = BUF_INIT;
    int rc = -1;
    for (int i = 0; i < env->opt.n_args; i++)
        buf_printf(&words, "%s%s", i ? " " : "", env->opt.args[i]);
    if (env_store(env, &st, err) < 0 ||
        store_search(st, buf_cstr(&words), SEARCH_HITS, &hits, err) < 0)
        goto out;
    rc = EXIT_OK;
    if (env->opt.json)
        hits_print_json(&hits);
    for (size_t i = 0; !env->opt.json && i < hits.len; i++) {
        out_printf("%5lld  ", (long long)hits.v[i].chat_id);
        out_line(hits.v[i].title);
        out_printf("       ");
        snippet_print(hits.v[i].snippet);
    }
    if (!hits.len && !env->opt.json)
        rc = err_set(err, "no message contains \"%s\"", buf_cstr(&words));
out:
    buf_release(&words);
    hit_list_release(&hits);
    store_close(st);
    return rc;
}

/* ---- rm ------------------------------------------------------------------ */

int cmd_rm(struct env *env, struct err *err)
{
    struct store *st = NULL;
    char *root = keep_root();
    int rc = -1;
    if (env_store(env, &st, err) < 0)
        goto out;
    for (int i = 0; i < env->opt.n_args; i++) {
        struct chat chat = { 0 };
        int64_t id;
        if (env_chat_id(st, env->opt.args[i], &id, err) < 0 ||
            store_chat_get(st, id, &chat, err) < 0)
            goto out;
        chat_release(&chat);
        if (store_chat_delete(st, id, err) < 0 ||
            (root && keep_remove(root, id, err) < 0))
            goto out;
    }
    rc = store_tidy_all(st, TIDY_MS, err);
out:
    free(root);
    store_close(st);
    return rc;
}
