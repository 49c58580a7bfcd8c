/* db.c - prepared statements, transactions and error texts over SQLite.
 * Invariants: outside of a call no statement has a row pending and no
 * transaction is open, so that no other process waits for this one; statements
 * are prepared once and live until store_close. */
#include "storage/db.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>

bool db_is_memory(const struct store *st)
{
    return !strcmp(st->path, ":memory:");
}

static const char *advice(int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return "; free some disk space";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return "; set XDG_DATA_HOME to a folder that can be written";
    case SQLITE_PROTOCOL:
        return "; its file system cannot lock files, set XDG_DATA_HOME to a local folder";
    case SQLITE_IOERR:
        return "; the disk may be full or damaged, or a limit on files is reached";
    case SQLITE_BUSY:
        return "; another program is using it, try again";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return "; move the file away to begin a new one";
    default:
        return "";
    }
}

/* What the system said, where SQLite only knows that something did not work. */
static int system_fail(const struct store *st, struct err *err)
{
    int reason = sqlite3_system_errno(st->db);
    bool room = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
    return err_set(err, "%s: %s (%s)%s", st->path, sqlite3_errmsg(st->db),
                   strerror(reason), room ? advice(SQLITE_FULL) : "");
}

int db_fail(const struct store *st, struct err *err)
{
    int code = sqlite3_extended_errcode(st->db);
    if ((code & 0xff) == SQLITE_IOERR && sqlite3_system_errno(st->db))
        return system_fail(st, err);
    if (code == SQLITE_CONSTRAINT_FOREIGNKEY)
        return err_set(err, "%s: no such conversation or message in it", st->path);
    return err_set(err, "%s: %s%s", st->path, sqlite3_errmsg(st->db), advice(code));
}

/* ---- statements -------------------------------------------------------- */

int db_prepare(struct store *st, const char *sql, sqlite3_stmt **out, struct err *err)
{
    int i = 0;
    while (i < DB_STATEMENTS && st->cache[i].sql && st->cache[i].sql != sql)
        i++;
    if (i == DB_STATEMENTS)
        return err_set(err, "%s: too many statements", st->path);
    if (!st->cache[i].sql) {
        if (sqlite3_prepare_v3(st->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                               &st->cache[i].stmt, NULL) != SQLITE_OK)
            return db_fail(st, err);
        st->cache[i].sql = sql;
    }
    *out = st->cache[i].stmt;
    sqlite3_reset(*out);
    sqlite3_clear_bindings(*out);
    return 0;
}

int db_step(struct store *st, sqlite3_stmt *stmt, struct err *err)
{
    int code = SQLITE_FULL;
    bool faked = fault_hit(FAULT_SQL);
    if (!faked)
        code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        return 1;
    if (faked)
        err_set(err, "%s: %s%s", st->path, sqlite3_errstr(code), advice(code));
    else if (code != SQLITE_DONE)
        db_fail(st, err);
    sqlite3_reset(stmt);
    return code == SQLITE_DONE ? 0 : -1;
}

int db_run(struct store *st, sqlite3_stmt *stmt, struct err *err)
{
    int rc;
    do
        rc = db_step(st, stmt, err);
    while (rc > 0);
    return rc;
}

int db_script(struct store *st, const char *sql, size_t bytes, struct err *err)
{
    const char *end = sql + bytes;
    int rc = 0;
    while (rc == 0 && sql < end) {
        sqlite3_stmt *stmt = NULL;
        if (sqlite3_prepare_v2(st->db, sql, (int)(end - sql), &stmt, &sql) != SQLITE_OK)
            return db_fail(st, err);
        if (stmt) /* NULL: only blanks and comments were left */
            rc = db_run(st, stmt, err);
        sqlite3_finalize(stmt);
    }
    return rc;
}

int db_integer(struct store *st, const char *sql, int64_t *out, struct err *err)
{
    sqlite3_stmt *stmt;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    int rc = db_step(st, stmt, err);
    *out = rc > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return rc < 0 ? -1 : 0;
}

/* ---- transactions ------------------------------------------------------ */

