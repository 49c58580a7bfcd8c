/* test_delete.c - a deleted conversation leaves no trace in any file of the
 * data directory, checked on the raw bytes. */
#include "tests/storage/scratch.h"

#include "base/fault.h"
#include "storage/schema.h"

#include <dirent.h>
#include <signal.h>

enum { TIDY_MS = 20000 };

/* Occurrences of a word in the bytes of all files of the data directory; case
 * is folded, as the search index keeps words in lower case. */
static int traces(const char *word)
{
    int found = 0;
    DIR *d = opendir("tern");
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[300];
        size_t n, len = strlen(word);
        snprintf(path, sizeof path, "tern/%s", e->d_name);
        struct stat st;
        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        char *bytes = read_file(path, &n);
        for (size_t i = 0; i + len <= n; i++)
            found += !strncasecmp(bytes + i, word, len);
        free(bytes);
    }
    closedir(d);
    return found;
}

/* Words that occur nowhere else; FTS5 keeps them whole or by their endings
 * after what they share with a neighbour. */
static const char *const secrets[] = { "zyxomma",    "quetzwort",   "jabberglyph",
                                       "vexillum",   "zyxommatite", "thinkingsecret",
                                       "modelsecret" };

static int all_traces(void)
{
    int n = 0;
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        n += traces(secrets[i]) + (i < 4 ? traces(secrets[i] + 3) : 0);
    return n;
}

/* A chat as it grows in use: renamed, streamed, edited, regenerated; its texts
 * from a few bytes to many pages. */
static int64_t secret_chat(struct store *st)
{
    struct err err;
    struct buf b = BUF_INIT;
    char thinking[] = "thinkingsecret zyxomma";
    int64_t chat = new_chat(st, "about the vexillum");
    OK(store_chat_rename(st, chat, "Quetzwort instead", &err));
    OK(store_chat_set_model(st, chat, "modelsecret", "", &err));
    int64_t u = add(st, chat, 0, ROLE_USER, "what is a zyxomma?");
    struct message m = make_message(chat, u, ROLE_ASSISTANT, "");
    m.state = STATE_PARTIAL;
    OK(store_message_add(st, &m, &err));
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 20; k++)
            buf_printf(&b, "zyxommatite quetzwort %d jabberglyph\n", i * 20 + k);
        m.text = b.v;
        m.text_bytes = b.len;
        m.thinking = thinking;
        m.thinking_bytes = sizeof thinking - 1;
        m.state = i == 39 ? STATE_COMPLETE : STATE_PARTIAL;
        OK(store_message_update(st, &m, &err));
    }
    m.text_bytes = 4000; /* a shorter one frees pages */
    OK(store_message_update(st, &m, &err));
    add(st, chat, u, ROLE_ASSISTANT, "jabberglyph again");
    add(st, chat, 0, ROLE_USER, "what is a vexillum?");
    buf_release(&b);
    return chat;
}

/* Other chats whose words are neighbours of the secret ones in the index. */
static void public_chat(struct store *st, int n)
{
    char text[200];
    int64_t chat = new_chat(st, "public"), parent = 0;
    for (int i = 0; i < 30; i++) {
        snprintf(text, sizeof text, "zyxo quet jabber vex public%d words%d%d", n, n, i);
        parent = add(st, chat, parent, ROLE_USER, text);
    }
}

static void test_no_trace(void)
{
    struct scratch s;
    struct err err;
    struct hit_list hits;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    public_chat(st, 0);
    int64_t chat = secret_chat(st);
    public_chat(st, 1);
    int64_t second = secret_chat(st);
    CHECK(all_traces() > 100);
    OK(store_chat_delete(st, second, &err));
    CHECK(traces("zyxommatite") > 0); /* those of the other one */
    OK(store_chat_delete(st, chat, &err));
    OK(store_tidy_all(st, TIDY_MS, &err));
    CHECK(all_traces() == 0); /* while the program still runs */
    check_integrity(st);
    OK(store_search(st, "zyxomma", 10, &hits, &err));
    CHECK(hits.len == 0);
    hit_list_release(&hits);
    OK(store_search(st, "public1", 100, &hits, &err));
    CHECK(hits.len == 30);
    hit_list_release(&hits);
    store_close(st);
    CHECK(all_traces() == 0 && traces("words0") > 0);
    scratch_leave(&s);
}

