/* test_open.c - opening: modes of files, other versions and other programs'
 * files, migrations that fail or die, places that cannot be written. */
#include "tests/storage/scratch.h"

#include "base/fault.h"
#include "storage/schema.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>

/* A later version: a new column, a table made anew, and a changed index. */
static const char next_version[] =
    "\n-- version 4\n"
    "ALTER TABLE chats ADD COLUMN starred INTEGER NOT NULL DEFAULT 0;\n"
    "CREATE TABLE settings2 (key TEXT PRIMARY KEY, value TEXT NOT NULL, at INTEGER);\n"
    "INSERT INTO settings2 (key, value) SELECT key, value || '!' FROM settings;\n"
    "DROP TABLE settings; -- a comment; with a semicolon\n"
    "ALTER TABLE settings2 RENAME TO settings;\n"
    "\n-- version 5\n"
    "UPDATE chats SET starred = 1 WHERE title = 'kept';\n";

/* The shipped schema followed by more. malloced. */
static char *schema_with(const char *more)
{
    struct buf b = BUF_INIT;
    buf_str(&b, schema_text());
    buf_str(&b, more);
    return buf_detach(&b);
}

static void make_old(const char *path)
{
    struct err err;
    struct store *st = open_store(path);
    int64_t chat = new_chat(st, "kept");
    add(st, chat, 0, ROLE_USER, "an old text about quokkas");
    new_chat(st, "other");
    OK(store_setting_set(st, "k", "v", &err));
    store_close(st);
}

static int entries(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static bool same_bytes(const char *path, const char *want, size_t bytes)
{
    size_t n;
    char *now = read_file(path, &n);
    bool same = n == bytes && !memcmp(now, want, n);
    free(now);
    return same;
}

static char *path_with(const struct scratch *s, const char *ending)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s%s", s->db, ending);
    return buf_detach(&b);
}

static void test_modes(void)
{
    struct scratch s;
    scratch_enter(&s);
    char *wal = path_with(&s, "-wal"), *shm = path_with(&s, "-shm");
    struct store *st = open_store(s.db);
    add(st, new_chat(st, "x"), 0, ROLE_USER, "private");
    CHECK(mode_of("tern") == 0700);
    CHECK(mode_of(s.db) == 0600 && mode_of(wal) == 0600 && mode_of(shm) == 0600);
    store_close(st);
    CHECK(entries("tern") == 1); /* log and shared memory are gone */

    /* Files that others could read, as after a copy by hand, while another
     * program is running. */
    st = open_store(s.db);
    add(st, 1, 0, ROLE_USER, "private");
    CHECK(chmod(s.db, 0644) == 0 && chmod(wal, 0666) == 0 && chmod(shm, 0644) == 0);
    struct store *second = open_store(s.db);
    CHECK(mode_of(s.db) == 0600 && mode_of(wal) == 0600 && mode_of(shm) == 0600);
    store_close(second);
    store_close(st);
    free(wal);
    free(shm);
    scratch_leave(&s);
}

static void test_memory(void)
{
    struct scratch s;
    scratch_enter(&s);
    struct store *st = open_store(":memory:");
    struct err err;
    int64_t chat = new_chat(st, "x");
    add(st, chat, 0, ROLE_USER, "nothing is kept");
    OK(store_chat_delete(st, chat, &err));
    store_close(st);
    store_close(NULL);
    CHECK(entries(".") == 0);
    scratch_leave(&s);
}

static void test_default_path(void)
{
    struct err err = { "" };
    setenv("XDG_DATA_HOME", "/data", 1);
    char *p = store_default_path(&err);
    CHECK_STR(p ? p : "NULL", "/data/tern/tern.db");
    free(p);
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    CHECK(!store_default_path(&err) && strstr(err.text, "HOME"));
}

/* ---- versions ---------------------------------------------------------- */

