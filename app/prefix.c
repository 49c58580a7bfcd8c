/* prefix.c - the policy of kept timelines. Invariant: what cannot be kept or
 * found costs evaluating, never an answer; every failure here is a line in the
 * log. */
#include "app/prefix.h"

#include "base/clock.h"
#include "base/mem.h"

#include "app/generate.h"
#include "app/keep.h"
#include "app/options.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A modest disk: what is faster evaluated than read from it is not kept. */
#define DISK_BYTES_PER_S 1e9
enum { UNFINISHED_S = 60 /* after which a temporary file is nobody's */ };

static void complain(struct conversation *c, const struct err *err)
{
    log_line(c->log, LOG_WARN, "kept timelines: %s", err->text);
}

/* NAME of a file in the folder of a conversation, as the index has it; malloced. */
static char *indexed_name(int64_t chat_id, const char *name)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%lld/%s", (long long)chat_id, name);
    return buf_detach(&b);
}

static char *indexed_path(const struct conversation *c, const char *indexed)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s/%s", c->keep_root, indexed);
    return buf_detach(&b);
}

static void index_put(struct conversation *c, int64_t chat_id, const char *name,
                      uint64_t tokens, uint64_t bytes)
{
    struct err err;
    const char *ending = strrchr(name, '.');
    struct snapshot_file f = {
        .chat_id = chat_id,
        .name = indexed_name(chat_id, name),
        .key = mem_strndup(name, strcspn(name, "-.")),
        .state = ending && !strcmp(ending, ".state"),
        .tokens = tokens,
        .bytes = bytes,
    };
    if (store_snapshot_put(c->store, &f, &err) < 0)
        complain(c, &err);
    free(f.name);
    free(f.key);
}

/* ---- index and files ------------------------------------------------------ */

/* A file that the index may not know: written by a program that died before it
 * could say so. */