/* A file that was written, closed, opened, with a second program present. */
static void test_two_programs(void)
{
    struct scratch s;
    struct err err;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    int64_t chat = secret_chat(st);
    store_close(st);
    st = open_store(s.db);
    struct store *other = open_store(s.db);
    struct chat c;
    OK(store_chat_get(other, chat, &c, &err));
    chat_release(&c);
    OK(store_chat_delete(st, chat, &err));
    OK(store_tidy_all(st, TIDY_MS, &err));
    CHECK(all_traces() == 0);
    FAILS(store_chat_get(other, chat, &c, &err), "no conversation");
    public_chat(other, 2);
    store_close(st);
    store_close(other);
    CHECK(all_traces() == 0);
    scratch_leave(&s);
}

/* Another program that reads just then keeps the log from being emptied; the
 * delete still succeeds, and nothing is left once both have closed. */
static void test_reader_in_the_way(void)
{
    struct scratch s;
    struct err err;
    scratch_enter(&s);
    struct store *st = open_store(s.db), *other = open_store(s.db);
    int64_t chat = secret_chat(st);
    REQUIRE(sqlite3_exec(other->db, "BEGIN; SELECT count(*) FROM messages", 0, 0, 0) ==
            0);
    OK(store_chat_delete(st, chat, &err));
    bool more = true, blocked = false;
    for (int i = 0; i < 100 && more && !blocked; i++)
        OK(store_tidy(st, &more, &blocked, &err));
    CHECK(more && blocked && all_traces() > 0);
    REQUIRE(sqlite3_exec(other->db, "COMMIT", 0, 0, 0) == 0);
    store_close(st);
    store_close(other);
    CHECK(all_traces() == 0);
    scratch_leave(&s);
}

/* The copies that a migration made are the past of all chats. */
static void test_backups_go(void)
{
    struct scratch s;
    struct err err;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    int64_t chat = secret_chat(st);
    store_close(st);
    struct buf schema = BUF_INIT;
    buf_printf(&schema, "%s\n-- version 4\nCREATE TABLE more (a);\n", schema_text());
    REQUIRE(store_open_schema(&st, s.db, schema.v, &err) == 0);
    CHECK(access("tern/tern.db.v3.bak", F_OK) == 0);
    OK(store_chat_delete(st, chat, &err));
    OK(store_tidy_all(st, TIDY_MS, &err));
    CHECK(access("tern/tern.db.v3.bak", F_OK) < 0);
    CHECK(all_traces() == 0);
    store_close(st);
    buf_release(&schema);
    scratch_leave(&s);
}

/* A large index is not rewritten at one go: other things are done between the
 * steps, and a program that dies in the middle leaves the rest to the next one. */
static void test_in_steps(void)
{
    struct scratch s;
    struct err err;
    int status, steps = 0;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    struct buf text = BUF_INIT;
    int64_t chat = secret_chat(st), big = new_chat(st, "big"), parent = 0;
    for (int i = 0; i < 40; i++) {
        buf_truncate(&text, 0);
        for (int k = 0; k < 2000; k++)
            buf_printf(&text, "word%d of%d ", i * 2000 + k, k % 97);
        parent = add(st, big, parent, ROLE_USER, text.v);
    }
    buf_release(&text);
    store_close(st);
    pid_t pid = fork();
    if (pid == 0) {
        bool more, blocked;
        st = open_store(s.db);
        OK(store_chat_delete(st, chat, &err));
        OK(store_tidy(st, &more, &blocked, &err));
        raise(more ? SIGKILL : SIGTERM);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGKILL);
    st = open_store(s.db);
    for (bool more = true, blocked; more && steps < 100; steps++) {
        OK(store_tidy(st, &more, &blocked, &err));
        CHECK(!blocked);
        parent = add(st, big, parent, ROLE_USER, "between two steps");
    }
    printf("# %d steps\n", steps);
    CHECK(steps > 3 && steps < 100);
    bool more = true, blocked = true;
    OK(store_tidy(st, &more, &blocked, &err));
    CHECK(!more && !blocked);
    CHECK(all_traces() == 0);
    check_integrity(st);
    store_close(st);
    CHECK(all_traces() == 0);
    scratch_leave(&s);
}

