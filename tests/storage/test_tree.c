/* test_tree.c - chats and the tree of messages: what was written comes back to
 * the byte, branches are found, and what does not exist is refused. */
#include "tests/storage/scratch.h"

static void test_branches(void)
{
    struct err err;
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "tree");
    /* sys - u1 - a1, a2 - u2 - a3
     *     - u3 (an edit of u1) - a4 ; and a second root */
    int64_t sys = add(st, chat, 0, ROLE_SYSTEM, "sys");
    int64_t u1 = add(st, chat, sys, ROLE_USER, "u1");
    int64_t a1 = add(st, chat, u1, ROLE_ASSISTANT, "a1");
    int64_t a2 = add(st, chat, u1, ROLE_ASSISTANT, "a2");
    int64_t u2 = add(st, chat, a2, ROLE_USER, "u2");
    int64_t a3 = add(st, chat, u2, ROLE_ASSISTANT, "a3");
    int64_t u3 = add(st, chat, sys, ROLE_USER, "u3");
    int64_t a4 = add(st, chat, u3, ROLE_ASSISTANT, "a4");
    int64_t root2 = add(st, chat, 0, ROLE_SYSTEM, "root2");
    int64_t other = new_chat(st, "other");
    add(st, other, 0, ROLE_SYSTEM, "its roots are no siblings of ours");

    struct message_list l;
    OK(store_path(st, a3, &l, &err));
    const char *want[] = { "sys", "u1", "a2", "u2", "a3" };
    const int64_t want_id[] = { sys, u1, a2, u2, a3 };
    const uint32_t siblings[] = { 2, 2, 2, 1, 1 }, index[] = { 0, 0, 1, 0, 0 };
    REQUIRE(l.len == 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(l.v[i].text, want[i]);
        CHECK(l.v[i].id == want_id[i] && l.v[i].chat_id == chat);
        CHECK(l.v[i].parent_id == (i ? want_id[i - 1] : 0));
        CHECK(l.v[i].siblings == siblings[i] && l.v[i].sibling_index == index[i]);
    }
    message_list_release(&l);
    OK(store_path(st, u3, &l, &err)); /* need not be a leaf */
    CHECK(l.len == 2 && l.v[1].siblings == 2 && l.v[1].sibling_index == 1);
    message_list_release(&l);
    OK(store_path(st, 0, &l, &err));
    CHECK(l.len == 0);

    int64_t *ids, leaf;
    size_t n;
    OK(store_siblings(st, a1, &ids, &n, &err));
    CHECK(n == 2 && ids[0] == a1 && ids[1] == a2);
    free(ids);
    OK(store_siblings(st, root2, &ids, &n, &err));
    CHECK(n == 2 && ids[0] == sys && ids[1] == root2);
    free(ids);
    OK(store_siblings(st, u2, &ids, &n, &err));
    CHECK(n == 1 && ids[0] == u2);
    free(ids);

    OK(store_newest_leaf(st, sys, &leaf, &err));
    CHECK(leaf == a4);
    OK(store_newest_leaf(st, u1, &leaf, &err));
    CHECK(leaf == a3);
    OK(store_newest_leaf(st, a1, &leaf, &err));
    CHECK(leaf == a1);
    check_integrity(st);
    store_close(st);
}

/* 3,000 turns deep, with 40 versions of one of them. */
static void test_deep(void)
{
    struct err err;
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "deep"), parent = 0, turn = 0, leaf;
    char text[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof text, "message %d", i);
        parent = add(st, chat, parent, i % 2 ? ROLE_ASSISTANT : ROLE_USER, text);
        turn = i == 1500 ? parent : turn;
    }
    int64_t last = parent;
    struct message_list l;
    OK(store_path(st, turn, &l, &err));
    REQUIRE(l.len == 1501);
    for (int i = 0; i < 40; i++)
        add(st, chat, l.v[1499].id, ROLE_USER, "another version");
    message_list_release(&l);
    OK(store_path(st, last, &l, &err));
    CHECK(l.len == 3000 && l.v[1500].siblings == 41 && l.v[1500].sibling_index == 0);
    CHECK_STR(l.v[2999].text, "message 2999");
    OK(store_newest_leaf(st, turn, &leaf, &err));
    CHECK(leaf == last);
    message_list_release(&l);
    store_close(st);
}