/* With a write-ahead log, NORMAL leaves syncing to checkpoints: a power cut
 * may take the latest commits, but never tears one. */
static int set_sync(struct store *st, bool full, struct err *err)
{
    if (st->full_sync == full)
        return 0;
    const char *sql = full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
    if (db_script(st, sql, strlen(sql), err) < 0)
        return -1;
    st->full_sync = full;
    return 0;
}

static int begin(struct store *st, bool durable, struct err *err)
{
    sqlite3_stmt *stmt;
    int64_t version;
    if (set_sync(st, durable, err) < 0 ||
        db_prepare(st, "BEGIN IMMEDIATE", &stmt, err) < 0 || db_run(st, stmt, err) < 0 ||
        db_integer(st, "PRAGMA user_version", &version, err) < 0)
        return -1;
    if (version != st->version && st->version)
        return err_set(err,
                       "%s: another program changed it from version %d to %lld; "
                       "start this one again",
                       st->path, st->version, (long long)version);
    return 0;
}

int db_begin(struct store *st, bool durable, struct err *err)
{
    if (st->depth++ == 0)
        return begin(st, durable, err);
    if (st->undone || sqlite3_get_autocommit(st->db))
        return err_set(err, "%s: what belongs together could not be written", st->path);
    return 0;
}

int db_end(struct store *st, int rc, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    if (--st->depth > 0) {
        st->undone = st->undone || rc < 0;
        return rc;
    }
    if (rc == 0 && st->undone)
        rc = err_set(err, "%s: what belongs together could not be written", st->path);
    st->undone = false;
    if (rc == 0)
        rc = db_prepare(st, "COMMIT", &stmt, err);
    if (rc == 0)
        rc = db_run(st, stmt, err);
    /* Some failures, a full disk among them, have undone it already. */
    if (rc < 0 && !sqlite3_get_autocommit(st->db))
        sqlite3_exec(st->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* Asks again each millisecond. SQLite's own handler sleeps ever longer, up to
 * 100 ms, and may never meet the short gaps that a busy writer leaves. */
static int wait_for_lock(void *store, int tries)
{
    struct store *st = store;
    if (tries == 0)
        st->wait_from_ns = clock_ns();
    if (clock_ns() - st->wait_from_ns > (uint64_t)st->wait_ms * 1000000)
        return 0;
    sqlite3_sleep(1);
    return 1;
}

void db_wait_for_others(struct store *st)
{
    st->wait_ms = DB_WAIT_MS;
    sqlite3_busy_handler(st->db, wait_for_lock, st);
}

bool db_empty_log(struct store *st)
{
    sqlite3_stmt *stmt = NULL;
    bool emptied = false;
    st->wait_ms = 0;
    if (db_prepare(st, "PRAGMA wal_checkpoint(TRUNCATE)", &stmt, NULL) == 0) {
        emptied = db_step(st, stmt, NULL) > 0 && sqlite3_column_int(stmt, 0) == 0;
        sqlite3_reset(stmt);
    }
    st->wait_ms = DB_WAIT_MS;
    return emptied;
}

/* ---- values ------------------------------------------------------------ */

void db_bind_text(sqlite3_stmt *stmt, int i, const char *s, size_t bytes)
{
    if (s)
        sqlite3_bind_text64(stmt, i, s, bytes, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_null(stmt, i);
}

void db_bind_id(sqlite3_stmt *stmt, int i, int64_t id)
{
    if (id)
        sqlite3_bind_int64(stmt, i, id);
    else
        sqlite3_bind_null(stmt, i);
}

char *db_text(sqlite3_stmt *stmt, int column, size_t *bytes)
{
    const unsigned char *s = sqlite3_column_text(stmt, column);
    size_t n = s ? (size_t)sqlite3_column_bytes(stmt, column) : 0;
    if (bytes)
        *bytes = n;
    return s ? mem_strndup((const char *)s, n) : NULL;
}

char *db_text_or_empty(sqlite3_stmt *stmt, int column, size_t *bytes)
{
    char *s = db_text(stmt, column, bytes);
    return s ? s : mem_strdup("");
}