static void file_adopt(struct conversation *c, int64_t chat_id, const char *name,
                       const struct snapshot_list *known)
{
    char *indexed = indexed_name(chat_id, name), *path = indexed_path(c, indexed);
    struct stat st;
    bool found = false;
    long long tokens = 0;
    const char *dash = strchr(name, '-');
    for (size_t i = 0; !found && i < known->len; i++)
        found = !strcmp(known->v[i].name, indexed);
    if (found || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        goto out;
    if (strstr(name, ".tmp-")) {
        if (time(NULL) - st.st_mtime > UNFINISHED_S)
            unlink(path);
        goto out;
    }
    if (dash)
        tokens = strtoll(dash + 1, NULL, 10);
    index_put(c, chat_id, name, tokens > 0 ? (uint64_t)tokens : 0, (uint64_t)st.st_size);
out:
    free(indexed);
    free(path);
}

static void folder_adopt(struct conversation *c, int64_t chat_id,
                         const struct snapshot_list *known)
{
    struct chat chat;
    struct err err = { "" };
    if (store_chat_get(c->store, chat_id, &chat, NULL) < 0) {
        if (keep_remove(c->keep_root, chat_id, &err) < 0)
            complain(c, &err);
        return;
    }
    chat_release(&chat);
    struct keep_files files = keep_files(c->keep_root, chat_id);
    for (size_t i = 0; i < files.n; i++)
        file_adopt(c, chat_id, files.names[i], known);
    keep_files_release(&files);
}

/* Rows whose file is gone, of one conversation or (0) of all. */
static void index_prune(struct conversation *c, int64_t chat_id)
{
    struct snapshot_list l;
    struct err err;
    if (store_snapshot_list(c->store, chat_id, &l, &err) < 0) {
        complain(c, &err);
        return;
    }
    for (size_t i = 0; i < l.len; i++) {
        char *path = indexed_path(c, l.v[i].name);
        if (access(path, F_OK) < 0 &&
            store_snapshot_remove(c->store, l.v[i].name, &err) < 0)
            complain(c, &err);
        free(path);
    }
    snapshot_list_release(&l);
}

void prefix_open(struct conversation *c, const char *root, uint64_t keep_bytes)
{
    struct snapshot_list known;
    struct err err;
    const struct dirent *d;
    int64_t id;
    if (!root)
        return;
    c->keep_root = mem_strdup(root);
    c->keep_bytes = keep_bytes;
    index_prune(c, 0);
    if (store_snapshot_list(c->store, 0, &known, &err) < 0) {
        complain(c, &err);
        return;
    }
    DIR *dir = opendir(root);
    while (dir && (d = readdir(dir)))
        if (parse_int(d->d_name, 1, INT64_MAX, &id))
            folder_adopt(c, id, &known);
    if (dir)
        closedir(dir);
    snapshot_list_release(&known);
}

/* ---- reading -------------------------------------------------------------- */

void prefix_restore(struct conversation *c)
{
    struct prompt p = { 0 };
    if (!c->keep_root || c->phase != MODEL_READY || !c->path.len || conversation_busy(c))
        return;
    const struct prompt_style style = generate_style(c);
    if (prompt_compose(&p, c->model, c->path.v, c->path.len, &style, NULL) == 0) {
        p.ids.len = p.starts[p.n_turns]; /* how the answer begins is open */
        if (p.ids.len <= c->ctx_tokens)
            worker_restore(c->worker, c->chat.id, &p.ids);
    }
    prompt_release(&p);
}

/* ---- writing -------------------------------------------------------------- */

/* Removes files until so much more fits. False if it cannot. */
static bool room_make(struct conversation *c, int64_t chat_id, uint64_t need_bytes)
{
    struct snapshot_list victims;
    struct err err;
    bool fits;
    if (store_snapshot_room(c->store, chat_id, need_bytes, c->keep_bytes, &victims, &fits,
                            &err) < 0) {
        complain(c, &err);
        return false;
    }
    for (size_t i = 0; fits && i < victims.len; i++) {
        char *path = indexed_path(c, victims.v[i].name);
        unlink(path);
        if (access(path, F_OK) == 0 ||
            store_snapshot_remove(c->store, victims.v[i].name, &err) < 0)
            fits = false;
        free(path);
    }
    snapshot_list_release(&victims);
    return fits;
}

/* Bytes that the next writing adds: the state, and the rows that are not there. */
static uint64_t bytes_needed(struct conversation *c, int64_t chat_id)
{
    const struct model_info *info = model_info(c->model);
    const struct message_stats *s = &c->answer.m.stats;
    struct snapshot_list l;
    uint64_t tokens = c->ctx_used;
    if (store_snapshot_list(c->store, chat_id, &l, NULL) < 0)
        return UINT64_MAX;
    for (size_t i = 0; i < l.len; i++)
        if (!l.v[i].state)
            tokens = (uint64_t)s->evaluated_tokens + s->generated_tokens;
    snapshot_list_release(&l);
    return info->state_bytes + tokens * (info->kv_bytes_per_token + sizeof(int32_t));
}

void prefix_keep(struct conversation *c)
{
    const struct answer *a = &c->answer;
    const int64_t chat_id = a->m.chat_id;
    if (!c->keep_root || c->phase != MODEL_READY || !a->m.id ||
        a->m.state == STATE_FAILED || (c->shared && c->chat.id == chat_id))
        return;
    uint64_t need = bytes_needed(c, chat_id);
    double tps = a->m.stats.prefill_tps;
    if (tps > 0 && c->ctx_used / tps < (double)need / DISK_BYTES_PER_S)
        return;
    if (!room_make(c, chat_id, need)) {
        log_line(c->log, LOG_NOTE,
                 "conversation %lld is not kept ready: no room for %llu MB more below %s",
                 (long long)chat_id, (unsigned long long)(need / 1000000), c->keep_root);
        return;
    }
    c->keeping = true;
    worker_keep(c->worker, chat_id);
}

static void kept(struct conversation *c, const struct worker_event *e)
{
    const struct session_write_result *r = e->written;
    c->keeping = false;
    if (!r)
        return;
    if (r->kv_name[0] && r->kv_bytes)
        index_put(c, e->keep_id, r->kv_name, r->tokens ? r->tokens : c->ctx_used,
                  r->kv_bytes);
    if (r->tokens)
        index_put(c, e->keep_id, r->state_name, r->tokens, r->state_bytes);
    /* The estimate may have been too low. */
    room_make(c, e->keep_id, 0);
}

void prefix_event(struct conversation *c, const struct worker_event *e)
{
    struct err err;
    if (e->kind == EVENT_KEPT) {
        kept(c, e);
        return;
    }
    if (!c->keep_root)
        return;
    index_prune(c, e->keep_id);
    if (e->done && store_snapshot_use(c->store, e->keep_id, &err) < 0)
        complain(c, &err);
}

void prefix_wait(struct conversation *c, int signal_fd, int timeout_ms)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_ms * 1000000;
    while (c->keeping && clock_ns() < until) {
        struct pollfd fds[] = { { .fd = worker_fd(c->worker), .events = POLLIN },
                                { .fd = signal_fd, .events = POLLIN } };
        struct worker_event e;
        poll(fds, 2, 100);
        if (fds[1].revents)
            break;
        while (worker_next(c->worker, &e)) {
            conversation_event(c, &e);
            worker_event_release(&e);
        }
    }
    if (c->keeping)
        worker_keep_stop(c->worker);
}
