/* snapshots.c - the index of kept timelines, and what has to go when there is no
 * room. Knows names and sizes only; never touches the files. */
#include "storage/store.h"

#include "base/clock.h"
#include "base/mem.h"
#include "storage/db.h"

#include <stdlib.h>
#include <string.h>

#define HOUR_MS 3600000.0

void snapshot_list_release(struct snapshot_list *l)
{
    for (size_t i = 0; i < l->len; i++) {
        free(l->v[i].name);
        free(l->v[i].key);
    }
    free(l->v);
    *l = (struct snapshot_list){ 0 };
}

/* ---- rows ---------------------------------------------------------------- */

static int put(struct store *st, const struct snapshot_file *f, struct err *err)
{
    static const char sql[] =
        "INSERT INTO snapshots (name, chat_id, key, kind, tokens, bytes, used_ms) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (name) DO UPDATE SET "
        "chat_id = ?2, key = ?3, kind = ?4, tokens = ?5, bytes = ?6, used_ms = ?7";
    const char *kind = f->state ? "state" : "rows";
    sqlite3_stmt *stmt;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    db_bind_text(stmt, 1, f->name, strlen(f->name));
    sqlite3_bind_int64(stmt, 2, f->chat_id);
    db_bind_text(stmt, 3, f->key, strlen(f->key));
    db_bind_text(stmt, 4, kind, strlen(kind));
    sqlite3_bind_int64(stmt, 5, (sqlite3_int64)f->tokens);
    sqlite3_bind_int64(stmt, 6, (sqlite3_int64)f->bytes);
    sqlite3_bind_int64(stmt, 7, f->used_ms ? f->used_ms : clock_wall_ms());
    return db_run(st, stmt, err);
}

int store_snapshot_put(struct store *st, const struct snapshot_file *f, struct err *err)
{
    int rc = db_begin(st, false, err);
    if (rc == 0)
        rc = put(st, f, err);
    return db_end(st, rc, err);
}

int store_snapshot_remove(struct store *st, const char *name, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc = db_begin(st, false, err);
    if (rc == 0)
        rc = db_prepare(st, "DELETE FROM snapshots WHERE name = ?1", &stmt, err);
    if (rc == 0) {
        db_bind_text(stmt, 1, name, strlen(name));
        rc = db_run(st, stmt, err);
    }
    return db_end(st, rc, err);
}

int store_snapshot_use(struct store *st, int64_t chat_id, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc = db_begin(st, false, err);
    if (rc == 0)
        rc = db_prepare(st, "UPDATE snapshots SET used_ms = ?2 WHERE chat_id = ?1", &stmt,
                        err);
    if (rc == 0) {
        sqlite3_bind_int64(stmt, 1, chat_id);
        sqlite3_bind_int64(stmt, 2, clock_wall_ms());
        rc = db_run(st, stmt, err);
    }
    return db_end(st, rc, err);
}

int store_snapshot_list(struct store *st, int64_t chat_id, struct snapshot_list *out,
                        struct err *err)
{
    static const char sql[] =
        "SELECT chat_id, name, key, kind = 'state', tokens, bytes, used_ms FROM "
        "snapshots "
        "WHERE ?1 IN (0, chat_id) ORDER BY chat_id, key, kind, tokens, name";
    struct snapshot_list list = { 0 };
    size_t cap = 0;
    sqlite3_stmt *stmt;
    int rc;
    *out = list;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    sqlite3_bind_int64(stmt, 1, chat_id);
    while ((rc = db_step(st, stmt, err)) > 0) {
        if (list.len == cap) {
            cap = cap ? 2 * cap : 16;
            list.v = mem_regrow(list.v, cap, sizeof *list.v);
        }
        sqlite3_int64 tokens = sqlite3_column_int64(stmt, 4);
        sqlite3_int64 bytes = sqlite3_column_int64(stmt, 5);
        list.v[list.len++] = (struct snapshot_file){
            .chat_id = sqlite3_column_int64(stmt, 0),
            .name = db_text_or_empty(stmt, 1, NULL),
            .key = db_text_or_empty(stmt, 2, NULL),
            .state = sqlite3_column_int(stmt, 3),
            .tokens = tokens > 0 ? (uint64_t)tokens : 0,
            .bytes = bytes > 0 ? (uint64_t)bytes : 0,
            .used_ms = sqlite3_column_int64(stmt, 6),
        };
    }
    if (rc < 0)
        snapshot_list_release(&list);
    *out = list;
    return rc;
}