static void test_newer_is_left_alone(void)
{
    struct scratch s;
    struct err err;
    struct store *st = NULL;
    size_t bytes, wal_bytes;
    scratch_enter(&s);
    make_old(s.db);
    char *newer = schema_with(next_version);
    REQUIRE(store_open_schema(&st, s.db, newer, &err) == 0);
    store_close(st);
    char *before = read_file(s.db, &bytes);
    FAILS(store_open(&st, s.db, &err), "version 5");
    CHECK(!st && strstr(err.text, "up to 3") && strstr(err.text, s.db));
    CHECK(same_bytes(s.db, before, bytes));
    free(before);

    /* With a log that its program did not live to move into the file. */
    pid_t pid = fork();
    if (pid == 0) {
        REQUIRE(store_open_schema(&st, s.db, newer, &err) == 0);
        new_chat(st, "in the log");
        raise(SIGKILL);
    }
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    char *wal = path_with(&s, "-wal");
    before = read_file(s.db, &bytes);
    char *log = read_file(wal, &wal_bytes);
    REQUIRE(wal_bytes > 0);
    FAILS(store_open(&st, s.db, &err), "newer");
    CHECK(same_bytes(s.db, before, bytes) && same_bytes(wal, log, wal_bytes));
    free(before);
    free(log);
    free(wal);

    /* Its own program still has everything. */
    REQUIRE(store_open_schema(&st, s.db, newer, &err) == 0);
    struct chat_list l;
    OK(store_chat_list(st, &l, &err));
    CHECK(l.len == 3);
    chat_list_release(&l);
    store_close(st);
    free(newer);
    scratch_leave(&s);
}

static void test_other_programs_file(void)
{
    struct scratch s;
    struct err err;
    struct store *st;
    sqlite3 *db;
    size_t bytes;
    scratch_enter(&s);
    REQUIRE(sqlite3_open("other.db", &db) == 0);
    REQUIRE(sqlite3_exec(db, "CREATE TABLE chats (a)", 0, 0, 0) == 0);
    sqlite3_close(db);
    char *before = read_file("other.db", &bytes);
    FAILS(store_open(&st, "other.db", &err), "another program");
    CHECK(same_bytes("other.db", before, bytes) && !st);
    REQUIRE(sqlite3_open("other.db", &db) == 0);
    REQUIRE(sqlite3_exec(db, "PRAGMA user_version = 1", 0, 0, 0) == 0);
    sqlite3_close(db);
    FAILS(store_open(&st, "other.db", &err), "another program");
    free(before);

    REQUIRE(file_write_atomic("text",
                              "no database at all, but more than a header of one; "
                              "no database at all, but more than a header of one",
                              100, &err) == 0);
    before = read_file("text", &bytes);
    FAILS(store_open(&st, "text", &err), "move the file away");
    CHECK(same_bytes("text", before, bytes));
    free(before);
    FAILS(store_open(&st, "", &err), "name");
    REQUIRE(mkdir("folder", 0700) == 0);
    FAILS(store_open(&st, "folder", &err), "folder");
    scratch_leave(&s);
}

/* A file cut or changed anywhere is an error or opens, never a crash. */
static void test_damaged_files(void)
{
    struct scratch s;
    struct err err;
    struct store *st;
    struct hit_list hits;
    struct message_list l;
    struct chat_list chats;
    size_t bytes;
    int refused = 0;
    scratch_enter(&s);
    make_old(s.db);
    char *good = read_file(s.db, &bytes);
    char *bad = mem_alloc(bytes);
    srand(5);
    for (int i = 0; i < 150; i++) {
        size_t keep = i < 30 ? bytes * (size_t)i / 30 : bytes;
        memcpy(bad, good, bytes);
        for (int k = 0; i >= 30 && k < 20; k++)
            bad[(size_t)rand() % (i % 3 ? bytes : 200)] ^= (char)(1 << rand() % 8);
        REQUIRE(file_write_atomic("damaged", bad, keep, &err) == 0);
        err.text[0] = 0;
        if (store_open(&st, "damaged", &err) < 0) {
            CHECK(err.text[0]);
            refused++;
            continue;
        }
        if (store_chat_list(st, &chats, &err) == 0)
            chat_list_release(&chats);
        if (store_path(st, 1, &l, &err) == 0)
            message_list_release(&l);
        if (store_search(st, "quokkas", 10, &hits, &err) == 0)
            hit_list_release(&hits);
        store_chat_delete(st, 1, &err);
        store_close(st);
        unlink("damaged-wal");
        unlink("damaged-shm");
    }
    CHECK(refused > 20);
    free(bad);
    free(good);
    scratch_leave(&s);
}