static void test_chats(void)
{
    struct err err;
    struct store *st = open_store(":memory:");
    struct chat_list list;
    struct chat c;
    int64_t id = -1;
    OK(store_chat_list(st, &list, &err));
    CHECK(list.len == 0 && !list.v);
    OK(store_chat_last(st, &id, &err));
    CHECK(id == 0);

    int64_t a = new_chat(st, "a"), b = new_chat(st, ""), d = new_chat(st, "d");
    int64_t m1 = add(st, a, 0, ROLE_USER, "one");
    int64_t m2 = add(st, a, m1, ROLE_ASSISTANT, "two");
    OK(store_chat_last(st, &id, &err));
    CHECK(id == a);
    OK(store_chat_list(st, &list, &err));
    REQUIRE(list.len == 3);
    CHECK(list.v[0].id == a && list.v[1].id == d && list.v[2].id == b);
    CHECK(list.v[0].n_messages == 2 && list.v[0].leaf_id == m2);
    CHECK(list.v[1].n_messages == 0 && list.v[1].leaf_id == 0);
    CHECK_STR(list.v[2].title, "");
    CHECK(list.v[0].n_bytes == 6 && list.v[1].n_bytes == 0);
    chat_list_release(&list);

    /* Pinned ones come first, in the same order among themselves. */
    OK(store_chat_set_pinned(st, b, true, &err));
    OK(store_chat_set_pinned(st, d, true, &err));
    OK(store_chat_set_pinned(st, d, true, &err));
    OK(store_chat_list(st, &list, &err));
    REQUIRE(list.len == 3);
    CHECK(list.v[0].id == d && list.v[1].id == b && list.v[2].id == a);
    CHECK(list.v[0].pinned && list.v[1].pinned && !list.v[2].pinned);
    chat_list_release(&list);
    OK(store_chat_last(st, &id, &err));
    CHECK(id == a);
    OK(store_chat_set_pinned(st, b, false, &err));
    OK(store_chat_set_pinned(st, d, false, &err));

    /* Renaming, another model and another branch are not writing to it. */
    OK(store_chat_rename(
        st, b, "it's \"b\" \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80\n%s", &err));
    OK(store_chat_set_model(st, b, "27b", "models/27b.gguf", &err));
    OK(store_chat_set_settings(st, b, "temperature = 0.5\n", &err));
    OK(store_chat_set_draft(st, b, "half a sen", &err));
    OK(store_chat_set_leaf(st, a, m1, &err));
    OK(store_chat_last(st, &id, &err));
    CHECK(id == a);
    OK(store_chat_get(st, b, &c, &err));
    CHECK_STR(c.title, "it's \"b\" \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80\n%s");
    CHECK_STR(c.model, "27b");
    CHECK_STR(c.model_path, "models/27b.gguf");
    CHECK_STR(c.settings, "temperature = 0.5\n");
    CHECK_STR(c.draft, "half a sen");
    CHECK(c.created_ms > 1700000000000 && c.updated_ms >= c.created_ms);
    chat_release(&c);
    OK(store_chat_get(st, a, &c, &err));
    CHECK(c.leaf_id == m1);
    chat_release(&c);
    OK(store_chat_set_leaf(st, a, 0, &err));

    /* An answer that grows is. */
    int64_t m3 = add(st, d, 0, ROLE_USER, "x");
    struct message m = make_message(a, m1, ROLE_ASSISTANT, "two and more");
    m.id = m2;
    OK(store_message_update(st, &m, &err));
    OK(store_chat_last(st, &id, &err));
    CHECK(id == a && m3 > m2);
    OK(store_chat_get(st, a, &c, &err));
    CHECK(c.n_messages == 2 && c.n_bytes == 3 + 12);
    chat_release(&c);
    check_integrity(st);
    store_close(st);
}

/* A title that was made gives way to a better one, never the user's. */
static void test_title_sources(void)
{
    struct err err;
    struct chat c;
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "first words");
    OK(store_chat_propose(st, chat, "a model's", &err));
    OK(store_chat_get(st, chat, &c, &err));
    CHECK_STR(c.title, "a model's");
    CHECK(c.title_source == TITLE_MODEL);
    chat_release(&c);
    OK(store_chat_propose(st, chat, "a model's again", &err));
    OK(store_chat_rename(st, chat, "mine", &err));
    OK(store_chat_propose(st, chat, "too late", &err));
    OK(store_chat_get(st, chat, &c, &err));
    CHECK_STR(c.title, "mine");
    CHECK(c.title_source == TITLE_USER);
    chat_release(&c);
    FAILS(store_chat_propose(st, 77, "x", &err), "77");
    check_integrity(st);
    store_close(st);
}

