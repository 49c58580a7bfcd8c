/* transfer_in.c - `tern import`: JSON of transfer_out.c, and what other programs
 * write (foreign.h), to conversations. The file is hostile until each field is
 * checked; fields that are not known here, and states of a later version, do not
 * matter. */
#include "app/transfer.h"

#include "base/file.h"
#include "base/mem.h"

#include "app/command.h"
#include "app/foreign.h"
#include "app/json.h"
#include "app/out.h"
#include "app/title.h"

#include <stdlib.h>
#include <string.h>

struct import {
    struct store *st; /* NULL: only check */
    const struct json_doc *d;
    uint32_t root; /* the conversation in it */
    int64_t chat_id;
    struct pair {
        int64_t theirs, ours; /* ids of messages, ascending */
    } * ids;
    size_t n_ids;
};

/* Our id of a message of the file, 0 where there is none (yet). */
static int64_t id_ours(const struct import *im, int64_t theirs)
{
    size_t lo = 0, hi = im->n_ids;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (im->ids[mid].theirs == theirs)
            return im->ids[mid].ours;
        if (im->ids[mid].theirs < theirs)
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

static int64_t get_int(const struct json_doc *d, uint32_t object, const char *key)
{
    int64_t v = 0;
    json_get_int(d, json_get(d, object, key), 0, INT64_MAX, &v);
    return v;
}

static const char *get_text(const struct json_doc *d, uint32_t object, const char *key)
{
    return json_get_text(d, json_get(d, object, key), NULL, NULL);
}

static uint32_t get_count(const struct json_doc *d, uint32_t object, const char *key)
{
    int64_t v = get_int(d, object, key);
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static struct message_stats get_stats(const struct json_doc *d, uint32_t s)
{
    return (struct message_stats){
        .prompt_tokens = get_count(d, s, "prompt_tokens"),
        .reused_tokens = get_count(d, s, "reused_tokens"),
        .evaluated_tokens = get_count(d, s, "evaluated_tokens"),
        .generated_tokens = get_count(d, s, "generated_tokens"),
        .ttft_ms = json_get_number(d, json_get(d, s, "ttft_ms"), 0),
        .prefill_tps = json_get_number(d, json_get(d, s, "prefill_tps"), 0),
        .decode_tps = json_get_number(d, json_get(d, s, "decode_tps"), 0),
        .thinking_tokens = get_count(d, s, "thinking_tokens"),
        .thinking_ms = json_get_number(d, json_get(d, s, "thinking_ms"), 0),
    };
}

/* A copy of a text member into field; false if it holds a NUL byte, which no
 * text of ours has. */
static bool copy_text(const struct json_doc *d, uint32_t v, char **field, size_t *bytes)
{
    const char *text = json_get_text(d, v, bytes, NULL);
    *field = text ? mem_strndup(text, *bytes) : NULL;
    return !text || strlen(text) == *bytes;
}

static int get_ids(const struct json_doc *d, uint32_t object, struct message *m,
                   struct err *err)
{
    uint32_t list = json_get(d, object, "ids");
    const char *tokenizer = get_text(d, object, "tokenizer");
    if (!json_count(d, list) || !tokenizer)
        return 0;
    m->ids = mem_array(json_count(d, list), sizeof *m->ids);
    m->ids_model = mem_strdup(tokenizer);
    for (uint32_t v = json_first(d, list); v; v = json_next(d, v)) {
        int64_t id;
        if (!json_get_int(d, v, 0, INT32_MAX, &id))
            return err_set(err, "a token id is no whole number");
        m->ids[m->n_ids++] = (int32_t)id;
    }
    return 0;
}

static int get_message(const struct import *im, uint32_t object, struct message *m,
                       struct err *err)
{
    const struct json_doc *d = im->d;
    int role = role_from_name(get_text(d, object, "role"));
    int state = state_from_name(get_text(d, object, "state"));
    int64_t parent = get_int(d, object, "parent");
    size_t model_bytes;
    *m = (struct message){
        .chat_id = im->chat_id,
        .parent_id = id_ours(im, parent),
        .role = role < 0 ? ROLE_USER : (enum role)role,
        .state = state < 0 ? STATE_COMPLETE : (enum message_state)state,
        .created_ms = get_int(d, object, "created_ms"),
        .stats = get_stats(d, json_get(d, object, "stats")),
    };
    bool clean =
        copy_text(d, json_get(d, object, "text"), &m->text, &m->text_bytes) &&
        copy_text(d, json_get(d, object, "thinking"), &m->thinking, &m->thinking_bytes) &&
        copy_text(d, json_get(d, object, "model"), &m->model, &model_bytes);
    if (role < 0)
        return err_set(err, "its role is none of system, user and assistant");
    if (!m->text || !clean)
        return err_set(err, "it has no proper text");
    if (parent && !m->parent_id)
        return err_set(err, "its parent %lld does not come before it", (long long)parent);
    return get_ids(d, object, m, err);
}

static int message_import(struct import *im, uint32_t object, struct err *err)
{
    struct message m = { 0 };
    int64_t id = get_int(im->d, object, "id");
    int64_t before = im->n_ids ? im->ids[im->n_ids - 1].theirs : 0;
    int rc = -1;
    if (id <= before) {
        err_set(err, "its id is not above the one before it");
        goto out;
    }
    if (get_message(im, object, &m, err) < 0 ||
        (im->st && store_message_add(im->st, &m, err) < 0))
        goto out;
    im->ids[im->n_ids++] = (struct pair){ id, im->st ? m.id : id };
    rc = 0;
out:
    message_release(&m);
    if (rc < 0)
        err_prefix(err, "message %zu", im->n_ids + 1);
    return rc;
}

static int messages_import(struct import *im, struct err *err)
{
    uint32_t list = json_get(im->d, im->root, "messages");
    im->n_ids = 0;
    for (uint32_t v = json_first(im->d, list); v; v = json_next(im->d, v))
        if (message_import(im, v, err) < 0)
            return -1;
    return 0;
}

static int chat_fill(struct import *im, struct err *err)
{
    const struct json_doc *d = im->d;
    const char *title = get_text(d, im->root, "title");
    const char *model = get_text(d, im->root, "model");
    const char *settings = get_text(d, im->root, "settings");
    bool pinned = json_get_bool(d, json_get(d, im->root, "pinned"), false);
    if (store_chat_new(im->st, title ? title : "", model ? model : "", &im->chat_id,
                       err) < 0 ||
        (title && store_chat_rename(im->st, im->chat_id, title, err) < 0) ||
        (settings && store_chat_set_settings(im->st, im->chat_id, settings, err) < 0) ||
        (pinned && store_chat_set_pinned(im->st, im->chat_id, true, err) < 0) ||
        messages_import(im, err) < 0)
        return -1;
    int64_t leaf = id_ours(im, get_int(d, im->root, "leaf"));
    return leaf ? store_chat_set_leaf(im->st, im->chat_id, leaf, err) : 0;
}

/* After a first pass has found nothing wrong. */
static int chat_import(struct import *im, struct store *st, struct err *err)
{
    im->st = st;
    int rc = store_begin(st, err);
    if (rc == 0)
        rc = chat_fill(im, err);
    return store_end(st, rc, err);
}

static bool is_ours(const struct json_doc *d, uint32_t v)
{
    const char *format = json_kind(d, v) == JSON_OBJECT ? get_text(d, v, "format") : NULL;
    return format && !strcmp(format, "tern-conversation");
}

static int document_check(const struct json_doc *d, uint32_t v, struct err *err)
{
    int64_t version = get_int(d, v, "version");
    if (!is_ours(d, v))
        return err_set(err, "this is not a conversation that Tern has exported");
    if (version != 1)
        return err_set(err, "the file has version %lld, this program reads version 1",
                       (long long)version);
    if (json_kind(d, json_get(d, v, "messages")) != JSON_ARRAY)
        return err_set(err, "the file has no list of messages");
    return 0;
}

/* One of ours, anywhere in the document. */
static int ours_import(struct store *st, const struct json_doc *d, uint32_t v,
                       int64_t *chat_id, struct err *err)
{
    struct import im = { .d = d, .root = v };
    *chat_id = 0;
    if (document_check(d, v, err) < 0)
        return -1;
    im.ids = mem_array(json_count(d, json_get(d, v, "messages")), sizeof *im.ids);
    int rc = messages_import(&im, err);
    if (rc == 0)
        rc = chat_import(&im, st, err);
    if (rc == 0)
        *chat_id = im.chat_id;
    free(im.ids);
    return rc;
}

int transfer_import(struct store *st, const char *json, size_t n, int64_t *chat_id,
                    struct err *err)
{
    struct json_doc *d = NULL;
    *chat_id = 0;
    int rc = json_parse(&d, json, n, err);
    if (rc == 0)
        rc = ours_import(st, d, json_root(d), chat_id, err);
    json_doc_close(d);
    return rc;
}

/* ---- any form ---------------------------------------------------------------- */

static int foreign_store(struct store *st, const struct foreign *f,
                         struct import_result *result, struct err *err)
{
    const struct message_list *l = &f->messages;
    int64_t parent = 0, now = f->created_ms;
    size_t first = 0;
    while (first + 1 < l->len && l->v[first].role != ROLE_USER)
        first++;
    char *title = title_from_text(l->v[first].text, l->v[first].text_bytes);
    bool given = f->title && *f->title;
    int rc = store_chat_new(st, given ? f->title : title, f->model ? f->model : "",
                            &result->last, err);
    if (rc == 0 && given)
        rc = store_chat_rename(st, result->last, f->title, err);
    for (size_t i = 0; rc == 0 && i < l->len; i++) {
        struct message m = l->v[i]; /* lends its texts */
        m.chat_id = result->last;
        m.parent_id = parent;
        m.created_ms = m.created_ms ? m.created_ms : now;
        now = m.created_ms;
        rc = store_message_add(st, &m, err);
        parent = m.id;
    }
    free(title);
    result->n += rc == 0;
    result->skipped += f->skipped;
    return rc;
}

static int value_import(struct store *st, const struct json_doc *d, uint32_t v,
                        struct import_result *result, struct err *err)
{
    struct foreign f;
    if (is_ours(d, v)) {
        int rc = ours_import(st, d, v, &result->last, err);
        result->n += rc == 0;
        return rc;
    }
    int rc = foreign_read(&f, d, v, err);
    if (rc == 0)
        rc = foreign_store(st, &f, result, err);
    foreign_release(&f);
    return rc;
}

/* One conversation, or a list of them. */
static int document_import(struct store *st, const struct json_doc *d,
                           struct import_result *result, struct err *err)
{
    uint32_t root = json_root(d), list = root, first;
    if (is_ours(d, root) || foreign_is(d, root))
        return value_import(st, d, root, result, err);
    if (json_kind(d, root) == JSON_OBJECT)
        list = json_get(d, root, "conversations");
    first = list && json_kind(d, list) == JSON_ARRAY ? json_first(d, list) : 0;
    if (!first || !(is_ours(d, first) || foreign_is(d, first)))
        return err_set(err, "this is not a conversation that Tern has exported, nor one "
                            "of another form that it knows");
    size_t i = 1;
    for (uint32_t v = first; v; v = json_next(d, v), i++)
        if (value_import(st, d, v, result, err) < 0)
            return err_prefix(err, "conversation %zu", i);
    return 0;
}

static int json_import(struct store *st, const char *text, size_t n,
                       struct import_result *result, struct err *err)
{
    struct json_doc *d = NULL;
    int rc = json_parse(&d, text, n, err);
    if (rc == 0)
        rc = document_import(st, d, result, err);
    json_doc_close(d);
    return rc;
}

/* A conversation a line; empty lines are none. */
static int lines_import(struct store *st, const char *text, size_t n,
                        struct import_result *result, struct err *err)
{
    size_t line = 1, at = 0;
    for (; at < n; line++) {
        const char *newline = memchr(text + at, '\n', n - at);
        size_t bytes = newline ? (size_t)(newline - (text + at)) : n - at, blank = 0;
        while (blank < bytes && strchr(" \t\r", text[at + blank]) && text[at + blank])
            blank++;
        if (blank < bytes && json_import(st, text + at, bytes, result, err) < 0)
            return err_prefix(err, "line %zu", line);
        at += bytes + 1;
    }
    return 0;
}

/* Whether the first line is an object of its own and another one follows. */
static bool has_lines(const char *text, size_t n)
{
    const char *newline = memchr(text, '\n', n);
    size_t bytes = newline ? (size_t)(newline - text) : n;
    while (bytes && strchr(" \t\r", text[bytes - 1]))
        bytes--;
    const char *next = newline;
    while (next && next < text + n && strchr(" \t\r\n", *next) && *next)
        next++;
    return bytes > 1 && text[0] == '{' && text[bytes - 1] == '}' && next &&
           next < text + n && *next == '{';
}

static int any_import(struct store *st, const char *text, size_t n,
                      struct import_result *result, struct err *err)
{
    struct foreign f;
    if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        n -= 3;
    }
    if (foreign_is_text(text, n)) {
        int rc = foreign_read_text(&f, text, n, err);
        if (rc == 0)
            rc = foreign_store(st, &f, result, err);
        foreign_release(&f);
        return rc;
    }
    return has_lines(text, n) ? lines_import(st, text, n, result, err)
                              : json_import(st, text, n, result, err);
}

int transfer_import_any(struct store *st, const char *text, size_t n,
                        struct import_result *result, struct err *err)
{
    *result = (struct import_result){ 0 };
    int rc = store_begin(st, err);
    if (rc == 0)
        rc = any_import(st, text, n, result, err);
    rc = store_end(st, rc, err);
    if (rc < 0)
        *result = (struct import_result){ 0 };
    return rc;
}

/* ---- command ------------------------------------------------------------------ */

int cmd_import(struct env *env, struct err *err)
{
    const char *path = env->opt.args[0];
    struct store *st = NULL;
    struct buf b = BUF_INIT;
    struct import_result result;
    int rc = !strcmp(path, "-") ? in_read_all(JSON_MAX_BYTES, &b, err)
                                : file_read_all(path, JSON_MAX_BYTES, &b, err);
    if (rc < 0 || (rc = env_store(env, &st, err)) < 0)
        goto out;
    rc = transfer_import_any(st, buf_cstr(&b), b.len, &result, err);
    if (rc < 0)
        err_prefix(err, "%s", path);
    else if (result.n == 1)
        out_printf("%lld\n", (long long)result.last);
    else
        out_printf("%zu conversations, the last is %lld\n", result.n,
                   (long long)result.last);
    if (rc == 0 && result.skipped)
        note_printf("tern: %zu message%s of tools left out", result.skipped,
                    result.skipped == 1 ? "" : "s");
out:
    buf_release(&b);
    store_close(st);
    return rc;
}