static void test_older_is_migrated(void)
{
    struct scratch s;
    struct err err;
    struct store *st = NULL;
    struct hit_list hits;
    char *value;
    scratch_enter(&s);
    make_old(s.db);
    char *before = dump(s.db), *newer = schema_with(next_version);
    char *backup = path_with(&s, ".v3.bak");
    REQUIRE(schema_latest(schema_text()) == 3 && schema_latest(newer) == 5);
    REQUIRE(store_open_schema(&st, s.db, newer, &err) == 0);
    check_integrity(st);
    OK(store_setting_get(st, "k", &value, &err));
    CHECK_STR(value ? value : "NULL", "v!");
    free(value);
    OK(store_search(st, "quokkas", 5, &hits, &err));
    CHECK(hits.len == 1);
    hit_list_release(&hits);
    store_close(st);
    char *after = dump(s.db);
    CHECK(strncmp(after, "5|", 2) == 0 && strstr(after, "|1|kept") == NULL);
    CHECK(strstr(after, "starred"));
    free(after);

    /* The copy holds the old version, and this program can use it. */
    CHECK(mode_of(backup) == 0600 && entries("tern") == 2);
    char *copy = dump(backup);
    CHECK_STR(copy, before);
    free(copy);
    st = open_store(backup);
    check_integrity(st);
    store_close(st);

    /* Opening again migrates nothing; a fresh file needs no copy. */
    REQUIRE(store_open_schema(&st, s.db, newer, &err) == 0);
    store_close(st);
    REQUIRE(store_open_schema(&st, "fresh/db", newer, &err) == 0);
    store_close(st);
    CHECK(entries("fresh") == 1);
    free(backup);
    free(newer);
    free(before);
    scratch_leave(&s);
}

/* What version 2 had to count for each list is counted once. */
static void test_version_2(void)
{
    struct scratch s;
    struct err err;
    struct store *st = NULL;
    struct chat_list l;
    struct message_list path;
    scratch_enter(&s);
    const char *end = strstr(schema_text(), "\n-- version 3\n");
    REQUIRE(end);
    char *old = mem_strndup(schema_text(), (size_t)(end - schema_text()));
    REQUIRE(store_open_schema(&st, s.db, old, &err) == 0);
    REQUIRE(
        sqlite3_exec(st->db,
                     "INSERT INTO chats VALUES (3, 'kept', 'mini', 5, 6, 1, NULL);"
                     "INSERT INTO chats VALUES (4, 'empty', '', 5, 6, 2, NULL);"
                     "INSERT INTO messages VALUES (9, 3, NULL, 'user', 'complete', 7, "
                     "'quokkas \xf0\x9f\x90\xa8', NULL, NULL, NULL, 1, 2, 3, 4, 5, 6, "
                     "7, 1), (10, 3, 9, 'assistant', 'complete', 8, 'yes', 'hm', "
                     "NULL, NULL, 1, 2, 3, 4, 5, 6, 7, 1);"
                     "UPDATE chats SET leaf_id = 10 WHERE id = 3",
                     0, 0, 0) == 0);
    store_close(st);
    st = open_store(s.db);
    OK(store_chat_list(st, &l, &err));
    REQUIRE(l.len == 2 && l.v[1].id == 3);
    CHECK(l.v[0].n_messages == 0 && l.v[0].n_bytes == 0);
    CHECK(l.v[1].n_messages == 2 && l.v[1].n_bytes == 8 + 4 + 3);
    CHECK(l.v[1].title_source == TITLE_USER && !l.v[1].pinned);
    chat_list_release(&l);
    OK(store_path(st, 10, &path, &err));
    CHECK(path.len == 2 && path.v[1].stats.decode_tps == 7 && !path.v[1].model);
    message_list_release(&path);
    check_integrity(st);
    store_close(st);
    free(old);
    scratch_leave(&s);
}