/* Many writes as one: all of them, or none. */
static void test_as_a_whole(void)
{
    struct err err;
    struct chat_list l;
    struct store *st = open_store(":memory:");
    OK(store_begin(st, &err));
    int64_t a = new_chat(st, "a");
    add(st, a, add(st, a, 0, ROLE_USER, "one"), ROLE_ASSISTANT, "two");
    OK(store_end(st, 0, &err));
    OK(store_begin(st, &err));
    int64_t b = new_chat(st, "b");
    add(st, b, 0, ROLE_USER, "three");
    struct message lost = make_message(77, 0, ROLE_USER, "to nobody");
    int rc = store_message_add(st, &lost, &err);
    CHECK(rc == -1 && strstr(err.text, "no such conversation"));
    FAILS(store_chat_rename(st, a, "not now", &err), "belongs together");
    CHECK(store_end(st, 0, &err) == -1);
    OK(store_chat_list(st, &l, &err));
    REQUIRE(l.len == 1);
    CHECK_STR(l.v[0].title, "a");
    CHECK(l.v[0].n_messages == 2);
    chat_list_release(&l);
    /* And by the caller's own decision. */
    OK(store_begin(st, &err));
    OK(store_chat_rename(st, a, "no", &err));
    CHECK(store_end(st, -1, &err) == -1);
    OK(store_chat_rename(st, a, "yes", &err)); /* it goes on as ever */
    OK(store_chat_list(st, &l, &err));
    CHECK_STR(l.v[0].title, "yes");
    chat_list_release(&l);
    check_integrity(st);
    store_close(st);
}

/* A deleted chat's number does not come back, or another window would write
 * into a conversation that it does not know. */
static void test_ids_not_reused(void)
{
    struct err err;
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "first"), m = add(st, chat, 0, ROLE_USER, "x");
    OK(store_chat_delete(st, chat, &err));
    int64_t next = new_chat(st, "second"), m2 = add(st, next, 0, ROLE_USER, "y");
    CHECK(next > chat && m2 > m);
    struct message late = make_message(chat, m, ROLE_ASSISTANT, "to the deleted chat");
    FAILS(store_message_add(st, &late, &err), "no such conversation");
    CHECK(late.id == 0);
    late.id = m;
    FAILS(store_message_update(st, &late, &err), "no longer there");
    store_close(st);
}

static void test_refused(void)
{
    struct err err;
    struct store *st = open_store(":memory:");
    int64_t a = new_chat(st, "a"), b = new_chat(st, "b"), leaf = 7, *ids;
    int64_t ma = add(st, a, 0, ROLE_USER, "in a");
    struct message_list l;
    struct chat c;
    size_t n;

    struct message m = make_message(b, ma, ROLE_ASSISTANT, "parent of another chat");
    FAILS(store_message_add(st, &m, &err), "no such conversation or message");
    m = make_message(a, ma + 1000, ROLE_ASSISTANT, "no such parent");
    CHECK(store_message_add(st, &m, &err) == -1);
    m = make_message(a + 1000, 0, ROLE_ASSISTANT, "no such chat");
    CHECK(store_message_add(st, &m, &err) == -1);
    m = make_message(a, 0, ROLE_COUNT, "no such role");
    FAILS(store_message_add(st, &m, &err), "role");
    m = make_message(a, 0, ROLE_USER, "no such state");
    m.state = STATE_COUNT;
    FAILS(store_message_add(st, &m, &err), "state");
    m.state = STATE_COMPLETE;
    m.text_bytes = (size_t)1 << 40; /* its bytes are not looked at */
    FAILS(store_message_add(st, &m, &err), "bytes");
    CHECK(m.id == 0);
    m = make_message(a, 0, ROLE_USER, "no such message");
    m.id = 99;
    FAILS(store_message_update(st, &m, &err), "99");

    FAILS(store_chat_get(st, 77, &c, &err), "77");
    FAILS(store_chat_rename(st, 77, "x", &err), "77");
    FAILS(store_chat_set_model(st, 77, "x", "", &err), "77");
    FAILS(store_chat_set_leaf(st, 77, 0, &err), "77");
    FAILS(store_chat_delete(st, 77, &err), "77");
    FAILS(store_chat_set_leaf(st, b, ma, &err), "no such"); /* leaf of another */
    FAILS(store_path(st, 77, &l, &err), "77");
    CHECK(l.len == 0 && !l.v);
    FAILS(store_siblings(st, 77, &ids, &n, &err), "77");
    CHECK(!ids && n == 0);
    FAILS(store_newest_leaf(st, 77, &leaf, &err), "77");
    CHECK(leaf == 0);

    OK(store_chat_get(st, a, &c, &err));
    CHECK(c.n_messages == 1 && c.leaf_id == ma);
    chat_release(&c);
    check_integrity(st);
    store_close(st);
}

