/* test_crash.c - the program dies at any moment while it writes and streams;
 * several programs write at once. */
#include "tests/storage/scratch.h"

#include "base/clock.h"
#include "storage/schema.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

static void nap_us(long us)
{
    nanosleep(
        &(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 },
        NULL);
}

/* What the child says it has done, each after the call returned. */
struct note {
    int64_t user_id;   /* a user message that is committed */
    int64_t answer_id; /* the answer of this note */
    int32_t step;      /* last update of it, -1: only added */
    int32_t complete;
};

/* The text of an answer after its nth update. */
static void answer_text(struct buf *b, int64_t user_id, int step)
{
    buf_truncate(b, 0);
    for (int i = 0; i <= step; i++)
        buf_printf(b, "[%lld.%d] part of an answer that grows ", (long long)user_id, i);
}

static void tell(int fd, struct note n)
{
    if (write(fd, &n, sizeof n) != sizeof n)
        _exit(3);
}

static _Noreturn void chat_until_killed(const char *path, int64_t chat, int64_t parent,
                                        int fd)
{
    struct err err;
    struct buf text = BUF_INIT;
    struct store *st = open_store(path);
    for (;;) {
        struct message u =
            make_message(chat, parent, ROLE_USER, "a question of the user");
        REQUIRE(store_message_add(st, &u, &err) == 0);
        tell(fd, (struct note){ .user_id = u.id, .step = -1 });
        struct message a = make_message(chat, u.id, ROLE_ASSISTANT, "");
        a.state = STATE_PARTIAL;
        REQUIRE(store_message_add(st, &a, &err) == 0);
        for (int i = 0; i < 30; i++) {
            tell(fd, (struct note){ u.id, a.id, i - 1, 0 });
            answer_text(&text, u.id, i);
            a.text = text.v;
            a.text_bytes = text.len;
            a.state = i == 29 ? STATE_COMPLETE : STATE_PARTIAL;
            REQUIRE(store_message_update(st, &a, &err) == 0);
            nap_us(1000); /* or nearly all of the time is spent syncing */
        }
        tell(fd, (struct note){ u.id, a.id, 29, 1 });
        parent = a.id;
    }
}

/* Reads all notes that the dead child had written; checks each against the
 * store. Returns the last message, on which the next child goes on. */
static int64_t check_notes(struct store *st, int fd, int *n_users, int *n_partial)
{
    struct err err;
    struct note n, last = { 0 };
    struct message_list l = { 0 };
    struct buf want = BUF_INIT, next = BUF_INIT;
    while (read(fd, &n, sizeof n) == sizeof n) {
        if (n.user_id != last.user_id)
            ++*n_users;
        if (last.complete && n.user_id != last.user_id) { /* a finished turn */
            OK(store_path(st, last.answer_id, &l, &err));
            answer_text(&want, last.user_id, last.step);
            CHECK(l.v[l.len - 1].state == STATE_COMPLETE);
            CHECK_STR(l.v[l.len - 1].text, want.v);
            message_list_release(&l);
        }
        last = n;
    }
    int64_t leaf = last.answer_id ? last.answer_id : last.user_id;
    if (leaf) {
        OK(store_path(st, last.user_id, &l, &err));
        CHECK(l.len && l.v[l.len - 1].role == ROLE_USER);
        CHECK_STR(l.v[l.len - 1].text, "a question of the user");
        message_list_release(&l);
    }
    if (last.answer_id) {
        OK(store_path(st, last.answer_id, &l, &err));
        const struct message *a = &l.v[l.len - 1];
        answer_text(&want, last.user_id, last.step);
        answer_text(&next, last.user_id, last.step + 1);
        /* All that was told, or the update that was under way as well. */
        CHECK(!strcmp(a->text, buf_cstr(&want)) || !strcmp(a->text, buf_cstr(&next)));
        CHECK(a->state == (a->text_bytes == next.len && last.step == 28 ? STATE_COMPLETE
                           : last.complete                              ? STATE_COMPLETE
                                                                        : STATE_PARTIAL));
        *n_partial += a->state == STATE_PARTIAL;
        message_list_release(&l);
    }
    buf_release(&want);
    buf_release(&next);
    return leaf;
}

