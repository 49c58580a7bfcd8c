/* db.h - what the files of storage/ share: the open database, its prepared
 * statements and transactions. Thread-safety: one thread. */
#ifndef STORAGE_DB_H
#define STORAGE_DB_H

#include "base/err.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DB_STATEMENTS 48    /* over the number of SQL texts in storage/ */
#define DB_WAIT_MS    30000 /* how long to wait for other programs */

struct store {
    sqlite3 *db;
    char *path;  /* ":memory:": nothing is kept */
    int version; /* of the schema that this program writes */
    bool full_sync;
    int depth;     /* transactions begun and not ended: the outermost counts */
    bool undone;   /* one within it has failed */
    uint64_t wait_from_ns; /* since when another program is in the way */
    unsigned wait_ms;      /* how long that may be */
    struct {
        const char *sql; /* a literal: compared by address */
        sqlite3_stmt *stmt;
    } cache[DB_STATEMENTS];
};

/* store_open with another schema text; newer and older programs for tests. */
int store_open_schema(struct store **out, const char *path, const char *schema,
                      struct err *err);

/* Makes calls wait for locks of other programs, up to DB_WAIT_MS. */
void db_wait_for_others(struct store *st);
bool db_is_memory(const struct store *st);
/* Puts SQLite's reason, the place and what to do into err; returns -1. */
int db_fail(const struct store *st, struct err *err);

/* The prepared form of a string literal, reset and with nothing bound. */
int db_prepare(struct store *st, const char *sql, sqlite3_stmt **out, struct err *err);
/* 1: there is a row. 0: the end; -1: failed; both leave the statement reset. */
int db_step(struct store *st, sqlite3_stmt *stmt, struct err *err);
/* Steps to the end and drops the rows. */
int db_run(struct store *st, sqlite3_stmt *stmt, struct err *err);
/* Runs the statements of a text one after the other. */
int db_script(struct store *st, const char *sql, size_t bytes, struct err *err);
/* The integer that a query without parameters gives, 0 without a row. */
int db_integer(struct store *st, const char *sql, int64_t *out, struct err *err);

/* Opens a write transaction, or goes on with the one that is open; durable: what it commits survives a power cut,
 * otherwise only the death of the program. */
int db_begin(struct store *st, bool durable, struct err *err);
/* Ends it: commits if rc is 0, and returns 0 if that succeeded. Else undoes
 * everything since db_begin and returns -1; err keeps the first reason. Also
 * right after a db_begin that failed. */
int db_end(struct store *st, int rc, struct err *err);

/* Moves what the log holds into the file and cuts the log to nothing, so that
 * deleted texts are in neither. False if another program is in the way; the last
 * one to close the database does it, too. */
bool db_empty_log(struct store *st);

/* NULL is bound as NULL. The bytes must live until the statement is reset. */
void db_bind_text(sqlite3_stmt *stmt, int i, const char *s, size_t bytes);
/* 0 is bound as NULL: no parent, no leaf. */
void db_bind_id(sqlite3_stmt *stmt, int i, int64_t id);
/* malloced copy of a text column with its length (bytes may be NULL); NULL for
 * a NULL column. */
char *db_text(sqlite3_stmt *stmt, int column, size_t *bytes);
/* The same, "" for NULL. */
char *db_text_or_empty(sqlite3_stmt *stmt, int column, size_t *bytes);

#endif