static void check_same(const struct message *a, const struct message *b)
{
    CHECK(a->id == b->id && a->chat_id == b->chat_id && a->parent_id == b->parent_id);
    CHECK(a->role == b->role && a->state == b->state && a->created_ms == b->created_ms);
    CHECK(a->text_bytes == b->text_bytes && !memcmp(a->text, b->text, a->text_bytes + 1));
    CHECK(!a->thinking == !b->thinking && a->thinking_bytes == b->thinking_bytes);
    if (a->thinking && b->thinking)
        CHECK(!memcmp(a->thinking, b->thinking, a->thinking_bytes + 1));
    CHECK(a->n_ids == b->n_ids && !a->ids == !b->ids);
    if (a->ids && b->ids)
        CHECK(!memcmp(a->ids, b->ids, a->n_ids * sizeof *a->ids));
    CHECK_STR(a->ids_model ? a->ids_model : "NULL", b->ids_model ? b->ids_model : "NULL");
    CHECK_STR(a->model ? a->model : "NULL", b->model ? b->model : "NULL");
    CHECK(!memcmp(&a->stats, &b->stats, offsetof(struct message_stats, thinking_tokens)));
    CHECK(a->stats.thinking_tokens == b->stats.thinking_tokens);
    CHECK(a->stats.thinking_ms == b->stats.thinking_ms);
}

/* Adds m, reads it back, changes it to m2 and reads it back, on a file that is
 * closed and opened in between. */
static void round_trip(const char *path, struct message m, struct message m2)
{
    struct err err;
    struct message_list l;
    struct store *st = open_store(path);
    m.chat_id = m2.chat_id = new_chat(st, "round trip");
    OK(store_message_add(st, &m, &err));
    CHECK(m.id > 0 && m.created_ms > 0);
    check_integrity(st);
    store_close(st);
    st = open_store(path);
    OK(store_path(st, m.id, &l, &err));
    REQUIRE(l.len == 1);
    check_same(&l.v[0], &m);
    message_list_release(&l);
    m2.id = m.id;
    OK(store_message_update(st, &m2, &err));
    m2.created_ms = m.created_ms;
    m2.role = m.role;
    OK(store_path(st, m.id, &l, &err));
    REQUIRE(l.len == 1);
    check_same(&l.v[0], &m2);
    message_list_release(&l);
    check_integrity(st);
    store_close(st);
}

static void test_round_trips(void)
{
    struct scratch s;
    scratch_enter(&s);
    int32_t ids[] = { 0, 1, -1, INT32_MAX, INT32_MIN, 0x01020304, 248044, 10 };
    char nul[] = "a\0b\0", bad[] = "\xff\xc3(\x80 \xed\xa0\x80 end", empty[] = "";
    char emoji[] =
        "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7";
    char marks[] = "\x02not a match\x03 \x1b[31m\r\n\t'; DROP TABLE chats; --";
    char print[] = "sha-1:77%s";
    struct message plain = { .role = ROLE_USER, .text = empty };
    struct message full = {
        .role = ROLE_ASSISTANT,
        .state = STATE_LENGTH,
        .created_ms = 1234567890123,
        .text = nul,
        .text_bytes = 4,
        .thinking = bad,
        .thinking_bytes = sizeof bad - 1,
        .ids = ids,
        .n_ids = 8,
        .ids_model = print,
        .model = print,
        .stats = { 4294967295u, 1, 2, 3, 1.5, 1e300, 0.1, 4294967295u, 2.5 },
    };
    round_trip(s.db, plain, full);
    round_trip(s.db, full, plain);
    struct message partial = { .role = ROLE_ASSISTANT,
                               .state = STATE_PARTIAL,
                               .text = emoji,
                               .text_bytes = sizeof emoji - 1,
                               .thinking = empty,
                               .ids = ids,
                               .n_ids = 1 };
    struct message stopped = partial;
    stopped.state = STATE_STOPPED;
    stopped.text = marks;
    stopped.text_bytes = sizeof marks - 1;
    round_trip(s.db, partial, stopped);
    stopped.state = STATE_FAILED;
    round_trip(s.db, stopped, partial); /* and back: an answer begun again */
    round_trip(s.db, plain,
               (struct message){
                   .text = bad, .text_bytes = sizeof bad - 1, .role = ROLE_SYSTEM });
    scratch_leave(&s);
}

