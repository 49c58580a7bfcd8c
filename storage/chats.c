/* chats.c - the list of conversations. A chat's place in the list follows from
 * the last message written to it, not from renaming it or looking at it. */
#include "storage/store.h"

#include "base/clock.h"
#include "base/mem.h"
#include "storage/db.h"

#include <string.h>

#define CHAT_COLUMNS                                             \
    "SELECT id, title, model, created_ms, updated_ms, leaf_id, " \
    "n_messages, n_bytes, pinned, title_source"

static struct chat chat_read(sqlite3_stmt *stmt)
{
    return (struct chat){
        .id = sqlite3_column_int64(stmt, 0),
        .title = db_text_or_empty(stmt, 1, NULL),
        .model = db_text_or_empty(stmt, 2, NULL),
        .created_ms = sqlite3_column_int64(stmt, 3),
        .updated_ms = sqlite3_column_int64(stmt, 4),
        .leaf_id = sqlite3_column_int64(stmt, 5),
        .n_messages = (uint32_t)sqlite3_column_int64(stmt, 6),
        .n_bytes = (uint64_t)sqlite3_column_int64(stmt, 7),
        .pinned = sqlite3_column_int(stmt, 8),
        .title_source = (enum title_source)sqlite3_column_int(stmt, 9),
    };
}

/* ---- reading ----------------------------------------------------------- */

int store_chat_list(struct store *st, struct chat_list *out, struct err *err)
{
    static const char sql[] =
        CHAT_COLUMNS " FROM chats ORDER BY pinned DESC, written_seq DESC";
    struct chat_list list = { 0 };
    size_t cap = 0;
    sqlite3_stmt *stmt;
    int rc;
    *out = list;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    while ((rc = db_step(st, stmt, err)) > 0) {
        if (list.len == cap) {
            cap = cap ? 2 * cap : 16;
            list.v = mem_regrow(list.v, cap, sizeof *list.v);
        }
        list.v[list.len++] = chat_read(stmt);
    }
    if (rc < 0)
        chat_list_release(&list);
    *out = list;
    return rc;
}

int store_chat_get(struct store *st, int64_t id, struct chat *out, struct err *err)
{
    static const char sql[] =
        CHAT_COLUMNS ", model_path, settings, draft FROM chats WHERE id = ?1";
    sqlite3_stmt *stmt;
    *out = (struct chat){ 0 };
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    sqlite3_bind_int64(stmt, 1, id);
    int rc = db_step(st, stmt, err);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return err_set(err, "there is no conversation %lld", (long long)id);
    *out = chat_read(stmt);
    out->model_path = db_text_or_empty(stmt, 10, NULL);
    out->settings = db_text_or_empty(stmt, 11, NULL);
    out->draft = db_text_or_empty(stmt, 12, NULL);
    sqlite3_reset(stmt);
    return 0;
}

int store_chat_last(struct store *st, int64_t *id, struct err *err)
{
    return db_integer(st, "SELECT id FROM chats ORDER BY written_seq DESC LIMIT 1", id,
                      err);
}

/* ---- writing ----------------------------------------------------------- */

static int insert(struct store *st, const char *title, const char *model, int64_t *id,
                  struct err *err)
{
    static const char sql[] =
        "INSERT INTO chats (title, model, created_ms, updated_ms, title_source, "
        "written_seq) VALUES (?1, ?2, ?3, ?3, 0, "
        "(SELECT coalesce(max(written_seq), 0) + 1 FROM chats)) RETURNING id";
    sqlite3_stmt *stmt;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    db_bind_text(stmt, 1, title, strlen(title));
    db_bind_text(stmt, 2, model, strlen(model));
    sqlite3_bind_int64(stmt, 3, clock_wall_ms());
    if (db_step(st, stmt, err) < 0)
        return -1;
    *id = sqlite3_column_int64(stmt, 0);
    return db_run(st, stmt, err);
}

