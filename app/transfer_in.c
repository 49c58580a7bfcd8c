/* transfer_in.c - `tern import`: JSON of transfer_out.c to a conversation. The
 * file is hostile until each field is checked; fields that are not known here,
 * and states of a later version, do not matter. */
#include "app/transfer.h"

#include "base/file.h"
#include "base/mem.h"

#include "app/command.h"
#include "app/json.h"
#include "app/out.h"

#include <stdlib.h>
#include <string.h>

struct import {
    struct store *st; /* NULL: only check */
    const struct json_doc *d;
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
        copy_text(d, json_get(d, object, "thinking"), &m->thinking, &m->thinking_bytes);
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
    uint32_t list = json_get(im->d, json_root(im->d), "messages");
    im->n_ids = 0;
    for (uint32_t v = json_first(im->d, list); v; v = json_next(im->d, v))
        if (message_import(im, v, err) < 0)
            return -1;
    return 0;
}

/* After a first pass has found nothing wrong. */
static int chat_import(struct import *im, struct store *st, struct err *err)
{
    const struct json_doc *d = im->d;
    const char *title = get_text(d, json_root(d), "title");
    const char *model = get_text(d, json_root(d), "model");
    im->st = st;
    if (store_chat_new(st, title ? title : "", model ? model : "", &im->chat_id, err) < 0)
        return -1;
    int rc = messages_import(im, err);
    int64_t leaf = id_ours(im, get_int(d, json_root(d), "leaf"));
    if (rc == 0 && leaf)
        rc = store_chat_set_leaf(st, im->chat_id, leaf, err);
    if (rc < 0)
        store_chat_delete(st, im->chat_id, NULL);
    return rc;
}

static int document_check(const struct json_doc *d, struct err *err)
{
    uint32_t root = json_root(d);
    const char *format = get_text(d, root, "format");
    int64_t version = get_int(d, root, "version");
    if (!format || strcmp(format, "tern-conversation") != 0)
        return err_set(err, "this is not a conversation that Tern has exported");
    if (version != 1)
        return err_set(err, "the file has version %lld, this program reads version 1",
                       (long long)version);
    if (json_kind(d, json_get(d, root, "messages")) != JSON_ARRAY)
        return err_set(err, "the file has no list of messages");
    return 0;
}

int transfer_import(struct store *st, const char *json, size_t n, int64_t *chat_id,
                    struct err *err)
{
    struct json_doc *d = NULL;
    struct import im = { 0 };
    int rc = -1;
    *chat_id = 0;
    if (json_parse(&d, json, n, err) < 0 || document_check(d, err) < 0)
        goto out;
    im.d = d;
    im.ids =
        mem_array(json_count(d, json_get(d, json_root(d), "messages")), sizeof *im.ids);
    if (messages_import(&im, err) < 0 || chat_import(&im, st, err) < 0)
        goto out;
    *chat_id = im.chat_id;
    rc = 0;
out:
    free(im.ids);
    json_doc_close(d);
    return rc;
}

int cmd_import(struct env *env, struct err *err)
{
    const char *path = env->opt.args[0];
    struct store *st = NULL;
    struct buf b = BUF_INIT;
    int64_t id;
    int rc = !strcmp(path, "-") ? in_read_all(JSON_MAX_BYTES, &b, err)
                                : file_read_all(path, JSON_MAX_BYTES, &b, err);
    if (rc < 0 || (rc = env_store(env, &st, err)) < 0)
        goto out;
    rc = transfer_import(st, buf_cstr(&b), b.len, &id, err);
    if (rc < 0)
        err_prefix(err, "%s", path);
    else
        out_printf("%lld\n", (long long)id);
out:
    buf_release(&b);
    store_close(st);
    return rc;
}