static void test_one_megabyte(void)
{
    struct scratch s;
    scratch_enter(&s);
    const size_t n = 1 << 20;
    char *text = mem_alloc(n + 1), *thinking = mem_alloc(n + 1);
    int32_t *ids = mem_array(n / 4, sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        text[i] = (char)(i % 9 == 8 ? ' ' : 'a' + i * i % 26);
        thinking[i] = (char)i;
    }
    for (size_t i = 0; i < n / 4; i++)
        ids[i] = (int32_t)(i * 2654435761u);
    text[n] = thinking[n] = 0;
    struct message m = { .role = ROLE_ASSISTANT,
                         .text = text,
                         .text_bytes = n,
                         .thinking = thinking,
                         .thinking_bytes = n,
                         .ids = ids,
                         .n_ids = n / 4 };
    round_trip(s.db, m, m);
    free(ids);
    free(thinking);
    free(text);
    scratch_leave(&s);
}

static void test_odd_numbers(void)
{
    struct err err;
    struct store *st = open_store(":memory:");
    struct message m = make_message(new_chat(st, ""), 0, ROLE_ASSISTANT, "x");
    struct message_list l;
    m.stats.decode_tps = NAN;
    m.stats.prefill_tps = -INFINITY;
    m.stats.ttft_ms = 3;
    OK(store_message_add(st, &m, &err));
    OK(store_path(st, m.id, &l, &err));
    CHECK(l.v[0].stats.decode_tps == 0 && l.v[0].stats.prefill_tps == 0 &&
          l.v[0].stats.ttft_ms == 3);
    message_list_release(&l);
    store_close(st);
}

/* Rows that a later version or a damaged disk left: unknown states load, bad
 * ids and roles are an error, not a crash. */
static void test_strange_rows(void)
{
    struct err err;
    struct store *st = open_store(":memory:");
    int64_t m = add(st, new_chat(st, ""), 0, ROLE_USER, "x");
    struct message_list l;
    REQUIRE(sqlite3_exec(st->db, "UPDATE messages SET state = 'paused'", 0, 0, 0) == 0);
    OK(store_path(st, m, &l, &err));
    CHECK(l.len == 1 && l.v[0].state == STATE_COMPLETE);
    message_list_release(&l);
    REQUIRE(sqlite3_exec(st->db, "UPDATE messages SET ids = x'010203'", 0, 0, 0) == 0);
    FAILS(store_path(st, m, &l, &err), "damaged");
    REQUIRE(sqlite3_exec(st->db, "UPDATE messages SET ids = NULL, role = 'tool'", 0, 0,
                         0) == 0);
    FAILS(store_path(st, m, &l, &err), "role");
    CHECK(l.len == 0 && !l.v);
    store_close(st);
}

static void test_settings(void)
{
    struct err err;
    char *v;
    struct scratch s;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    OK(store_setting_get(st, "theme", &v, &err));
    CHECK(!v);
    OK(store_setting_set(st, "theme", "dark", &err));
    OK(store_setting_set(st, "theme", "it's \xe6\x98\x8e", &err));
    OK(store_setting_set(st, "", "", &err));
    OK(store_setting_set(st, "gone", "x", &err));
    OK(store_setting_set(st, "gone", NULL, &err));
    OK(store_setting_set(st, "gone", NULL, &err));
    store_close(st);
    st = open_store(s.db);
    OK(store_setting_get(st, "theme", &v, &err));
    CHECK_STR(v ? v : "NULL", "it's \xe6\x98\x8e");
    free(v);
    OK(store_setting_get(st, "", &v, &err));
    CHECK_STR(v ? v : "NULL", "");
    free(v);
    OK(store_setting_get(st, "gone", &v, &err));
    CHECK(!v);
    store_close(st);
    scratch_leave(&s);
}

TEST_MAIN(T(test_branches), T(test_deep), T(test_chats), T(test_title_sources), T(test_as_a_whole),
          T(test_ids_not_reused), T(test_refused), T(test_round_trips),
          T(test_one_megabyte), T(test_odd_numbers), T(test_strange_rows),
          T(test_settings))
