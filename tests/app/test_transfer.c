/* test_transfer.c - a conversation with branches leaves as JSON and comes back
 * the same; files that are not such JSON change nothing. */
#include "app/transfer.h"
#include "app/tree.h"
#include "base/mem.h"

#include "tests/test.h"

static struct store *store_memory(void)
{
    struct store *st;
    struct err err;
    REQUIRE(store_open(&st, ":memory:", &err) == 0);
    return st;
}

static int64_t add(struct store *st, int64_t chat, int64_t parent, enum role role,
                   const char *text)
{
    struct err err;
    int32_t ids[] = { 1, 2, 151668 };
    char tokenizer[] = "abc123", thinking[] = "hm,\n\"why\"?";
    struct message m = {
        .chat_id = chat,
        .parent_id = parent,
        .role = role,
        .state = STATE_STOPPED,
        .created_ms = 1700000000000 + parent,
        .text = mem_strdup(text),
        .text_bytes = strlen(text),
        .stats = { .prompt_tokens = 7,
                   .generated_tokens = 3,
                   .ttft_ms = 0.1,
                   .decode_tps = 1.0 / 3 },
    };
    if (role == ROLE_ASSISTANT) {
        m.thinking = thinking;
        m.thinking_bytes = strlen(thinking);
        m.ids = ids;
        m.n_ids = 3;
        m.ids_model = tokenizer;
    }
    REQUIRE(store_message_add(st, &m, &err) == 0);
    free(m.text);
    return m.id;
}

/*   sys - q1 - a1 - q2 - a2       another root: lone
 *       |    \ a1b
 *       \ q1b - x1 - (y1, y2)      */
static int64_t build(struct store *st)
{
    int64_t chat, x;
    struct err err;
    REQUIRE(store_chat_new(st, "A \"title\" \u6f22\x1b", "Model", &chat, &err) == 0);
    int64_t sys = add(st, chat, 0, ROLE_SYSTEM, "Be\nbrief.");
    int64_t q1 = add(st, chat, sys, ROLE_USER, "q1 \x1b]52;c;eA==\x07 \U0001f600");
    int64_t a1 = add(st, chat, q1, ROLE_ASSISTANT, "a1");
    int64_t q2 = add(st, chat, a1, ROLE_USER, "q2");
    int64_t a2 = add(st, chat, q2, ROLE_ASSISTANT, "");
    int64_t q1b = add(st, chat, sys, ROLE_USER, "q1b");
    x = add(st, chat, q1b, ROLE_ASSISTANT, "x1");
    add(st, chat, x, ROLE_USER, "y1");
    add(st, chat, x, ROLE_USER, "y2");
    add(st, chat, q1, ROLE_ASSISTANT, "a1b");
    add(st, chat, 0, ROLE_USER, "lone");
    REQUIRE(store_chat_set_leaf(st, chat, a2, &err) == 0);
    return chat;
}

static void test_tree_finds_all(void)
{
    struct store *st = store_memory();
    struct message_list all;
    struct chat chat;
    struct err err;
    int64_t id = build(st);
    REQUIRE(store_chat_get(st, id, &chat, &err) == 0);
    REQUIRE(tree_load(st, &chat, &all, &err) == 0);
    CHECK(all.len == 11 && chat.n_messages == 11);
    for (size_t i = 1; i < all.len; i++)
        CHECK(all.v[i].id > all.v[i - 1].id && all.v[i].parent_id < all.v[i].id);
    message_list_release(&all);
    chat_release(&chat);
    store_close(st);
}

static char *export_json(struct store *st, int64_t id)
{
    struct buf b = BUF_INIT;
    struct err err;
    REQUIRE(transfer_json(st, id, true, &b, &err) == 0);
    return buf_detach(&b);
}

static void test_round_trip(void)
{
    struct store *st = store_memory();
    struct err err;
    int64_t id = build(st), copy;
    char *json = export_json(st, id);
    /* The same text whether it lands on the same numbers or on others. */
    struct store *other = store_memory();
    REQUIRE(transfer_import(other, json, strlen(json), &copy, &err) == 0);
    char *again = export_json(other, copy);
    CHECK_STR(again, json);
    REQUIRE(transfer_import(st, json, strlen(json), &copy, &err) == 0);
    CHECK(copy != id);
    struct message_list a, b;
    struct chat ca, cb;
    REQUIRE(store_chat_get(st, id, &ca, &err) == 0);
    REQUIRE(store_chat_get(st, copy, &cb, &err) == 0);
    CHECK_STR(ca.title, cb.title);
    REQUIRE(store_path(st, ca.leaf_id, &a, &err) == 0);
    REQUIRE(store_path(st, cb.leaf_id, &b, &err) == 0);
    REQUIRE(a.len == 5 && b.len == 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(a.v[i].text, b.v[i].text);
        CHECK(a.v[i].role == b.v[i].role && a.v[i].state == b.v[i].state);
        CHECK(a.v[i].created_ms == b.v[i].created_ms && a.v[i].n_ids == b.v[i].n_ids);
        CHECK(a.v[i].siblings == b.v[i].siblings);
        CHECK(a.v[i].stats.decode_tps == b.v[i].stats.decode_tps ||
              a.v[i].role != ROLE_ASSISTANT);
    }
    CHECK_STR(b.v[4].thinking, "hm,\n\"why\"?");
    CHECK(b.v[4].ids[2] == 151668);
    message_list_release(&a);
    message_list_release(&b);
    chat_release(&ca);
    chat_release(&cb);
    free(json);
    free(again);
    store_close(other);
    store_close(st);
}

