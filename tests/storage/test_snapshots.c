/* test_snapshots.c - the index of kept timelines: rows, what goes when there is
 * no room, and that a database of the version before becomes this one. */
#include "tests/storage/scratch.h"

#include "base/clock.h"
#include "storage/schema.h"

#define GIB (UINT64_C(1) << 30)

static struct snapshot_file file(int64_t chat, const char *name, const char *key,
                                 uint64_t tokens, uint64_t bytes)
{
    size_t n = strlen(name);
    return (struct snapshot_file){ .chat_id = chat,
                                   .name = mem_strdup(name),
                                   .key = mem_strdup(key),
                                   .state = n > 6 && !strcmp(name + n - 6, ".state"),
                                   .tokens = tokens,
                                   .bytes = bytes };
}

static void put(struct store *st, struct snapshot_file f, int64_t age_ms)
{
    struct err err;
    f.used_ms = clock_wall_ms() - age_ms;
    OK(store_snapshot_put(st, &f, &err));
    free(f.name);
    free(f.key);
}

static bool has(const struct snapshot_list *l, const char *name)
{
    for (size_t i = 0; i < l->len; i++)
        if (!strcmp(l->v[i].name, name))
            return true;
    return false;
}

static void test_rows(void)
{
    struct scratch s;
    struct err err;
    struct snapshot_list l;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    int64_t a = new_chat(st, "a"), b = new_chat(st, "b");
    put(st, file(a, "1/k-90.state", "k", 90, 10), 5000);
    put(st, file(a, "1/k.kv", "k", 90, 900), 5000);
    put(st, file(a, "1/k-9.state", "k", 9, 10), 5000);
    put(st, file(b, "2/k.kv", "k", 7, 70), 0);
    put(st, file(a, "1/k.kv", "k", 95, 950), 4000); /* it has grown */
    OK(store_snapshot_list(st, a, &l, &err));
    CHECK(l.len == 3 && !l.v[0].state && l.v[0].bytes == 950 && l.v[0].tokens == 95);
    CHECK(l.v[1].state && l.v[1].tokens == 9 && l.v[2].tokens == 90);
    CHECK_STR(l.v[2].name, "1/k-90.state");
    int64_t before = l.v[0].used_ms;
    snapshot_list_release(&l);
    OK(store_snapshot_use(st, a, &err));
    OK(store_snapshot_remove(st, "1/k-9.state", &err));
    OK(store_snapshot_remove(st, "none", &err));
    store_close(st);

    st = open_store(s.db);
    OK(store_snapshot_list(st, 0, &l, &err));
    CHECK(l.len == 3 && l.v[0].used_ms > before && l.v[2].chat_id == b);
    snapshot_list_release(&l);
    OK(store_chat_delete(st, a, &err));
    OK(store_snapshot_list(st, 0, &l, &err));
    CHECK(l.len == 1 && has(&l, "2/k.kv"));
    snapshot_list_release(&l);
    struct snapshot_file f = file(99, "99/k.kv", "k", 1, 1);
    FAILS(store_snapshot_put(st, &f, &err), "no such conversation");
    free(f.name);
    free(f.key);
    store_close(st);
    scratch_leave(&s);
}

static struct snapshot_list room(struct store *st, int64_t chat, uint64_t need,
                                 uint64_t budget, bool *fits)
{
    struct err err;
    struct snapshot_list l;
    OK(store_snapshot_room(st, chat, need, budget, &l, fits, &err));
    return l;
}

