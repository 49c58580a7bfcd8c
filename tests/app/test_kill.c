/* test_kill.c - the program is killed at seeded random moments while somebody
 * types, while it reads, streams, saves, migrates, imports and deletes. Each time
 * the database is sound, the next start is an ordinary one, and of an answer at
 * most what came in the last second is missing.
 * KILLS=N kills, KILL_SEED=N. The engine is a scripted one; all else is real. */
#define _GNU_SOURCE
#define TEST_SECONDS 86400
#include "app/command.h"
#include "app/out.h"
#include "base/clock.h"
#include "storage/schema.h"
#include "tests/app/fake_engine.h"

#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)

static char home[48], db_path[96];
static uint64_t seed;

static unsigned below(unsigned n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (unsigned)((seed * 2685821657736338717ull) >> 33) % n;
}

static void nap_us(unsigned us)
{
    nanosleep(&(struct timespec){ us / 1000000, (long)(us % 1000000) * 1000 }, NULL);
}

/* ---- the program in a child process ----------------------------------------- */

enum { ARGS = 6 };

static int command(char **argv, int argc)
{
    struct env env;
    struct err err = { "" };
    const struct command *c = command_find(argc ? argv[0] : "");
    REQUIRE(c);
    int first = argc ? 1 : 0;
    int rc = env_open(&env, argc - first, argv + first, c->options, &err);
    if (rc == 0)
        rc = c->run(&env, &err);
    if (rc >= 0 && out_flush(&err) < 0)
        rc = -1;
    if (rc < 0)
        note_printf("tern: %s", err.text);
    bool now = env.exit_now;
    env_close(&env);
    if (now)
        _exit(rc);
    return rc;
}

/* Standard output goes to *out, or everything to a terminal whose other end it
 * gets. */
static pid_t program(const char *const *words, bool terminal, int *out)
{
    int fds[2] = { -1, -1 };
    fflush(stdout);
    if (terminal) {
        fds[0] = posix_openpt(O_RDWR | O_NOCTTY);
        REQUIRE(fds[0] >= 0 && grantpt(fds[0]) == 0 && unlockpt(fds[0]) == 0);
    } else {
        REQUIRE(pipe(fds) == 0);
    }
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        char *argv[ARGS + 1] = { NULL };
        int argc = 0;
        alarm(60);
        for (; argc < ARGS && words[argc]; argc++)
            argv[argc] = strdup(words[argc]);
        if (terminal) {
            setsid();
            fds[1] = open(ptsname(fds[0]), O_RDWR);
            ioctl(fds[1], TIOCSCTTY, 0);
            ioctl(fds[1], TIOCSWINSZ, &(struct winsize){ .ws_row = 24, .ws_col = 80 });
            dup2(fds[1], STDIN_FILENO);
            dup2(fds[1], STDERR_FILENO);
        }
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        _exit(command(argv, argc));
    }
    if (!terminal)
        close(fds[1]);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *out = fds[0];
    return pid;
}

/* What it printed, and when. */
struct printed {
    char text[65536];
    size_t n;
    struct moment {
        uint64_t ns;
        size_t n;
    } moments[4096];
    size_t n_moments;
};

static void listen_for(int fd, struct printed *p, uint64_t ns)
{
    for (uint64_t now = clock_ns(), end = now + ns; now < end; now = clock_ns()) {
        struct pollfd f = { .fd = fd, .events = POLLIN };
        poll(&f, 1, (int)((end - now) / 1000000) + 1);
        char piece[4096];
        ssize_t got;
        while ((got = read(fd, piece, sizeof piece)) > 0) {
            size_t room = sizeof p->text - 1 - p->n;
            size_t n = (size_t)got < room ? (size_t)got : room;
            memcpy(p->text + p->n, piece, n);
            p->n += n;
            if (p->n_moments < sizeof p->moments / sizeof *p->moments)
                p->moments[p->n_moments++] = (struct moment){ clock_ns(), p->n };
        }
        if (got == 0 || (got < 0 && errno == EIO)) {
            uint64_t left = clock_ns();
            if (left < end)
                nap_us((unsigned)((end - left) / 1000));
            return;
        }
    }
}

/* Bytes that had been printed a second before `at`. */
static size_t printed_before(const struct printed *p, uint64_t at)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_moments && p->moments[i].ns + SECOND <= at; i++)
        n = p->moments[i].n;
    return n;
}

