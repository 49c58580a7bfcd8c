/* transfer_out.c - `tern export`: conversations to Markdown and JSON. */
#include "app/transfer.h"

#include "base/mem.h"

#include "app/command.h"
#include "app/json.h"
#include "app/out.h"
#include "app/tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- Markdown ------------------------------------------------------------ */

/* Text that stays one line of Markdown. */
static void heading_add(struct buf *out, const char *s)
{
    for (; *s; s++)
        buf_char(out, *s == '\n' || *s == '\r' ? ' ' : *s);
}

static void quote_add(struct buf *out, const char *s, size_t n)
{
    buf_str(out, "> ");
    for (size_t i = 0; i < n; i++) {
        buf_char(out, s[i]);
        if (s[i] == '\n')
            buf_str(out, "> ");
    }
    buf_str(out, "\n\n");
}

static void message_markdown(struct buf *out, const struct message *m, bool thinking)
{
    static const char *const names[ROLE_COUNT] = {
        [ROLE_SYSTEM] = "System", [ROLE_USER] = "User", [ROLE_ASSISTANT] = "Assistant"
    };
    buf_printf(out, "## %s\n\n", names[m->role]);
    if (thinking && m->thinking_bytes)
        quote_add(out, m->thinking, m->thinking_bytes);
    buf_add(out, m->text, m->text_bytes);
    buf_str(out, m->text_bytes && m->text[m->text_bytes - 1] == '\n' ? "\n" : "\n\n");
    if (m->state != STATE_COMPLETE)
        buf_printf(out, "*(%s)*\n\n", state_name(m->state));
}

int transfer_markdown(struct store *st, int64_t chat_id, bool thinking, struct buf *out,
                      struct err *err)
{
    struct chat chat = { 0 };
    struct message_list path = { 0 };
    int rc = -1;
    if (store_chat_get(st, chat_id, &chat, err) < 0 ||
        store_path(st, chat.leaf_id, &path, err) < 0)
        goto out;
    buf_str(out, "# ");
    heading_add(out, chat.title);
    buf_str(out, "\n\n");
    for (size_t i = 0; i < path.len; i++)
        message_markdown(out, &path.v[i], thinking);
    buf_truncate(out, out->len - 1);
    rc = 0;
out:
    message_list_release(&path);
    chat_release(&chat);
    return rc;
}

/* ---- plain text ----------------------------------------------------------- */

static void message_text(struct buf *out, const struct message *m, bool thinking)
{
    static const char *const names[ROLE_COUNT] = {
        [ROLE_SYSTEM] = "System", [ROLE_USER] = "You", [ROLE_ASSISTANT] = "Answer"
    };
    buf_printf(out, "%s:\n", names[m->role]);
    if (thinking && m->thinking_bytes) {
        buf_str(out, "(");
        buf_add(out, m->thinking, m->thinking_bytes);
        buf_str(out, ")\n\n");
    }
    buf_add(out, m->text, m->text_bytes);
    buf_str(out, m->text_bytes && m->text[m->text_bytes - 1] == '\n' ? "\n" : "\n\n");
}

int transfer_text(struct store *st, int64_t chat_id, bool thinking, struct buf *out,
                  struct err *err)
{
    struct chat chat = { 0 };
    struct message_list path = { 0 };
    int rc = -1;
    if (store_chat_get(st, chat_id, &chat, err) < 0 ||
        store_path(st, chat.leaf_id, &path, err) < 0)
        goto out;
    heading_add(out, chat.title);
    buf_str(out, "\n\n");
    for (size_t i = 0; i < path.len; i++)
        message_text(out, &path.v[i], thinking);
    buf_truncate(out, out->len - 1);
    rc = 0;
out:
    message_list_release(&path);
    chat_release(&chat);
    return rc;
}

/* ---- JSON ---------------------------------------------------------------- */

