/* messages.c - the tree of messages.
 * Invariants: a message's id is over its parent's, so the newest descendant of
 * a message, itself included, is the one with the largest id, and it has no
 * children; a row's text is in the search index exactly if its searchable
 * column is set, which it is unless the message is PARTIAL (indexing a text
 * anew each second while it grows would cost more than writing it). */
#include "storage/store.h"

#include "base/clock.h"
#include "base/mem.h"
#include "storage/db.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ------------------------------------------------------------ */

static unsigned char *ids_encode(const int32_t *ids, size_t n)
{
    unsigned char *bytes = mem_array(n, 4);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            bytes[4 * i + (size_t)k] = (unsigned char)((uint32_t)ids[i] >> 8 * k);
    return bytes;
}

static int32_t *ids_decode(const unsigned char *bytes, size_t n)
{
    int32_t *ids = mem_array(n, sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *b = bytes + 4 * i;
        ids[i] = (int32_t)(b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                           (uint32_t)b[3] << 24);
    }
    return ids;
}

/* SQLite would bind what is too long as NULL. */
static int check(struct store *st, const struct message *m, struct err *err)
{
    size_t limit = (size_t)sqlite3_limit(st->db, SQLITE_LIMIT_LENGTH, -1) / 4;
    if (m->role >= ROLE_COUNT || m->state >= STATE_COUNT)
        return err_set(err, "a message of unknown role %d or state %d", (int)m->role,
                       (int)m->state);
    if (m->text_bytes > limit || m->thinking_bytes > limit || m->n_ids > limit / 4)
        return err_set(err, "a message of more than %zu bytes cannot be kept", limit);
    return 0;
}

/* Parameters 1 to 16: what an answer gains while it is written. */
static void bind_content(sqlite3_stmt *stmt, const struct message *m)
{
    const struct message_stats *s = &m->stats;
    const char *state = state_name(m->state);
    db_bind_text(stmt, 1, state, strlen(state));
    db_bind_text(stmt, 2, m->text ? m->text : "", m->text ? m->text_bytes : 0);
    db_bind_text(stmt, 3, m->thinking, m->thinking_bytes);
    if (m->ids && m->n_ids)
        sqlite3_bind_blob64(stmt, 4, ids_encode(m->ids, m->n_ids), 4 * m->n_ids, free);
    db_bind_text(stmt, 5, m->ids_model, m->ids_model ? strlen(m->ids_model) : 0);
    sqlite3_bind_int64(stmt, 6, s->prompt_tokens);
    sqlite3_bind_int64(stmt, 7, s->reused_tokens);
    sqlite3_bind_int64(stmt, 8, s->evaluated_tokens);
    sqlite3_bind_int64(stmt, 9, s->generated_tokens);
    /* A rate over no time is no number, and SQLite has none for it either. */
    sqlite3_bind_double(stmt, 10, isfinite(s->ttft_ms) ? s->ttft_ms : 0);
    sqlite3_bind_double(stmt, 11, isfinite(s->prefill_tps) ? s->prefill_tps : 0);
    sqlite3_bind_double(stmt, 12, isfinite(s->decode_tps) ? s->decode_tps : 0);
    sqlite3_bind_int(stmt, 13, m->state != STATE_PARTIAL);
    db_bind_text(stmt, 14, m->model, m->model ? strlen(m->model) : 0);
    sqlite3_bind_int64(stmt, 15, s->thinking_tokens);
    sqlite3_bind_double(stmt, 16, isfinite(s->thinking_ms) ? s->thinking_ms : 0);
}

#define MESSAGE_COLUMNS                                                     \
    "m.id, m.chat_id, m.parent_id, m.role, m.state, m.created_ms, m.text, " \
    "m.thinking, m.ids, m.ids_model, m.prompt_tokens, m.reused_tokens, "    \
    "m.evaluated_tokens, m.generated_tokens, m.ttft_ms, m.prefill_tps, "    \
    "m.decode_tps, m.model, m.thinking_tokens, m.thinking_ms"

static struct message_stats read_stats(sqlite3_stmt *stmt, int column)
{
    return (struct message_stats){
        .prompt_tokens = (uint32_t)sqlite3_column_int64(stmt, column),
        .reused_tokens = (uint32_t)sqlite3_column_int64(stmt, column + 1),
        .evaluated_tokens = (uint32_t)sqlite3_column_int64(stmt, column + 2),
        .generated_tokens = (uint32_t)sqlite3_column_int64(stmt, column + 3),
        .ttft_ms = sqlite3_column_double(stmt, column + 4),
        .prefill_tps = sqlite3_column_double(stmt, column + 5),
        .decode_tps = sqlite3_column_double(stmt, column + 6),
        .thinking_tokens = (uint32_t)sqlite3_column_int64(stmt, column + 8),
        .thinking_ms = sqlite3_column_double(stmt, column + 9),
    };
}