static void end_by_kill(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    REQUIRE(waitpid(pid, &status, 0) == pid);
    /* It may have come to its own end before. */
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
}

/* Runs to its end; its exit status. */
static int run_whole(const char *const *words, struct printed *p)
{
    int out, status;
    *p = (struct printed){ .n = 0 };
    pid_t pid = program(words, false, &out);
    while (waitpid(pid, &status, WNOHANG) == 0)
        listen_for(out, p, SECOND / 200);
    listen_for(out, p, SECOND / 1000);
    close(out);
    p->text[p->n] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* ---- what is on disk --------------------------------------------------------- */

static int take_text(void *to, int n, char **values, char **names)
{
    (void)n;
    (void)names;
    buf_str(to, values[0] ? values[0] : "");
    return 0;
}

/* The texts that a query gives, one after the other; malloced. */
static char *ask_db(const char *sql)
{
    struct buf b = BUF_INIT;
    sqlite3 *db = NULL;
    char *why = NULL;
    REQUIRE(sqlite3_open_v2(db_path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_exec(db, sql, take_text, &b, &why) != SQLITE_OK)
        printf("# %s: %s\n", sql, why);
    CHECK(!why);
    sqlite3_free(why);
    sqlite3_close(db);
    return buf_detach(&b);
}

static long ask_number(const char *sql)
{
    char *text = ask_db(sql);
    long n = atol(text);
    free(text);
    return n;
}

static void check_answer(const char *sql, const char *want)
{
    char *got = ask_db(sql);
    if (strcmp(got, want) != 0)
        printf("# %s\n", sql);
    CHECK_STR(got, want);
    free(got);
}

/* The search index against the texts; it needs the store's own tokenizer. */
static void check_words(void)
{
    static const char sql[] =
        "INSERT INTO message_words (message_words, rank) VALUES ('integrity-check', 1);"
        "INSERT INTO title_words (title_words, rank) VALUES ('integrity-check', 1)";
    struct store *st;
    struct err err;
    REQUIRE(store_open(&st, db_path, &err) == 0);
    CHECK(sqlite3_exec(st->db, sql, NULL, NULL, NULL) == SQLITE_OK);
    store_close(st);
}

/* Sound in itself, no index without its text, and the next start is an ordinary
 * one: no complaint, no lock in the way, no half written file. */
static void check_disk(void)
{
    static const char *const ls[] = { "ls", NULL };
    static struct printed p;
    check_answer("PRAGMA integrity_check; PRAGMA foreign_key_check", "ok");
    check_words();
    check_answer(
        "SELECT count(*) FROM chats WHERE leaf_id IS NOT NULL AND leaf_id NOT IN "
        "(SELECT id FROM messages)",
        "0");
    CHECK(run_whole(ls, &p) == 0);
    char command[128];
    snprintf(command, sizeof command, "test ! -e %s-journal", db_path);
    CHECK(system(command) == 0);
}

/* ---- scenes ------------------------------------------------------------------ */

static char script[20000]; /* what the engine says */

static void engine_set(double prefill_s, double step_s)
{
    fake.answers[0] = script;
    fake.prefill_s = prefill_s;
    fake.step_s = step_s;
    fake.ctx_tokens = 30000;
    fake.write_s = 0.2;
    fake.kv_bytes = 100;
    fake.state_bytes = 5000;
}

static size_t bytes_lost;

/* `tern run`: while it reads the prompt or streams. */
static void kill_streaming(void)
{
    const char *const fresh[] = { "run", "a question of some words", NULL };
    const char *const again[] = { "run", "-c", "last", "another question", NULL };
    static struct printed p;
    bool follows = below(2) && ask_number("SELECT count(*) FROM chats");
    char *before = ask_db("SELECT coalesce(max(id), 0) FROM messages");
    int out;
    p = (struct printed){ .n = 0 };
    engine_set(below(2) ? 0.005 : 0, 0.002);
    pid_t pid = program(follows ? again : fresh, false, &out);
    listen_for(out, &p, 1000000ull * (20 + below(2000)));
    uint64_t at = clock_ns();
    end_by_kill(pid);
    listen_for(out, &p, SECOND / 1000);
    close(out);
    struct buf sql = BUF_INIT;
    buf_printf(&sql, "SELECT text FROM messages WHERE role = 'assistant' AND id > %s",
               before);
    char *kept = ask_db(sql.v);
    size_t n = strlen(kept), due = printed_before(&p, at);
    CHECK(!strncmp(kept, script, n));
    CHECK(n >= due);
    bytes_lost += n < due ? due - n : 0;
    if (p.n) { /* where an answer was seen, its question is there */
        buf_truncate(&sql, 0);
        buf_printf(&sql, "SELECT text FROM messages WHERE role = 'user' AND id > %s",
                   before);
        check_answer(sql.v, follows ? again[3] : fresh[1]);
    }
    buf_release(&sql);
    free(kept);
    free(before);
}

/* The full-screen program: somebody types, sends, scrolls, regenerates. */
static void kill_typing(void)
{
    /* The first few leave no doubt where the next key goes. */
    static const char *const keys[] = {
        "hello ",  "\x7f", "w",     "\n", "\x1b[200~pasted\x1b[201~",
        "\x1b[5~", "\x12", "\x1b[A"
    };
    const unsigned n_keys = below(2) ? 5 : 8;
    const char *const none[] = { NULL };
    static struct printed p;
    int out;
    bool sent = false;
    uint64_t sent_ns = 0;
    p = (struct printed){ .n = 0 };
    engine_set(0, 0.002);
    char *before = ask_db("SELECT coalesce(max(id), 0) FROM messages");
    pid_t pid = program(none, true, &out);
    listen_for(out, &p, 1000000ull * (100 + below(200)));
    for (unsigned i = below(40); i; i--) {
        const char *key = keys[below(n_keys)];
        CHECK(write(out, key, strlen(key)) > 0 || errno == EIO);
        listen_for(out, &p, 1000000ull * (1 + below(15)));
        if (!sent && i % 8 == 1) {
            CHECK(write(out, "sent\r", 5) == 5 || errno == EIO);
            sent = true;
            sent_ns = clock_ns();
        }
    }
    listen_for(out, &p, 1000000ull * below(1200));
    bool due = sent && n_keys == 5 && clock_ns() - sent_ns > SECOND;
    end_by_kill(pid);
    close(out);
    struct buf sql = BUF_INIT;
    buf_printf(&sql,
               "SELECT count(*) > 0 FROM messages WHERE role = 'user' AND "
               "text LIKE '%%sent' AND id > %s",
               before);
    if (due)
        check_answer(sql.v, "1");
    buf_release(&sql);
    free(before);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", home, name);
    FILE *f = fopen(path, "w");
    REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Wholly there or wholly gone. */
static void kill_import(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/import.json", home);
    const char *const words[] = { "import", path, NULL };
    int out;
    static struct printed p;
    long before = ask_number("SELECT count(*) FROM messages");
    struct buf json = BUF_INIT;
    buf_str(&json,
            "{\"format\":\"tern-conversation\",\"version\":1,\"title\":\"imported\","
            "\"messages\":[");
    for (int i = 1; i <= 200; i++)
        buf_printf(&json, "%s{\"id\":%d,\"parent\":%d,\"role\":\"user\",\"text\":\"%d\"}",
                   i > 1 ? "," : "", i, i - 1, i);
    buf_str(&json, "]}");
    write_file("import.json", json.v);
    buf_release(&json);
    pid_t pid = program(words, false, &out);
    listen_for(out, &p, 100000ull * below(300));
    end_by_kill(pid);
    close(out);
    long added = ask_number("SELECT count(*) FROM messages") - before;
    if (added != 0 && added != 200)
        printf("# %ld of 200 messages were imported\n", added);
    CHECK(added == 0 || added == 200);
}

static void kill_removing(void)
{
    char *id = ask_db("SELECT coalesce(min(id), 0) FROM chats");
    const char *const words[] = { "rm", id, NULL };
    struct buf sql = BUF_INIT;
    int out;
    static struct printed p;
    if (!atoi(id)) {
        free(id);
        kill_import();
        return;
    }
    buf_printf(&sql, "SELECT count(*) FROM messages WHERE chat_id = %s", id);
    char *before = ask_db(sql.v);
    pid_t pid = program(words, false, &out);
    listen_for(out, &p, 100000ull * below(250));
    end_by_kill(pid);
    close(out);
    char *after = ask_db(sql.v);
    CHECK(!strcmp(after, before) || !strcmp(after, "0"));
    buf_release(&sql);
    free(before);
    free(after);
    free(id);
}

/* A database of the first version, opened by this one. */
static void kill_migrating(void)
{
    const char *const words[] = { "ls", NULL };
    const char *end = strstr(schema_text(), "\n-- version 2");
    struct store *st;
    struct err err;
    int64_t chat;
    int out;
    static struct printed p;
    char command[200];
    REQUIRE(end);
    snprintf(command, sizeof command, "mv %s/.local %s/.kept", home, home);
    REQUIRE(system(command) == 0);
    char *old = mem_strndup(schema_text(), (size_t)(end - schema_text()));
    REQUIRE(store_open_schema(&st, db_path, old, &err) == 0);
    sqlite3 *db = st->db;
    REQUIRE(sqlite3_exec(db,
                         "INSERT INTO chats (title, model, created_ms, updated_ms, "
                         "written_seq) VALUES ('an old one', '', 1, 1, 1)",
                         NULL, NULL, NULL) == SQLITE_OK);
    chat = sqlite3_last_insert_rowid(db);
    CHECK(chat == 1);
    store_close(st);
    free(old);
    pid_t pid = program(words, false, &out);
    listen_for(out, &p, 100000ull * below(300));
    end_by_kill(pid);
    close(out);
    char *version = ask_db("PRAGMA user_version");
    CHECK(atoi(version) == 1 || atoi(version) == schema_latest(schema_text()));
    free(version);
    check_answer("SELECT title FROM chats", "an old one");
    check_disk();
    snprintf(command, sizeof command, "rm -rf %s/.local && mv %s/.kept %s/.local", home,
             home, home);
    REQUIRE(system(command) == 0);
}

/* ---- all of it ---------------------------------------------------------------- */

static void home_make(void)
{
    static const char *const variables[] = { "XDG_DATA_HOME", "XDG_CACHE_HOME",
                                             "XDG_STATE_HOME", "XDG_CONFIG_HOME",
                                             "NO_COLOR" };
    snprintf(home, sizeof home, "/tmp/tern-kill-XXXXXX");
    REQUIRE(mkdtemp(home));
    snprintf(db_path, sizeof db_path, "%s/.local/share/tern/tern.db", home);
    setenv("HOME", home, 1);
    setenv("TERM", "xterm", 1);
    setenv("TERN_MODEL", "fake.gguf", 1);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    for (size_t i = 0; i + 8 < sizeof script; i += 8)
        snprintf(script + i, 9, "%07zu ", i / 8);
}

/* After all that, a conversation as ever. */
static void check_chat(void)
{
    static const char *const words[] = { "run", "-q", "-c", "last", "the end", NULL };
    static struct printed p;
    engine_set(0, 0);
    fake.answers[0] = "It still works.";
    CHECK(run_whole(words, &p) == 0);
    CHECK_STR(p.text, "It still works.\n");
}

static void test_kills(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenes[] = {
        { "streaming", kill_streaming }, { "typing", kill_typing },
        { "import", kill_import },       { "streaming", kill_streaming },
        { "removing", kill_removing },   { "migrating", kill_migrating },
    };
    const char *kills = getenv("KILLS"), *from = getenv("KILL_SEED");
    unsigned n = kills ? (unsigned)strtoul(kills, NULL, 10) : 12;
    static const char *const first[] = { "run", "-q", "the first", NULL };
    static struct printed p;
    seed = 88172645463325252ull + (from ? strtoull(from, NULL, 10) : 0);
    home_make();
    engine_set(0, 0);
    fake.answers[0] = "ok";
    REQUIRE(run_whole(first, &p) == 0);
    for (unsigned i = 0; i < n; i++) {
        int failed = test_failures;
        scenes[i % (sizeof scenes / sizeof *scenes)].run();
        check_disk();
        if (test_failures > failed)
            printf("# kill %u, %s\n", i,
                   scenes[i % (sizeof scenes / sizeof *scenes)].name);
    }
    check_chat();
    printf("# %u kills, %zu bytes of answers lost\n", n, bytes_lost);
    COUNT("kills", n);
    COUNT("bytes", bytes_lost);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", home);
    REQUIRE(system(command) == 0);
}

TEST_MAIN(T(test_kills))