/* What is only in the log of a killed program is in the copy, too. */
static void test_backup_has_the_log(void)
{
    struct scratch s;
    struct err err;
    struct store *st = NULL;
    int status;
    scratch_enter(&s);
    pid_t pid = fork();
    if (pid == 0) {
        make_old(s.db);
        st = open_store(s.db);
        new_chat(st, "only in the log");
        raise(SIGKILL);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    char *newer = schema_with(next_version), *backup = path_with(&s, ".v3.bak");
    REQUIRE(store_open_schema(&st, s.db, newer, &err) == 0);
    store_close(st);
    char *copy = dump(backup);
    CHECK(strstr(copy, "only in the log"));
    free(copy);
    free(backup);
    free(newer);
    scratch_leave(&s);
}

/* Each statement, write, sync and rename of a migration fails once. */
static void test_migration_faults(void)
{
    static const enum fault_kind kinds[] = { FAULT_SQL, FAULT_OPEN, FAULT_WRITE,
                                             FAULT_FSYNC, FAULT_RENAME };
    struct scratch s;
    struct err err;
    struct store *st = NULL;
    size_t bytes;
    scratch_enter(&s);
    make_old(s.db);
    char *before = dump(s.db), *newer = schema_with(next_version);
    char *old = read_file(s.db, &bytes);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        unsigned n = 1;
        for (;; n++) {
            REQUIRE(file_write_atomic(s.db, old, bytes, &err) == 0);
            fault_arm(kinds[k], n);
            err.text[0] = 0;
            int rc = store_open_schema(&st, s.db, newer, &err);
            if (!fault_disarm(kinds[k])) {
                CHECK(rc == 0);
                break;
            }
            CHECK(rc == -1 && !st && err.text[0]);
            /* After its COMMIT a migration is done, whatever fails then. */
            char *now = dump(s.db);
            CHECK(strncmp(now, "5|", 2) == 0 || strcmp(now, before) == 0);
            free(now);
        }
        CHECK(n > 1);
        printf("# migration: %u faults of kind %d\n", n - 1, (int)kinds[k]);
        check_integrity(st);
        store_close(st);
    }
    free(old);
    free(newer);
    free(before);
    scratch_leave(&s);
}

/* A migration of a version that is wrong: its SQL fails, or it leaves a
 * reference to nothing. */
static void test_bad_migration(void)
{
    struct scratch s;
    struct err err;
    struct store *st;
    scratch_enter(&s);
    make_old(s.db);
    char *before = dump(s.db);
    char *wrong = schema_with("\n-- version 4\nDELETE FROM messages; SELEKT 1;\n");
    FAILS(store_open_schema(&st, s.db, wrong, &err), "version 4");
    free(wrong);
    wrong = schema_with("\n-- version 4\nDELETE FROM messages;\n");
    FAILS(store_open_schema(&st, s.db, wrong, &err), "broken references");
    free(wrong);
    char *after = dump(s.db);
    CHECK_STR(after, before);
    free(after);
    free(before);
    scratch_leave(&s);
}

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L },
              NULL);
}