/* How many levels the list of the index's parts has. */
static int levels(struct store *st)
{
    sqlite3_stmt *stmt;
    int n = 0;
    REQUIRE(sqlite3_prepare_v2(st->db,
                               "SELECT block FROM message_words_data WHERE id = 10", -1,
                               &stmt, NULL) == SQLITE_OK);
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        const unsigned char *b = sqlite3_column_blob(stmt, 0);
        n = b[4] < 0x80 ? b[4] : (b[4] & 0x7f) << 7 | b[5];
    }
    sqlite3_finalize(stmt);
    return n;
}

/* SQLite 3.40 cannot read an index whose parts were put together 1,300 times. */
static void test_many_deletions(void)
{
    static const char put_together[] =
        "INSERT INTO messages (chat_id, role, state, created_ms, text, prompt_tokens, "
        "reused_tokens, evaluated_tokens, generated_tokens, ttft_ms, prefill_tps, "
        "decode_tps, searchable) SELECT id, 'user', 'complete', 1, 'steady words', 0, 0, "
        "0, 0, 0, 0, 0, 1 FROM chats LIMIT 1;"
        "INSERT INTO message_words (message_words, rank) VALUES ('merge', -64)";
    struct scratch s;
    struct err err;
    struct hit_list hits;
    bool more, blocked;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    new_chat(st, "kept");
    REQUIRE(sqlite3_exec(st->db, "PRAGMA synchronous = OFF", 0, 0, 0) == 0);
    size_t added = 0;
    for (; levels(st) < 1210 && added < 2000; added++)
        REQUIRE(sqlite3_exec(st->db, put_together, 0, 0, 0) == 0);
    int64_t chat = secret_chat(st);
    OK(store_chat_delete(st, chat, &err));
    OK(store_tidy(st, &more, &blocked, &err));
    CHECK(more && blocked); /* not now, and nothing breaks */
    store_close(st);
    st = open_store(s.db);
    OK(store_tidy_all(st, TIDY_MS, &err));
    CHECK(all_traces() == 0);
    OK(store_search(st, "words", 2000, &hits, &err));
    CHECK(hits.len == added && levels(st) < 10);
    hit_list_release(&hits);
    check_integrity(st);
    store_close(st);
    scratch_leave(&s);
}

/* Whatever fails on the way is done later. */
static void test_tidying_fails(void)
{
    struct scratch s;
    struct err err;
    bool fired = true;
    unsigned n = 1;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    public_chat(st, 0);
    for (; fired && n < 200; n++) {
        bool more = true, blocked;
        int rc = 0, tries = 0;
        int64_t chat = new_chat(st, "quetzwort");
        add(st, chat, 0, ROLE_USER, "a zyxomma and a jabberglyph");
        OK(store_chat_delete(st, chat, &err));
        fault_arm(FAULT_SQL, n);
        while (rc == 0 && more && tries++ < 100)
            rc = store_tidy(st, &more, &blocked, &err);
        fired = fault_disarm(FAULT_SQL);
        CHECK(rc == 0 || (fired && strstr(err.text, "full")));
        CHECK(rc < 0 || all_traces() == 0);
    }
    CHECK(n > 5 && !fired);
    OK(store_tidy_all(st, TIDY_MS, &err));
    CHECK(all_traces() == 0);
    check_integrity(st);
    store_close(st);
    scratch_leave(&s);
}

TEST_MAIN(T(test_no_trace), T(test_tidying_fails), T(test_in_steps),
          T(test_many_deletions), T(test_two_programs), T(test_reader_in_the_way),
          T(test_backups_go))
