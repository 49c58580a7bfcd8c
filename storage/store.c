/* store.c - opens and closes the database, and small settings.
 * Invariant of an open store: the file has this program's schema version, the
 * file and its log are readable by the user alone, nothing in it is left over
 * from half a transaction. */
#include "storage/store.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "storage/db.h"
#include "storage/schema.h"
#include "storage/tidy.h"
#include "storage/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *store_default_path(struct err *err)
{
    return file_xdg(FILE_DATA, "tern/tern.db", err);
}

/* Closes a file to other users. Through its name, as closing a descriptor of
 * it would drop SQLite's locks on it. */
static void make_private(const char *path, const char *ending)
{
    struct stat st;
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s%s", path, ending);
    if (stat(b.v, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 077)
        chmod(b.v, st.st_mode & 0700);
    buf_release(&b);
}

/* SQLite gives its log the mode of the database, so it is enough that this
 * file is created as a private one. */
static int create_file(const char *path, struct err *err)
{
    static const char todo[] = "set XDG_DATA_HOME to a folder that can be written";
    struct err reason;
    if (!*path)
        return err_set(err, "the database has no name");
    if (file_mkdirs_above(path, 0700, &reason) < 0)
        return err_set(err, "%s; %s", reason.text, todo);
    int fd = fault_hit(FAULT_OPEN)
                 ? -1
                 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return err_set(err, "cannot create %s: %s; %s", path, strerror(errno), todo);
    if (fd >= 0)
        close(fd);
    make_private(path, "");
    make_private(path, "-wal");
    make_private(path, "-shm");
    return 0;
}

static int connect(struct store *st, struct err *err)
{
    static const char setup[] =
        "PRAGMA secure_delete = ON;"  /* what is deleted is overwritten */
        "PRAGMA temp_store = MEMORY"; /* no text of a chat in /tmp */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(st->path, &st->db, flags, NULL);
    if (!st->db)
        return err_set(err, "%s: %s", st->path, sqlite3_errstr(code));
    if (code != SQLITE_OK)
        return db_fail(st, err);
    sqlite3_extended_result_codes(st->db, 1);
    db_wait_for_others(st);
    sqlite3_db_config(st->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    /* Until the file is known to be one of ours, closing must not move its
     * log into it. */
    sqlite3_db_config(st->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (words_register(st->db) != SQLITE_OK)
        return err_set(err, "this SQLite (%s) has no full-text search (FTS5)",
                       sqlite3_libversion());
    return db_script(st, setup, sizeof setup - 1, err);
}

/* SQLite does not wait by itself when two programs do this to a new file. */
static int use_log(struct store *st, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc = -1;
    if (db_prepare(st, "PRAGMA journal_mode = WAL", &stmt, err) < 0)
        return -1;
    for (int ms = 0; ms < DB_WAIT_MS && rc < 0; ms += 10) {
        rc = db_step(st, stmt, err);
        if (rc < 0 && sqlite3_errcode(st->db) != SQLITE_BUSY)
            return -1;
        if (rc < 0)
            sqlite3_sleep(10);
    }
    if (rc > 0 && strcmp((const char *)sqlite3_column_text(stmt, 0), "wal") != 0)
        rc = err_set(err,
                     "%s: its file system does not support a write-ahead log; set "
                     "XDG_DATA_HOME to a local folder",
                     st->path);
    sqlite3_reset(stmt);
    return rc < 0 ? -1 : 0;
}

/* Answers that a program left half-written are not searchable yet. One that
 * is being written by another program right now comes out of the index again
 * with its next update. */
static int index_leftovers(struct store *st, struct err *err)
{
    int64_t any;
    sqlite3_stmt *stmt;
    if (db_integer(st, "SELECT EXISTS (SELECT 1 FROM messages WHERE searchable = 0)",
                   &any, err) < 0)
        return -1;
    if (!any)
        return 0;
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = db_prepare(st, "UPDATE messages SET searchable = 1 WHERE searchable = 0",
                        &stmt, err);
    if (rc == 0)
        rc = db_run(st, stmt, err);
    return db_end(st, rc, err);
}

int store_open_schema(struct store **out, const char *path, const char *schema,
                      struct err *err)
{
    static const char references[] = "PRAGMA foreign_keys = ON";
    struct store *st = mem_zalloc(sizeof *st);
    int latest = schema_latest(schema), version;
    *out = NULL;
    st->path = mem_strdup(path);
    if (!db_is_memory(st) && create_file(path, err) < 0)
        goto fail;
    if (connect(st, err) < 0 || schema_check(st, latest, &version, err) < 0)
        goto fail;
    sqlite3_db_config(st->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    if (sqlite3_db_readonly(st->db, "main") == 1) {
        err_set(err, "%s cannot be written; set XDG_DATA_HOME to a folder that can",
                path);
        goto fail;
    }
    if ((!db_is_memory(st) && use_log(st, err) < 0) ||
        schema_migrate(st, schema, err) < 0)
        goto fail;
    st->version = latest;
    if (db_script(st, references, sizeof references - 1, err) < 0 ||
        index_leftovers(st, err) < 0 || tidy_rebuild(st, err) < 0)
        goto fail;
    *out = st;
    return 0;
fail:
    store_close(st);
    return -1;
}

int store_open(struct store **out, const char *path, struct err *err)
{
    return store_open_schema(out, path, schema_text(), err);
}

void store_close(struct store *st)
{
    if (!st)
        return;
    for (int i = 0; i < DB_STATEMENTS; i++)
        sqlite3_finalize(st->cache[i].stmt);
    sqlite3_close(st->db);
    free(st->path);
    free(st);
}

int store_begin(struct store *st, struct err *err)
{
    return db_begin(st, true, err);
}

int store_end(struct store *st, int rc, struct err *err)
{
    return db_end(st, rc, err);
}

/* ---- settings ---------------------------------------------------------- */

int store_setting_get(struct store *st, const char *key, char **value, struct err *err)
{
    sqlite3_stmt *stmt;
    *value = NULL;
    if (db_prepare(st, "SELECT value FROM settings WHERE key = ?1", &stmt, err) < 0)
        return -1;
    db_bind_text(stmt, 1, key, strlen(key));
    int rc = db_step(st, stmt, err);
    if (rc > 0)
        *value = db_text(stmt, 0, NULL);
    sqlite3_reset(stmt);
    return rc < 0 ? -1 : 0;
}

static int setting_write(struct store *st, const char *key, const char *value,
                         struct err *err)
{
    static const char put[] = "INSERT INTO settings (key, value) VALUES (?1, ?2) "
                              "ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    static const char drop[] = "DELETE FROM settings WHERE key = ?1";
    sqlite3_stmt *stmt;
    if (db_prepare(st, value ? put : drop, &stmt, err) < 0)
        return -1;
    db_bind_text(stmt, 1, key, strlen(key));
    if (value)
        db_bind_text(stmt, 2, value, strlen(value));
    return db_run(st, stmt, err);
}

int store_setting_set(struct store *st, const char *key, const char *value,
                      struct err *err)
{
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = setting_write(st, key, value, err);
    return db_end(st, rc, err);
}