static void stats_json(struct json_writer *w, const struct message_stats *s)
{
    json_key(w, "stats");
    json_open(w, '{');
    json_key(w, "prompt_tokens");
    json_int(w, s->prompt_tokens);
    json_key(w, "reused_tokens");
    json_int(w, s->reused_tokens);
    json_key(w, "evaluated_tokens");
    json_int(w, s->evaluated_tokens);
    json_key(w, "generated_tokens");
    json_int(w, s->generated_tokens);
    json_key(w, "ttft_ms");
    json_number(w, s->ttft_ms);
    json_key(w, "prefill_tps");
    json_number(w, s->prefill_tps);
    json_key(w, "decode_tps");
    json_number(w, s->decode_tps);
    json_key(w, "thinking_tokens");
    json_int(w, s->thinking_tokens);
    json_key(w, "thinking_ms");
    json_number(w, s->thinking_ms);
    json_close(w, '}');
}

static void ids_json(struct json_writer *w, const struct message *m)
{
    json_key(w, "tokenizer");
    json_str(w, m->ids_model);
    json_key(w, "ids");
    json_open(w, '[');
    for (size_t i = 0; i < m->n_ids; i++)
        json_int(w, m->ids[i]);
    json_close(w, ']');
}

static void message_json(struct json_writer *w, const struct message *m, bool thinking)
{
    json_open(w, '{');
    json_key(w, "id");
    json_int(w, m->id);
    json_key(w, "parent");
    json_int(w, m->parent_id);
    json_key(w, "role");
    json_str(w, role_name(m->role));
    json_key(w, "state");
    json_str(w, state_name(m->state));
    json_key(w, "created_ms");
    json_int(w, m->created_ms);
    json_key(w, "text");
    json_text(w, m->text, m->text_bytes);
    if (thinking && m->thinking) {
        json_key(w, "thinking");
        json_text(w, m->thinking, m->thinking_bytes);
    }
    if (m->n_ids && (thinking || !m->thinking))
        ids_json(w, m);
    if (m->model) {
        json_key(w, "model");
        json_str(w, m->model);
    }
    if (m->role == ROLE_ASSISTANT)
        stats_json(w, &m->stats);
    json_close(w, '}');
}

int transfer_json(struct store *st, int64_t chat_id, bool thinking, struct buf *out,
                  struct err *err)
{
    struct chat chat = { 0 };
    struct message_list all = { 0 };
    int rc = -1;
    if (store_chat_get(st, chat_id, &chat, err) < 0 ||
        tree_load(st, &chat, &all, err) < 0)
        goto out;
    struct json_writer w = { .out = out };
    json_open(&w, '{');
    json_key(&w, "format");
    json_str(&w, "tern-conversation");
    json_key(&w, "version");
    json_int(&w, 1);
    json_key(&w, "title");
    json_str(&w, chat.title);
    json_key(&w, "model");
    json_str(&w, chat.model);
    json_key(&w, "pinned");
    json_bool(&w, chat.pinned);
    json_key(&w, "settings");
    json_str(&w, chat.settings);
    json_key(&w, "leaf");
    json_int(&w, chat.leaf_id);
    json_key(&w, "messages");
    json_open(&w, '[');
    for (size_t i = 0; i < all.len; i++)
        message_json(&w, &all.v[i], thinking);
    json_close(&w, ']');
    json_close(&w, '}');
    buf_char(out, '\n');
    rc = 0;
out:
    message_list_release(&all);
    chat_release(&chat);
    return rc;
}

/* ---- command ------------------------------------------------------------- */

int cmd_export(struct env *env, struct err *err)
{
    static const struct {
        const char *name;
        int (*write)(struct store *st, int64_t chat_id, bool thinking, struct buf *out,
                     struct err *err);
    } formats[] = { { "md", transfer_markdown },
                    { "json", transfer_json },
                    { "text", transfer_text } };
    const char *format = env->opt.format ? env->opt.format : "md";
    struct store *st = NULL;
    struct buf b = BUF_INIT;
    int64_t id;
    int rc = -1, i = 0;
    while (i < 3 && strcmp(formats[i].name, format) != 0)
        i++;
    if (i == 3)
        return err_set(err, "--format needs md, json or text, not \"%s\"", format);
    if (env_store(env, &st, err) < 0 || env_chat_id(st, env->opt.args[0], &id, err) < 0)
        goto out;
    rc = formats[i].write(st, id, !env->opt.no_thinking, &b, err);
    if (rc == 0)
        out_text(buf_cstr(&b), b.len);
out:
    buf_release(&b);
    store_close(st);
    return rc;
}