/* kill -9 at many moments of a migration that takes about 150 ms. */
static void test_migration_killed(void)
{
    struct scratch s;
    struct err err;
    struct store *st = NULL;
    size_t bytes;
    int old_left = 0, done = 0;
    scratch_enter(&s);
    make_old(s.db);
    char *before = dump(s.db), *old = read_file(s.db, &bytes);
    char *newer =
        schema_with("\n-- version 4\nCREATE TABLE filler (a);\n"
                    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                    "WHERE i < 40000) "
                    "INSERT INTO filler SELECT randomblob(200) FROM n;\n"
                    "ALTER TABLE chats ADD COLUMN starred INTEGER NOT NULL DEFAULT 0;\n");
    for (int i = 0; i < 20; i++) {
        REQUIRE(system("rm -rf tern && mkdir tern") == 0);
        REQUIRE(file_write_atomic(s.db, old, bytes, &err) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            store_open_schema(&st, s.db, newer, &err);
            nap_ms(10000);
            _exit(0);
        }
        nap_ms(5 + 12 * i);
        int status;
        kill(pid, SIGKILL);
        REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        char *now = dump(s.db);
        if (!strcmp(now, before))
            old_left++;
        else
            done += strncmp(now, "4|", 2) == 0;
        CHECK(old_left + done == i + 1);
        free(now);
        REQUIRE(store_open_schema(&st, s.db, newer, &err) == 0);
        check_integrity(st);
        store_close(st);
    }
    printf("# killed 20 migrations: %d had not happened, %d were complete\n", old_left,
           done);
    CHECK(old_left > 0);
    free(newer);
    free(old);
    free(before);
    scratch_leave(&s);
}

/* Another program migrates the file that this one has open. */
static void test_migrated_meanwhile(void)
{
    struct scratch s;
    struct err err;
    struct store *st, *newer_st = NULL;
    scratch_enter(&s);
    make_old(s.db);
    st = open_store(s.db);
    char *newer = schema_with(next_version);
    REQUIRE(store_open_schema(&newer_st, s.db, newer, &err) == 0);
    struct message m = make_message(1, 1, ROLE_USER, "written by the old program");
    FAILS(store_message_add(st, &m, &err), "from version 3 to 5");
    FAILS(store_chat_delete(st, 1, &err), "start this one again");
    store_close(st);
    check_integrity(newer_st);
    store_close(newer_st);
    free(newer);
    scratch_leave(&s);
}

/* ---- places that cannot be written ------------------------------------- */

/* Runs in a process of its own: root has to become somebody whom modes stop. */
static void check_modes_stop_us(const struct scratch *s)
{
    struct err err;
    struct store *st;
    REQUIRE(chmod(s->dir, 0555) == 0 && chmod("tern", 0555) == 0 &&
            chmod(s->db, 0444) == 0);
    if (geteuid() == 0)
        REQUIRE(setgid(65534) == 0 && setuid(65534) == 0);
    FAILS(store_open(&st, s->db, &err), "XDG_DATA_HOME"); /* a file for reading */
    CHECK(!st && strstr(err.text, s->db));
    FAILS(store_open(&st, "new/tern.db", &err), "XDG_DATA_HOME");
    CHECK(strstr(err.text, "new"));
    FAILS(store_open(&st, "tern/new.db", &err), "XDG_DATA_HOME");
}

static void test_not_writable(void)
{
    struct scratch s;
    struct err err;
    struct store *st;
    scratch_enter(&s);
    make_old(s.db);
    FAILS(store_open(&st, "/proc/tern/tern.db", &err), "/proc/tern");
    CHECK(!st && strstr(err.text, "XDG_DATA_HOME"));
    REQUIRE(system("touch plain") == 0);
    FAILS(store_open(&st, "plain/tern.db", &err), "plain");

    pid_t pid = fork();
    if (pid == 0) {
        check_modes_stop_us(&s);
        exit(test_failures ? 1 : 0);
    }
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE(chmod(s.dir, 0700) == 0 && chmod("tern", 0700) == 0);
    scratch_leave(&s);
}

TEST_MAIN(T(test_modes), T(test_memory), T(test_default_path),
          T(test_newer_is_left_alone), T(test_other_programs_file), T(test_damaged_files),
          T(test_older_is_migrated), T(test_version_2), T(test_backup_has_the_log),
          T(test_migration_faults), T(test_bad_migration), T(test_migration_killed),
          T(test_migrated_meanwhile), T(test_not_writable))
