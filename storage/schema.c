/* schema.c - versions of the database file.
 * The file carries Tern's application_id and, in user_version, the number of
 * the last section of schema.sql that it went through. Both change in the same
 * transaction as the tables, so a program that dies while it migrates leaves
 * the old version. */
#include "storage/schema.h"

#include "base/buf.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APPLICATION_ID 0x5465726e /* "Tern" */
#define SECTION        "\n-- version "

const char *schema_text(void)
{
    static const char sql[] =
#include "storage/schema.sql.h"
        ;
    return sql;
}

/* The text of section number n, NULL if there is none. */
static const char *section(const char *text, int n, size_t *bytes)
{
    const char *s = text;
    for (int i = 0; s && i < n; i++) {
        s = strstr(s, SECTION);
        s = s ? s + strlen(SECTION) : NULL;
    }
    if (!s || n < 1)
        return NULL;
    s += strcspn(s, "\n");
    const char *end = strstr(s, SECTION);
    *bytes = end ? (size_t)(end - s) : strlen(s);
    return s;
}

int schema_latest(const char *text)
{
    int n = 0;
    size_t bytes;
    while (section(text, n + 1, &bytes))
        n++;
    return n;
}

int schema_check(struct store *st, int latest, int *version, struct err *err)
{
    /* One statement, as another program may be creating the tables right now. */
    static const char sql[] =
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) "
        "FROM pragma_user_version, pragma_application_id";
    sqlite3_stmt *stmt;
    if (db_prepare(st, sql, &stmt, err) < 0 || db_step(st, stmt, err) < 0)
        return -1;
    sqlite3_int64 in_file = sqlite3_column_int64(stmt, 0);
    sqlite3_int64 application = sqlite3_column_int64(stmt, 1);
    sqlite3_int64 objects = sqlite3_column_int64(stmt, 2);
    sqlite3_reset(stmt);
    bool empty = in_file == 0 && application == 0 && objects == 0;
    if (!empty && (application != APPLICATION_ID || in_file < 1))
        return err_set(err, "%s is the database of another program; it was left alone",
                       st->path);
    if (in_file > latest)
        return err_set(
            err,
            "%s was written by a newer Tern: it has version %lld, this program "
            "knows up to %d; update the program",
            st->path, in_file, latest);
    *version = (int)in_file;
    return 0;
}

/* ---- backup copies ----------------------------------------------------- */

/* PATH.vN.bak, or where it is written before it is whole. malloced. */
static char *backup_path(const struct store *st, int version, const char *ending)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s.v%d.bak%s", st->path, version, ending);
    return buf_detach(&b);
}

void schema_remove_backups(const struct store *st)
{
    static const char *const endings[] = { "", ".tmp", ".tmp-journal" };
    for (int v = 1; v < st->version && !db_is_memory(st); v++) {
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            char *path = backup_path(st, v, endings[i]);
            unlink(path);
            free(path);
        }
    }
}

/* Copies what is committed in the file at st->path, log included, through a
 * connection of its own: that of st holds the write lock meanwhile. */
static int copy_database(struct store *st, const char *to, struct err *err)
{
    sqlite3 *src = NULL, *dst = NULL;
    sqlite3_backup *copy = NULL;
    int fd = fault_hit(FAULT_OPEN)
                 ? -1
                 : open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, "cannot create the backup %s: %s", to, strerror(errno));
    close(fd);
    int code = sqlite3_open_v2(st->path, &src, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_open_v2(to, &dst, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK) {
        copy = sqlite3_backup_init(dst, "main", src, "main");
        code = copy ? SQLITE_OK : sqlite3_errcode(dst);
    }
    if (code == SQLITE_OK && fault_hit(FAULT_WRITE))
        code = SQLITE_FULL;
    if (code == SQLITE_OK)
        code = sqlite3_backup_step(copy, -1);
    sqlite3_backup_finish(copy);
    sqlite3_close(dst);
    sqlite3_close(src);
    if (code != SQLITE_DONE)
        return err_set(err, "cannot write the backup %s: %s", to, sqlite3_errstr(code));
    return 0;
}

static int backup(struct store *st, int version, struct err *err)
{
    char *tmp = backup_path(st, version, ".tmp");
    char *path = backup_path(st, version, "");
    int rc = copy_database(st, tmp, err);
    if (rc == 0 && (fault_hit(FAULT_RENAME) || rename(tmp, path) < 0))
        rc = err_set(err, "cannot write the backup %s: %s", path, strerror(errno));
    if (rc == 0)
        rc = file_sync_dir(path, err);
    if (rc < 0)
        unlink(tmp);
    free(path);
    free(tmp);
    return rc;
}

/* ---- migration --------------------------------------------------------- */

static int stamp(struct store *st, int version, struct err *err)
{
    char sql[96];
    int n =
        snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 APPLICATION_ID, version);
    return db_script(st, sql, (size_t)n, err);
}

static int run_sections(struct store *st, const char *text, int from, int to,
                        struct err *err)
{
    int64_t broken = 0;
    for (int v = from + 1; v <= to; v++) {
        size_t bytes = 0;
        const char *sql = section(text, v, &bytes);
        if (db_script(st, sql, bytes, err) < 0)
            return err_prefix(err, "migration to version %d", v);
    }
    if (db_integer(st, "SELECT count(*) FROM pragma_foreign_key_check", &broken, err) < 0)
        return -1;
    if (broken)
        return err_set(err, "%s: migration to version %d left %lld broken references",
                       st->path, to, (long long)broken);
    return stamp(st, to, err);
}

int schema_migrate(struct store *st, const char *text, struct err *err)
{
    int latest = schema_latest(text), version = 0;
    if (schema_check(st, latest, &version, err) < 0)
        return -1;
    if (version == latest)
        return 0;
    /* Another process may have been faster: look again under the lock. */
    int rc = db_begin(st, true, err);
    if (rc == 0)
        rc = schema_check(st, latest, &version, err);
    if (rc == 0 && version > 0 && version < latest && !db_is_memory(st))
        rc = backup(st, version, err);
    if (rc == 0 && version < latest)
        rc = run_sections(st, text, version, latest, err);
    return db_end(st, rc, err);
}
