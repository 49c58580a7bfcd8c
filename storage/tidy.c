/* tidy.c - takes the words of deleted chats out of the file, a little at a time.
 * The search index only marks words as deleted; putting its parts together into
 * one is what takes them out. That rewrites the whole index, which may take
 * seconds: hence the steps, each a transaction of its own.
 * Invariant: while anything may be left, the setting "untidy" is there: "new" for
 * parts that are not being put together yet, else "going". */
#include "storage/tidy.h"

#include "base/clock.h"
#include "storage/db.h"
#include "storage/schema.h"
#include "storage/store.h"

#include <stdlib.h>
#include <string.h>

/* Putting all parts together adds a level to the index's list of parts, and SQLite
 * 3.40 can read no more than some 1,290 levels. Making an index anew begins with
 * one level; it takes longer, but is needed only after so many deletions. */
enum { LEVELS_TO_REBUILD = 800, LEVELS_MAX = 1200 };

struct table {
    const char *levels, *begin, *go_on, *rebuild;
};

static const struct table tables[] = {
    { "SELECT substr(block, 5, 2) FROM message_words_data WHERE id = 10",
      "INSERT INTO message_words (message_words, rank) VALUES ('merge', -64)",
      "INSERT INTO message_words (message_words, rank) VALUES ('merge', 64)",
      "INSERT INTO message_words (message_words) VALUES ('rebuild')" },
    { "SELECT substr(block, 5, 2) FROM title_words_data WHERE id = 10",
      "INSERT INTO title_words (title_words, rank) VALUES ('merge', -64)",
      "INSERT INTO title_words (title_words, rank) VALUES ('merge', 64)",
      "INSERT INTO title_words (title_words) VALUES ('rebuild')" },
};
enum { TABLES = sizeof tables / sizeof *tables };

/* Levels of an index: a variable-length integer after the first four bytes of its
 * list of parts. */
static int levels(struct store *st, const struct table *t, int *out, struct err *err)
{
    sqlite3_stmt *stmt;
    if (db_prepare(st, t->levels, &stmt, err) < 0)
        return -1;
    int rc = db_step(st, stmt, err);
    const unsigned char *b = rc > 0 ? sqlite3_column_blob(stmt, 0) : NULL;
    *out = 0;
    if (b && sqlite3_column_bytes(stmt, 0) == 2)
        *out = b[0] < 0x80 ? b[0] : (b[0] & 0x7f) << 7 | (b[1] & 0x7f);
    sqlite3_reset(stmt);
    return rc < 0 ? -1 : 0;
}

static int run(struct store *st, const char *sql, struct err *err)
{
    sqlite3_stmt *stmt;
    return db_prepare(st, sql, &stmt, err) < 0 ? -1 : db_run(st, stmt, err);
}

int tidy_rebuild(struct store *st, struct err *err)
{
    for (int i = 0; i < TABLES; i++) {
        int n;
        if (levels(st, &tables[i], &n, err) < 0)
            return -1;
        if (n < LEVELS_TO_REBUILD)
            continue;
        int rc = db_begin(st, true, err);
        if (rc == 0)
            rc = run(st, tables[i].rebuild, err);
        if (db_end(st, rc, err) < 0)
            return -1;
    }
    return 0;
}

/* Whether an index has to be made anew first, which happens at the next start. */
static int is_full(struct store *st, bool *full, struct err *err)
{
    *full = false;
    for (int i = 0; i < TABLES; i++) {
        int n;
        if (levels(st, &tables[i], &n, err) < 0)
            return -1;
        *full = *full || n >= LEVELS_MAX;
    }
    return 0;
}

/* Rewrites up to 64 pages of one index. What changes nothing counts as one change,
 * its own row. */
static int merge(struct store *st, const struct table *t, bool begin, bool *more,
                 struct err *err)
{
    int before = sqlite3_total_changes(st->db);
    if (run(st, begin ? t->begin : t->go_on, err) < 0)
        return -1;
    *more = *more || sqlite3_total_changes(st->db) - before > 1;
    return 0;
}

static int merge_all(struct store *st, bool begin, bool *more, struct err *err)
{
    int rc = db_begin(st, false, err);
    for (int i = 0; rc == 0 && i < TABLES; i++)
        rc = merge(st, &tables[i], begin, more, err);
    if (rc == 0 && begin)
        rc = run(st, "UPDATE settings SET value = 'going' WHERE key = 'untidy'", err);
    return db_end(st, rc, err);
}

int store_tidy(struct store *st, bool *more, bool *blocked, struct err *err)
{
    char *untidy;
    bool merging = false;
    *more = *blocked = false;
    if (store_setting_get(st, "untidy", &untidy, err) < 0)
        return -1;
    if (!untidy)
        return 0;
    bool begin = !strcmp(untidy, "new");
    free(untidy);
    *more = true;
    if (is_full(st, blocked, err) < 0)
        return -1;
    if (*blocked)
        return 0;
    if (merge_all(st, begin, &merging, err) < 0)
        return -1;
    if (merging || begin)
        return 0;
    schema_remove_backups(st);
    *blocked = !db_is_memory(st) && !db_empty_log(st);
    if (*blocked)
        return 0;
    *more = false;
    return store_setting_set(st, "untidy", NULL, err);
}

int store_tidy_all(struct store *st, int timeout_ms, struct err *err)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_ms * 1000000;
    bool more = true, blocked = false;
    while (more && clock_ns() < until) {
        if (store_tidy(st, &more, &blocked, err) < 0)
            return -1;
        if (blocked)
            sqlite3_sleep(10);
    }
    return 0;
}