/* ---- making room --------------------------------------------------------- */

/* Files in the order of the list; taken ones are to go. */
struct room {
    const struct snapshot_list *l;
    bool *taken;
    int64_t chat_id, now_ms;
};

static bool together(const struct snapshot_file *a, const struct snapshot_file *b)
{
    return a->chat_id == b->chat_id && !strcmp(a->key, b->key);
}

/* What would go with file i, and the tokens that would have to be evaluated once
 * more if that prefix were asked for; false: it has to stay. */
static bool loss(const struct room *r, size_t i, uint64_t *bytes, uint64_t *tokens)
{
    const struct snapshot_file *f = &r->l->v[i];
    uint64_t before = 0;
    unsigned states = 0;
    bool last = true, rows = false;
    *bytes = f->bytes;
    *tokens = f->tokens;
    for (size_t k = 0; k < r->l->len; k++) {
        const struct snapshot_file *g = &r->l->v[k];
        if (k == i || r->taken[k] || !together(f, g))
            continue;
        rows = rows || !g->state;
        states += g->state;
        if (!g->state)
            continue;
        if (!f->state) {
            *bytes += g->bytes;
            *tokens = g->tokens > *tokens ? g->tokens : *tokens;
        } else if (g->tokens > f->tokens) {
            last = false;
        } else if (g->tokens > before) {
            before = g->tokens;
        }
    }
    if (f->state)
        *tokens -= before;
    /* Of a timeline, points go first, and what is left of it then as a whole. */
    if (f->state ? last && rows : states > 1)
        return false;
    return f->chat_id != r->chat_id || (f->state && !last);
}

/* Tokens saved a byte, less with every hour that nobody asked. */
static double worth(const struct room *r, size_t i, uint64_t bytes, uint64_t tokens)
{
    double age = (double)(r->now_ms - r->l->v[i].used_ms) / HOUR_MS;
    return (double)(tokens + 1) / (double)(bytes + 1) / (1 + (age > 0 ? age : 0));
}

/* Takes what is worth least; false if nothing is left. */
static bool take_least(struct room *r, uint64_t *total)
{
    size_t best = r->l->len;
    uint64_t bytes, tokens, best_bytes = 0;
    double least = 0;
    for (size_t i = 0; i < r->l->len; i++) {
        if (r->taken[i] || !loss(r, i, &bytes, &tokens))
            continue;
        double w = worth(r, i, bytes, tokens);
        if (best == r->l->len || w < least) {
            best = i;
            best_bytes = bytes;
            least = w;
        }
    }
    if (best == r->l->len)
        return false;
    for (size_t k = 0; k < r->l->len && !r->l->v[best].state; k++)
        if (together(&r->l->v[best], &r->l->v[k]))
            r->taken[k] = true;
    r->taken[best] = true;
    *total -= best_bytes;
    return true;
}

int store_snapshot_room(struct store *st, int64_t chat_id, uint64_t need_bytes,
                        uint64_t budget_bytes, struct snapshot_list *out, bool *fits,
                        struct err *err)
{
    struct snapshot_list list;
    uint64_t total = 0;
    *out = (struct snapshot_list){ 0 };
    *fits = false;
    if (store_snapshot_list(st, 0, &list, err) < 0)
        return -1;
    struct room r = { .l = &list,
                      .taken = mem_zalloc(list.len + 1),
                      .chat_id = chat_id,
                      .now_ms = clock_wall_ms() };
    for (size_t i = 0; i < list.len; i++)
        total += list.v[i].bytes;
    *fits = need_bytes <= budget_bytes;
    while (*fits && total > budget_bytes - need_bytes)
        *fits = take_least(&r, &total);
    out->v = mem_array(list.len, sizeof *out->v);
    for (size_t i = 0; i < list.len; i++)
        if (r.taken[i]) {
            out->v[out->len++] = list.v[i];
            list.v[i].name = list.v[i].key = NULL;
        }
    snapshot_list_release(&list);
    free(r.taken);
    return 0;
}