/* A state of a later version counts as complete: its text can still be read. */
static int read_message(sqlite3_stmt *stmt, struct message *m, struct err *err)
{
    int role = role_from_name((const char *)sqlite3_column_text(stmt, 3));
    int state = state_from_name((const char *)sqlite3_column_text(stmt, 4));
    const void *ids = sqlite3_column_blob(stmt, 8);
    size_t ids_bytes = (size_t)sqlite3_column_bytes(stmt, 8);
    long long id = sqlite3_column_int64(stmt, 0);
    if (role < 0)
        return err_set(err, "message %lld has a role that is not known here", id);
    if (ids_bytes % 4)
        return err_set(err, "message %lld has damaged token ids", id);
    *m = (struct message){
        .id = id,
        .chat_id = sqlite3_column_int64(stmt, 1),
        .parent_id = sqlite3_column_int64(stmt, 2),
        .role = (enum role)role,
        .state = state < 0 ? STATE_COMPLETE : (enum message_state)state,
        .created_ms = sqlite3_column_int64(stmt, 5),
        .n_ids = ids_bytes / 4,
        .ids = ids ? ids_decode(ids, ids_bytes / 4) : NULL,
        .ids_model = db_text(stmt, 9, NULL),
        .stats = read_stats(stmt, 10),
        .model = db_text(stmt, 17, NULL),
        .siblings = (uint32_t)sqlite3_column_int64(stmt, 20),
        .sibling_index = (uint32_t)sqlite3_column_int64(stmt, 21),
    };
    m->text = db_text_or_empty(stmt, 6, &m->text_bytes);
    m->thinking = db_text(stmt, 7, &m->thinking_bytes);
    return 0;
}

/* ---- writing ----------------------------------------------------------- */

static int insert(struct store *st, const struct message *m, int64_t created_ms,
                  int64_t *id, struct err *err)
{
    static const char sql[] =
        "INSERT INTO messages (state, text, thinking, ids, ids_model, prompt_tokens, "
        "reused_tokens, evaluated_tokens, generated_tokens, ttft_ms, prefill_tps, "
        "decode_tps, searchable, model, thinking_tokens, thinking_ms, chat_id, "
        "parent_id, role, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        "?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20) "
        "RETURNING id";
    const char *role = role_name(m->role);
    sqlite3_stmt *stmt;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    bind_content(stmt, m);
    sqlite3_bind_int64(stmt, 17, m->chat_id);
    db_bind_id(stmt, 18, m->parent_id);
    db_bind_text(stmt, 19, role, strlen(role));
    sqlite3_bind_int64(stmt, 20, created_ms);
    if (db_step(st, stmt, err) < 0)
        return -1;
    *id = sqlite3_column_int64(stmt, 0);
    return db_run(st, stmt, err);
}

/* Makes the chat of a message the first of the list; with_leaf: and shows the
 * branch that ends at the message. */
static int touch_chat(struct store *st, int64_t message_id, bool with_leaf,
                      struct err *err)
{
    static const char sql[] =
        "UPDATE chats SET updated_ms = ?2, leaf_id = iif(?3, ?1, leaf_id), written_seq = "
        "(SELECT max(written_seq) + 1 FROM chats) "
        "WHERE id = (SELECT chat_id FROM messages WHERE id = ?1)";
    sqlite3_stmt *stmt;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    sqlite3_bind_int64(stmt, 1, message_id);
    sqlite3_bind_int64(stmt, 2, clock_wall_ms());
    sqlite3_bind_int(stmt, 3, with_leaf);
    return db_run(st, stmt, err);
}

int store_message_add(struct store *st, struct message *m, struct err *err)
{
    int64_t id = 0, created_ms = m->created_ms ? m->created_ms : clock_wall_ms();
    if (check(st, m, err) < 0)
        return -1;
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = insert(st, m, created_ms, &id, err);
    if (rc == 0)
        rc = touch_chat(st, id, true, err);
    if (db_end(st, rc, err) < 0)
        return -1;
    m->id = id;
    m->created_ms = created_ms;
    return 0;
}