static void test_without_thinking(void)
{
    struct store *st = store_memory();
    struct buf b = BUF_INIT;
    struct err err;
    int64_t id = build(st);
    REQUIRE(transfer_json(st, id, false, &b, &err) == 0);
    CHECK(!strstr(b.v, "hm,") && !strstr(b.v, "151668") && strstr(b.v, "a1b"));
    buf_truncate(&b, 0);
    REQUIRE(transfer_markdown(st, id, false, &b, &err) == 0);
    CHECK(!strstr(b.v, "hm,"));
    buf_truncate(&b, 0);
    REQUIRE(transfer_markdown(st, id, true, &b, &err) == 0);
    CHECK(strstr(b.v, "> hm,\n> \"why\"?\n"));
    CHECK(!strncmp(b.v, "# A \"title\"", 11));
    CHECK(strstr(b.v, "## System\n\nBe\nbrief.\n\n*(stopped)*\n\n## User\n\nq1 "));
    CHECK(strstr(b.v, "*(stopped)*"));
    CHECK(!strstr(b.v, "q1b"));
    CHECK(transfer_markdown(st, 99, true, &b, &err) < 0 && strstr(err.text, "99"));
    CHECK(transfer_json(st, 99, true, &b, &err) < 0);
    buf_release(&b);
    store_close(st);
}

static void refuse(struct store *st, const char *json, const char *says)
{
    struct err err = { "" };
    struct chat_list chats;
    int64_t id;
    CHECK(transfer_import(st, json, strlen(json), &id, &err) < 0 && id == 0);
    if (!strstr(err.text, says))
        printf("# %s\n#   says %s\n", json, err.text);
    CHECK(strstr(err.text, says));
    REQUIRE(store_chat_list(st, &chats, &err) == 0);
    CHECK(chats.len == 0);
    chat_list_release(&chats);
}

#define HEAD "{\"format\":\"tern-conversation\",\"version\":1,"

static void test_refusals(void)
{
    struct store *st = store_memory();
    refuse(st, "", "byte 0");
    refuse(st, "{", "byte");
    refuse(st, "[]", "not a conversation");
    refuse(st, "{\"format\":\"tern-conversation\",\"version\":2,\"messages\":[]}",
           "version 2");
    refuse(st, HEAD "\"messages\":{}}", "no list");
    refuse(st, HEAD "\"messages\":[1]}", "message 1");
    refuse(st, HEAD "\"messages\":[{\"id\":1,\"role\":\"user\"}]}", "no proper text");
    refuse(st, HEAD "\"messages\":[{\"id\":1,\"role\":\"robot\",\"text\":\"\"}]}",
           "role");
    refuse(st, HEAD "\"messages\":[{\"id\":0,\"role\":\"user\",\"text\":\"\"}]}", "id");
    refuse(st, HEAD "\"messages\":[{\"id\":1e3,\"role\":\"user\",\"text\":\"\"}]}", "id");
    refuse(st,
           HEAD "\"messages\":[{\"id\":1,\"parent\":1,\"role\":\"user\",\"text\":\"\"}]}",
           "parent 1");
    refuse(st,
           HEAD "\"messages\":[{\"id\":2,\"role\":\"user\",\"text\":\"a\"},"
                "{\"id\":2,\"role\":\"user\",\"text\":\"b\"}]}",
           "message 2");
    refuse(st,
           HEAD "\"messages\":[{\"id\":2,\"role\":\"user\",\"text\":\"a\"},"
                "{\"id\":3,\"parent\":4,\"role\":\"user\",\"text\":\"b\"}]}",
           "message 2: its parent 4");
    refuse(st, HEAD "\"messages\":[{\"id\":1,\"role\":\"user\",\"text\":\"a\\u0000b\"}]}",
           "text");
    refuse(st,
           HEAD "\"messages\":[{\"id\":1,\"role\":\"user\",\"text\":\"a\","
                "\"tokenizer\":\"t\",\"ids\":[1,\"2\"]}]}",
           "token id");
    refuse(st,
           HEAD "\"messages\":[{\"id\":1,\"role\":\"user\",\"text\":\"a\","
                "\"tokenizer\":\"t\",\"ids\":[4294967296]}]}",
           "token id");
    store_close(st);
}

/* A file of a later version of the program: what is new does not matter. */
static void test_unknown_fields(void)
{
    struct store *st = store_memory();
    struct err err;
    struct message_list path;
    struct chat chat;
    int64_t id;
    const char *json = HEAD "\"colour\":{\"a\":[]},\"leaf\":77,\"messages\":[{\"id\":5,"
                            "\"role\":\"user\",\"state\":\"dreaming\",\"mood\":1,"
                            "\"text\":\"t\"}]}";
    REQUIRE(transfer_import(st, json, strlen(json), &id, &err) == 0);
    REQUIRE(store_chat_get(st, id, &chat, &err) == 0);
    REQUIRE(store_path(st, chat.leaf_id, &path, &err) == 0);
    CHECK(path.len == 1 && path.v[0].state == STATE_COMPLETE);
    CHECK_STR(chat.title, "");
    message_list_release(&path);
    chat_release(&chat);
    /* And one without any message. */
    REQUIRE(transfer_import(st, HEAD "\"messages\":[]}", strlen(HEAD "\"messages\":[]}"),
                            &id, &err) == 0);
    char *empty = export_json(st, id);
    CHECK(strstr(empty, "\"messages\":[]"));
    free(empty);
    store_close(st);
}

TEST_MAIN(T(test_tree_finds_all), T(test_round_trip), T(test_without_thinking),
          T(test_refusals), T(test_unknown_fields))