static void test_kill(void)
{
    enum { KILLS = 40 };
    struct scratch s;
    struct err err;
    int users = 0, partial = 0;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    int64_t chat = new_chat(st, "killed"), leaf = 0;
    store_close(st);
    srand(11);
    for (int i = 0; i < KILLS; i++) {
        int status, fd = open("notes", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
        REQUIRE(fd >= 0);
        pid_t pid = fork();
        if (pid == 0)
            chat_until_killed(s.db, chat, leaf, fd);
        nap_us(3000 + rand() % 120000);
        kill(pid, SIGKILL);
        REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        st = open_store(s.db);
        check_integrity(st);
        REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
        int64_t last = check_notes(st, fd, &users, &partial);
        close(fd);
        struct chat c;
        OK(store_chat_get(st, chat, &c, &err));
        CHECK(c.leaf_id >= last);
        leaf = c.leaf_id;
        chat_release(&c);
        store_close(st);
    }
    printf("# %d kills, %d user messages, %d answers left partial\n", KILLS, users,
           partial);
    CHECK(users >= KILLS / 2 && partial >= KILLS / 4);
    scratch_leave(&s);
}

/* ---- several programs -------------------------------------------------- */

/* Starts n children that run f, and waits; all must end well. */
static void run_together(int n, void (*f)(const char *path, int i), const char *path)
{
    pid_t pid[16];
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        pid[i] = fork();
        REQUIRE(pid[i] >= 0);
        if (pid[i] == 0) {
            test_failures = 0;
            f(path, i);
            exit(test_failures ? 1 : 0);
        }
    }
    for (int i = 0; i < n; i++) {
        int status;
        REQUIRE(waitpid(pid[i], &status, 0) == pid[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Two seconds of chatting without a pause, in a conversation of its own and
 * in chat 1, which the other program writes to as well. */
static void write_for_a_while(const char *path, int i)
{
    struct err err;
    struct store *st = open_store(path);
    int64_t own = new_chat(st, "own"), shared = 0, parent = 0;
    uint64_t end = clock_ns() + 2000000000u, slowest = 0, before;
    int n = 0;
    char text[64];
    while ((before = clock_ns()) < end) {
        snprintf(text, sizeof text, "text %d of program %d", n++, i);
        parent = add(st, own, parent, ROLE_USER, text);
        shared = add(st, 1, shared, ROLE_USER, text);
        struct message m = make_message(own, 0, ROLE_ASSISTANT, text);
        m.id = parent;
        m.state = n % 4 ? STATE_PARTIAL : STATE_COMPLETE;
        OK(store_message_update(st, &m, &err));
        OK(store_setting_set(st, "last", text, &err));
        if (n % 50 == 0)
            OK(store_chat_delete(st, new_chat(st, "short"), &err));
        uint64_t took = clock_ns() - before;
        slowest = took > slowest ? took : slowest;
    }
    struct message_list l;
    OK(store_path(st, parent, &l, &err));
    CHECK(l.len == (size_t)n && n > 20);
    message_list_release(&l);
    OK(store_path(st, shared, &l, &err));
    CHECK(l.len == (size_t)n); /* two branches, nothing interleaved */
    for (size_t k = 0; k < l.len; k++) {
        snprintf(text, sizeof text, "text %zu of program %d", k, i);
        CHECK_STR(l.v[k].text, text);
    }
    message_list_release(&l);
    printf("# program %d: %d turns in 2 s, the slowest %.0f ms\n", i, n,
           (double)slowest / 1e6);
    store_close(st);
}

static void test_two_writers(void)
{
    struct scratch s;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    new_chat(st, "shared");
    store_close(st);
    run_together(2, write_for_a_while, s.db);
    st = open_store(s.db);
    check_integrity(st);
    store_close(st);
    scratch_leave(&s);
}

static void open_and_write(const char *path, int i)
{
    struct store *st = open_store(path);
    add(st, new_chat(st, "first chat"), 0, ROLE_USER, "hello");
    check_integrity(st);
    if (i % 2)
        nap_us(2000 * i);
    store_close(st);
}

/* Many programs that find no database, at once, several times over. */
static void test_created_together(void)
{
    struct scratch s;
    struct err err;
    struct chat_list l;
    scratch_enter(&s);
    for (int round = 0; round < 4; round++) {
        REQUIRE(system("rm -rf tern") == 0);
        run_together(8, open_and_write, s.db);
        struct store *st = open_store(s.db);
        OK(store_chat_list(st, &l, &err));
        CHECK(l.len == 8);
        chat_list_release(&l);
        store_close(st);
    }
    scratch_leave(&s);
}

static void open_newer(const char *path, int i)
{
    struct err err;
    struct store *st = NULL;
    struct buf schema = BUF_INIT;
    buf_printf(&schema,
               "%s\n-- version 4\nUPDATE chats SET title = title || '+';\n"
               "CREATE TABLE once (a);\n",
               schema_text());
    if (store_open_schema(&st, path, schema.v, &err) < 0)
        printf("# program %d: %s\n", i, err.text);
    REQUIRE(st);
    new_chat(st, "later");
    store_close(st);
    buf_release(&schema);
}

/* Several programs of a later version find an old database: one migrates. */
static void test_migrated_together(void)
{
    struct scratch s;
    scratch_enter(&s);
    for (int round = 0; round < 4; round++) {
        REQUIRE(system("rm -rf tern") == 0);
        struct store *st = open_store(s.db);
        new_chat(st, "old");
        store_close(st);
        run_together(6, open_newer, s.db);
        char *now = dump(s.db);
        CHECK(strncmp(now, "4|", 2) == 0 && strstr(now, "|old+|") && !strstr(now, "++"));
        free(now);
    }
    scratch_leave(&s);
}

TEST_MAIN(T(test_kill), T(test_two_writers), T(test_created_together),
          T(test_migrated_together))