static void test_room(void)
{
    struct scratch s;
    struct snapshot_list l;
    bool fits;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    int64_t old = new_chat(st, "old"), now = new_chat(st, "now");
    const int64_t day = 86400000;
    put(st, file(old, "1/k.kv", "k", 1000, 100), 3 * day);
    put(st, file(old, "1/k-500.state", "k", 500, 100), 3 * day);
    put(st, file(old, "1/k-1000.state", "k", 1000, 100), 3 * day);
    put(st, file(now, "2/k.kv", "k", 900, 100), 0);
    put(st, file(now, "2/k-300.state", "k", 300, 100), 0);
    put(st, file(now, "2/k-310.state", "k", 310, 100), 0);
    put(st, file(now, "2/k-900.state", "k", 900, 100), 0);
    l = room(st, now, 100, 800, &fits);
    CHECK(fits && l.len == 0);
    snapshot_list_release(&l);
    /* One file too many: a state of the conversation that is three days old. */
    l = room(st, now, 200, 800, &fits);
    CHECK(fits && l.len == 1 && l.v[0].chat_id == old && l.v[0].state);
    snapshot_list_release(&l);
    /* All of the old one, and of the new one the point that saves ten tokens. */
    l = room(st, now, 200, 500, &fits);
    CHECK(fits && l.len == 4 && has(&l, "1/k.kv") && has(&l, "1/k-500.state"));
    CHECK(has(&l, "1/k-1000.state") && has(&l, "2/k-310.state"));
    snapshot_list_release(&l);
    /* Rows and last state of the conversation at hand are no victims. */
    l = room(st, now, 300, 500, &fits);
    CHECK(fits && l.len == 5 && !has(&l, "2/k.kv") && !has(&l, "2/k-900.state"));
    snapshot_list_release(&l);
    l = room(st, now, 301, 500, &fits);
    CHECK(!fits);
    snapshot_list_release(&l);
    l = room(st, now, 501, 500, &fits);
    CHECK(!fits && l.len == 0);
    snapshot_list_release(&l);
    l = room(st, 0, UINT64_MAX, GIB, &fits);
    CHECK(!fits && l.len == 0);
    snapshot_list_release(&l);
    store_close(st);
    scratch_leave(&s);
}

/* Files of another model in the same chat are judged by themselves. */
static void test_room_by_key(void)
{
    struct scratch s;
    struct snapshot_list l;
    bool fits;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    int64_t chat = new_chat(st, "a"), other = new_chat(st, "b");
    put(st, file(chat, "1/j.kv", "j", 100, 100), 0);
    put(st, file(chat, "1/j-100.state", "j", 100, 100), 0);
    put(st, file(chat, "1/k.kv", "k", 5000, 100), 0);
    put(st, file(chat, "1/k-5000.state", "k", 5000, 100), 0);
    l = room(st, other, 200, 400, &fits);
    CHECK(fits && l.len == 2 && has(&l, "1/j.kv") && has(&l, "1/j-100.state"));
    snapshot_list_release(&l);
    store_close(st);
    scratch_leave(&s);
}

static void test_version_one(void)
{
    struct scratch s;
    struct err err;
    struct store *st = NULL;
    struct snapshot_list l;
    struct message_list path;
    struct chat chat;
    scratch_enter(&s);
    const char *second = strstr(schema_text(), "\n-- version 2");
    REQUIRE(second);
    char *first = mem_strndup(schema_text(), (size_t)(second - schema_text()));
    REQUIRE(store_open_schema(&st, s.db, first, &err) == 0);
    int64_t id = 5;
    REQUIRE(
        sqlite3_exec(st->db,
                     "INSERT INTO chats VALUES (5, 'before', 'mini', 5, 6, 1, NULL);"
                     "INSERT INTO messages VALUES (9, 5, NULL, 'user', 'complete', 7, "
                     "'written by version one', NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, "
                     "1); UPDATE chats SET leaf_id = 9",
                     0, 0, 0) == 0);
    store_close(st);
    st = open_store(s.db);
    CHECK(access("tern/tern.db.v1.bak", F_OK) == 0);
    OK(store_chat_get(st, id, &chat, &err));
    OK(store_path(st, chat.leaf_id, &path, &err));
    CHECK(path.len == 1 && !strcmp(path.v[0].text, "written by version one"));
    message_list_release(&path);
    chat_release(&chat);
    put(st, file(id, "1/k.kv", "k", 1, 1), 0);
    OK(store_snapshot_list(st, 0, &l, &err));
    CHECK(l.len == 1);
    snapshot_list_release(&l);
    check_integrity(st);
    store_close(st);
    free(first);
    scratch_leave(&s);
}

TEST_MAIN(T(test_rows), T(test_room), T(test_room_by_key), T(test_version_one))
