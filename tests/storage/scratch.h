/* scratch.h - what the tests of storage/ share: a directory of their own, short
 * ways to write messages, and the database seen from outside. */
#ifndef TESTS_STORAGE_SCRATCH_H
#define TESTS_STORAGE_SCRATCH_H

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "storage/db.h"
#include "storage/store.h"
#include "tests/test.h"

#include <sqlite3.h>
#include <sys/stat.h>

struct scratch {
    char dir[64];
    char db[96];
};

static inline void scratch_enter(struct scratch *s)
{
    snprintf(s->dir, sizeof s->dir, "/tmp/test-store-XXXXXX");
    REQUIRE(mkdtemp(s->dir) && chdir(s->dir) == 0);
    snprintf(s->db, sizeof s->db, "%s/tern/tern.db", s->dir);
    umask(022);
}

static inline void scratch_leave(const struct scratch *s)
{
    char cmd[96];
    REQUIRE(chdir("/") == 0);
    snprintf(cmd, sizeof cmd, "rm -rf %s", s->dir);
    REQUIRE(system(cmd) == 0);
}

static inline struct store *open_store(const char *path)
{
    struct store *st = NULL;
    struct err err = { "" };
    if (store_open(&st, path, &err) < 0)
        printf("# %s\n", err.text);
    REQUIRE(st);
    return st;
}

/* A call that must succeed; prints the reason if it does not. */
#define OK(call)                        \
    do {                                \
        err.text[0] = 0;                \
        int ok_rc_ = (call);            \
        if (ok_rc_ != 0)                \
            printf("# %s\n", err.text); \
        CHECK(ok_rc_ == 0);             \
    } while (0)

/* A call that must fail with a reason of one line that has this part. */
#define FAILS(call, part)                                         \
    do {                                                          \
        err.text[0] = 0;                                          \
        CHECK((call) == -1);                                      \
        if (!strstr(err.text, part))                              \
            printf("# \"%s\" lacks \"%s\"\n", err.text, part);    \
        CHECK(strstr(err.text, part) && !strchr(err.text, '\n')); \
    } while (0)

static inline struct message make_message(int64_t chat, int64_t parent, enum role role,
                                          const char *text)
{
    union {
        const char *in;
        char *out; /* the store does not write to it */
    } u = { text };
    return (struct message){ .chat_id = chat,
                             .parent_id = parent,
                             .role = role,
                             .text = u.out,
                             .text_bytes = strlen(text) };
}

static inline int64_t add(struct store *st, int64_t chat, int64_t parent, enum role role,
                          const char *text)
{
    struct err err;
    struct message m = make_message(chat, parent, role, text);
    OK(store_message_add(st, &m, &err));
    REQUIRE(m.id);
    return m.id;
}

static inline int64_t new_chat(struct store *st, const char *title)
{
    struct err err;
    int64_t id = 0;
    OK(store_chat_new(st, title, "mini", &id, &err));
    REQUIRE(id);
    return id;
}

/* ---- seen from outside ------------------------------------------------- */

static inline int dump_row(void *out, int n, char **values, char **names)
{
    (void)names;
    for (int i = 0; i < n; i++)
        buf_printf(out, "%s|", values[i] ? values[i] : "NULL");
    buf_char(out, '\n');
    return 0;
}

/* All rows of all tables, as another program reads them. malloced. */
static inline char *dump(const char *path)
{
    static const char *const queries[] = {
        "PRAGMA user_version",
        "SELECT sql FROM sqlite_schema ORDER BY name",
        "SELECT *, hex(title) FROM chats ORDER BY id",
        "SELECT *, hex(text), hex(thinking), hex(ids) FROM messages ORDER BY id",
        "SELECT * FROM settings ORDER BY key",
    };
    struct buf b = BUF_INIT;
    sqlite3 *db = NULL;
    REQUIRE(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        REQUIRE(sqlite3_exec(db, queries[i], dump_row, &b, NULL) == SQLITE_OK);
    sqlite3_close(db);
    return buf_detach(&b);
}

/* SQLite's own check, the references, and the search index against the texts. */
static inline void check_integrity(struct store *st)
{
    static const char checks[] =
        "PRAGMA integrity_check; PRAGMA foreign_key_check;"
        "INSERT INTO message_words (message_words, rank) VALUES ('integrity-check', 1);"
        "INSERT INTO title_words (title_words, rank) VALUES ('integrity-check', 1)";
    struct buf b = BUF_INIT;
    char *reason = NULL;
    if (sqlite3_exec(st->db, checks, dump_row, &b, &reason) != SQLITE_OK)
        printf("# %s\n", reason);
    CHECK(!reason);
    CHECK_STR(buf_cstr(&b), "ok|\n");
    sqlite3_free(reason);
    buf_release(&b);
}

static inline unsigned mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mode & 07777u : 0;
}

static inline char *read_file(const char *path, size_t *bytes)
{
    struct buf b = BUF_INIT;
    struct err err;
    REQUIRE(file_read_all(path, 1u << 30, &b, &err) == 0);
    if (bytes)
        *bytes = b.len;
    return buf_detach(&b);
}

#endif