int store_chat_new(struct store *st, const char *title, const char *model, int64_t *id,
                   struct err *err)
{
    int64_t new_id = 0;
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = insert(st, title, model, &new_id, err);
    rc = db_end(st, rc, err);
    *id = rc == 0 ? new_id : 0;
    return rc;
}

/* Runs a statement whose parameter 1 is the chat; it must exist. */
static int change(struct store *st, sqlite3_stmt *stmt, int64_t id, struct err *err)
{
    sqlite3_bind_int64(stmt, 1, id);
    if (db_run(st, stmt, err) < 0)
        return -1;
    if (sqlite3_changes(st->db) == 0)
        return err_set(err, "there is no conversation %lld", (long long)id);
    return 0;
}

/* sql sets a column of chat ?1 to the text ?2. */
static int set_text(struct store *st, const char *sql, int64_t id, const char *text,
                    struct err *err)
{
    sqlite3_stmt *stmt;
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = db_prepare(st, sql, &stmt, err);
    if (rc == 0) {
        db_bind_text(stmt, 2, text, strlen(text));
        rc = change(st, stmt, id, err);
    }
    return db_end(st, rc, err);
}

int store_chat_rename(struct store *st, int64_t id, const char *title, struct err *err)
{
    return set_text(st, "UPDATE chats SET title = ?2, title_source = 2 WHERE id = ?1", id,
                    title, err);
}

int store_chat_propose(struct store *st, int64_t id, const char *title, struct err *err)
{
    static const char sql[] = "UPDATE chats SET title = iif(title_source < 2, ?2, title),"
                              " title_source = max(title_source, 1) WHERE id = ?1";
    return set_text(st, sql, id, title, err);
}

int store_chat_set_model(struct store *st, int64_t id, const char *model,
                         const char *path, struct err *err)
{
    static const char sql[] =
        "UPDATE chats SET model = ?2, model_path = ?3 WHERE id = ?1";
    sqlite3_stmt *stmt;
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = db_prepare(st, sql, &stmt, err);
    if (rc == 0) {
        db_bind_text(stmt, 2, model, strlen(model));
        db_bind_text(stmt, 3, path, strlen(path));
        rc = change(st, stmt, id, err);
    }
    return db_end(st, rc, err);
}

int store_chat_set_settings(struct store *st, int64_t id, const char *settings,
                            struct err *err)
{
    return set_text(st, "UPDATE chats SET settings = ?2 WHERE id = ?1", id, settings,
                    err);
}

int store_chat_set_draft(struct store *st, int64_t id, const char *draft, struct err *err)
{
    return set_text(st, "UPDATE chats SET draft = ?2 WHERE id = ?1", id, draft, err);
}

/* sql sets a column of chat ?1 to the number ?2, 0 being NULL. */
static int set_id(struct store *st, const char *sql, int64_t id, int64_t value,
                  struct err *err)
{
    sqlite3_stmt *stmt;
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = db_prepare(st, sql, &stmt, err);
    if (rc == 0) {
        db_bind_id(stmt, 2, value);
        rc = change(st, stmt, id, err);
    }
    return db_end(st, rc, err);
}

int store_chat_set_leaf(struct store *st, int64_t id, int64_t leaf_id, struct err *err)
{
    return set_id(st, "UPDATE chats SET leaf_id = ?2 WHERE id = ?1", id, leaf_id, err);
}

int store_chat_set_pinned(struct store *st, int64_t id, bool pinned, struct err *err)
{
    return set_id(st, "UPDATE chats SET pinned = ?2 IS NOT NULL WHERE id = ?1", id,
                  pinned, err);
}

/* ---- deleting ---------------------------------------------------------- */

int store_chat_delete(struct store *st, int64_t id, struct err *err)
{
    static const char untidy[] =
        "INSERT INTO settings (key, value) VALUES ('untidy', 'new') "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    sqlite3_stmt *stmt;
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = db_prepare(st, "DELETE FROM chats WHERE id = ?1", &stmt, err);
    if (rc == 0)
        rc = change(st, stmt, id, err);
    if (rc == 0)
        rc = db_script(st, untidy, sizeof untidy - 1, err);
    return db_end(st, rc, err);
}