static int rewrite(struct store *st, const struct message *m, struct err *err)
{
    static const char sql[] =
        "UPDATE messages SET state = ?1, text = ?2, thinking = ?3, ids = ?4, "
        "ids_model = ?5, prompt_tokens = ?6, reused_tokens = ?7, evaluated_tokens = ?8, "
        "generated_tokens = ?9, ttft_ms = ?10, prefill_tps = ?11, decode_tps = ?12, "
        "searchable = ?13, model = ?14, thinking_tokens = ?15, thinking_ms = ?16 "
        "WHERE id = ?17";
    sqlite3_stmt *stmt;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    bind_content(stmt, m);
    sqlite3_bind_int64(stmt, 17, m->id);
    if (db_run(st, stmt, err) < 0)
        return -1;
    if (sqlite3_changes(st->db) == 0)
        return err_set(err, "message %lld is no longer there", (long long)m->id);
    return 0;
}

int store_message_update(struct store *st, const struct message *m, struct err *err)
{
    if (check(st, m, err) < 0)
        return -1;
    int rc = db_begin(st, m->state != STATE_PARTIAL, err);
    if (rc == 0)
        rc = rewrite(st, m, err);
    if (rc == 0)
        rc = touch_chat(st, m->id, false, err);
    return db_end(st, rc, err);
}

/* ---- the tree ---------------------------------------------------------- */

static int no_message(struct err *err, int64_t id)
{
    return err_set(err, "there is no message %lld", (long long)id);
}

int store_path(struct store *st, int64_t leaf_id, struct message_list *out,
               struct err *err)
{
    static const char sql[] =
        "WITH RECURSIVE up (id, parent_id) AS ("
        "  SELECT id, parent_id FROM messages WHERE id = ?1"
        "  UNION ALL"
        "  SELECT p.id, p.parent_id FROM up JOIN messages p ON p.id = up.parent_id) "
        "SELECT " MESSAGE_COLUMNS ", "
        "(SELECT count(*) FROM messages s WHERE s.chat_id = m.chat_id"
        "  AND s.parent_id IS m.parent_id), "
        "(SELECT count(*) FROM messages s WHERE s.chat_id = m.chat_id"
        "  AND s.parent_id IS m.parent_id AND s.id < m.id) "
        "FROM up JOIN messages m ON m.id = up.id ORDER BY m.id";
    struct message_list list = { 0 };
    size_t cap = 0;
    sqlite3_stmt *stmt;
    int rc;
    *out = list;
    if (leaf_id == 0)
        return 0;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    sqlite3_bind_int64(stmt, 1, leaf_id);
    while ((rc = db_step(st, stmt, err)) > 0) {
        if (list.len == cap) {
            cap = cap ? 2 * cap : 16;
            list.v = mem_regrow(list.v, cap, sizeof *list.v);
        }
        if ((rc = read_message(stmt, &list.v[list.len], err)) < 0)
            break;
        list.len++;
    }
    sqlite3_reset(stmt);
    if (rc == 0 && list.len == 0)
        rc = no_message(err, leaf_id);
    if (rc < 0)
        message_list_release(&list);
    *out = list;
    return rc;
}

int store_siblings(struct store *st, int64_t id, int64_t **out, size_t *n,
                   struct err *err)
{
    static const char sql[] =
        "SELECT s.id FROM messages m JOIN messages s ON s.chat_id = m.chat_id "
        "AND s.parent_id IS m.parent_id WHERE m.id = ?1 ORDER BY s.id";
    int64_t *v = NULL;
    size_t len = 0;
    sqlite3_stmt *stmt;
    int rc;
    *out = NULL;
    *n = 0;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    sqlite3_bind_int64(stmt, 1, id);
    while ((rc = db_step(st, stmt, err)) > 0) {
        v = mem_regrow(v, len + 1, sizeof *v);
        v[len++] = sqlite3_column_int64(stmt, 0);
    }
    if (rc == 0 && len == 0)
        rc = no_message(err, id);
    if (rc < 0) {
        free(v);
        return -1;
    }
    *out = v;
    *n = len;
    return 0;
}

int store_newest_leaf(struct store *st, int64_t id, int64_t *leaf, struct err *err)
{
    static const char sql[] =
        "WITH RECURSIVE down (id, chat_id) AS ("
        "  SELECT id, chat_id FROM messages WHERE id = ?1"
        "  UNION ALL"
        "  SELECT c.id, c.chat_id FROM down JOIN messages c"
        "    ON c.chat_id = down.chat_id AND c.parent_id = down.id) "
        "SELECT max(id) FROM down";
    sqlite3_stmt *stmt;
    *leaf = 0;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    sqlite3_bind_int64(stmt, 1, id);
    if (db_step(st, stmt, err) < 0)
        return -1;
    *leaf = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return *leaf ? 0 : no_message(err, id);
}
