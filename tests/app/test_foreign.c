/* test_foreign.c - conversations of other programs, whole or cut or changed. */
#include "app/transfer.h"
#include "base/mem.h"

#include "tests/test.h"

static struct store *store_memory(void)
{
    struct store *st;
    struct err err;
    REQUIRE(store_open(&st, ":memory:", &err) == 0);
    return st;
}

/* "role:text|role:text" of a conversation. malloced. */
static char *said(struct store *st, int64_t id)
{
    struct chat chat;
    struct message_list path;
    struct buf b = BUF_INIT;
    struct err err;
    REQUIRE(store_chat_get(st, id, &chat, &err) == 0);
    REQUIRE(store_path(st, chat.leaf_id, &path, &err) == 0);
    for (size_t i = 0; i < path.len; i++) {
        const struct message *m = &path.v[i];
        buf_printf(&b, "%s%c:", i ? "|" : "", role_name(m->role)[0]);
        if (m->thinking)
            buf_printf(&b, "(%s)", m->thinking);
        buf_str(&b, m->text);
    }
    message_list_release(&path);
    chat_release(&chat);
    return buf_detach(&b);
}

static size_t n_chats(struct store *st)
{
    struct chat_list l;
    struct err err;
    REQUIRE(store_chat_list(st, &l, &err) == 0);
    size_t n = l.len;
    chat_list_release(&l);
    return n;
}

static void check(const char *text, size_t n, const char *want)
{
    struct store *st = store_memory();
    struct import_result r;
    struct err err = { "" };
    int rc = transfer_import_any(st, text, strlen(text), &r, &err);
    if (rc < 0)
        printf("# %s\n", err.text);
    REQUIRE(rc == 0);
    CHECK(r.n == n && n_chats(st) == n);
    char *got = said(st, r.last);
    CHECK_STR(got, want);
    free(got);
    store_close(st);
}

static void refuse(const char *text, const char *why)
{
    struct store *st = store_memory();
    struct import_result r;
    struct err err = { "" };
    CHECK(transfer_import_any(st, text, strlen(text), &r, &err) < 0);
    if (!strstr(err.text, why))
        printf("# \"%s\" lacks \"%s\"\n", err.text, why);
    CHECK(strstr(err.text, why) && !strchr(err.text, '\n'));
    CHECK(n_chats(st) == 0 && r.n == 0);
    store_close(st);
}

#define USER      "{\"role\":\"user\",\"content\":\"hi \\u001b[2J\"}"
#define ASSISTANT "{\"role\":\"assistant\",\"content\":\"hello\"}"

static void test_message_lists(void)
{
    check("[" USER "," ASSISTANT "]", 1, "u:hi \x1b[2J|a:hello");
    check("\xef\xbb\xbf{\"messages\":[" USER "]}\n", 1, "u:hi \x1b[2J");
    check("{\"system\":\"S\",\"messages\":[" USER "]}", 1, "s:S|u:hi \x1b[2J");
    check("[{\"role\":\"developer\",\"content\":\"S\"}," USER "]", 1, "s:S|u:hi \x1b[2J");
    /* Parts; a picture leaves its kind. */
    check("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
          "{\"type\":\"image_url\",\"image_url\":{}},\"b\"]}]",
          1, "u:a\n[image_url]\nb");
    /* Reasoning, inside the text or beside it. */
    check("[" USER
          ",{\"role\":\"assistant\",\"content\":\"<think>\\nhm\\n</think>\\n\\nyes\"}]",
          1, "u:hi \x1b[2J|a:(hm)yes");
    check("[" USER
          ",{\"role\":\"assistant\",\"content\":\"yes\",\"reasoning_content\":\"hm\"}]",
          1, "u:hi \x1b[2J|a:(hm)yes");
    check("[" USER ",{\"role\":\"assistant\",\"content\":\"<think>open\"}]", 1,
          "u:hi \x1b[2J|a:<think>open");
    check("{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},"
          "{\"from\":\"gpt\",\"value\":\"a\"}]}",
          1, "u:q|a:a");
    /* What tools said has no place here. */
    check("[" USER ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[]},"
          "{\"role\":\"tool\",\"content\":\"42\"}," ASSISTANT "]",
          1, "u:hi \x1b[2J|a:|a:hello");
}

static void test_many(void)
{
    check("[{\"title\":\"one\",\"messages\":[" USER "]},{\"messages\":[" ASSISTANT "]}]",
          2, "a:hello");
    check("{\"messages\":[" USER "]}\n\n{\"messages\":[" ASSISTANT "]}\n", 2, "a:hello");
    check("{\"messages\":[" USER "]}\r\n{\"messages\":[" ASSISTANT "]}\r\n", 2,
          "a:hello");
    check("{\"conversations\":[{\"messages\":[" USER "]},{\"messages\":[" ASSISTANT
          "]}]}",
          2, "a:hello");
    refuse("[{\"messages\":[" USER "]},{\"messages\":[{\"role\":\"user\"}]}]",
           "conversation 2");
    refuse("{\"messages\":[" USER "]}\n{\"messages\":[" USER "}", "line 2");
}

#define NODE(id, parent, role, text)                                                     \
    "\"" id "\":{\"parent\":" parent ",\"message\":{\"author\":{\"role\":\"" role        \
    "\"},\"create_time\":1700000000.5,\"content\":{\"content_type\":\"text\",\"parts\":" \
    "[\"" text "\"]}}}"

static void test_mapping(void)
{
    check("[{\"title\":\"T\",\"create_time\":1700000000,\"current_node\":\"d\","
          "\"mapping\":{"
          "\"root\":{\"parent\":null,\"message\":null}," NODE(
              "a", "\"root\"", "system",
              "") "," NODE("b", "\"a\"", "user",
                           "q") "," NODE("c", "\"b\"", "assistant",
                                         "old") "," NODE("d", "\"b\"", "assistant",
                                                         "new") "}}]",
          1, "u:q|a:new");
    /* A circle ends. */
    check("{\"current_node\":\"a\",\"mapping\":{" NODE(
              "a", "\"b\"", "user", "x") "," NODE("b", "\"a\"", "assistant", "y") "}}",
          1, "a:y|u:x");
    refuse("{\"current_node\":\"zz\",\"mapping\":{" NODE("a", "null", "user", "x") "}}",
           "no message");
}

static void test_times_and_titles(void)
{
    struct store *st = store_memory();
    struct import_result r;
    struct err err;
    struct chat chat;
    struct message_list path;
    const char *json = "{\"title\":\"A \\u001b[2J title\",\"model\":\"gpt-x\","
                       "\"created\":1600000000,\"messages\":[" USER
                       ",{\"role\":\"assistant\",\"content\":\"b\",\"timestamp\":"
                       "1600000005000}]}";
    REQUIRE(transfer_import_any(st, json, strlen(json), &r, &err) == 0);
    REQUIRE(store_chat_get(st, r.last, &chat, &err) == 0);
    CHECK_STR(chat.title, "A \x1b[2J title"); /* as it is; views make it harmless */
    CHECK_STR(chat.model, "gpt-x");
    CHECK(chat.title_source == TITLE_USER);
    REQUIRE(store_path(st, chat.leaf_id, &path, &err) == 0);
    CHECK(path.v[0].created_ms == INT64_C(1600000000000));
    CHECK(path.v[1].created_ms == INT64_C(1600000005000));
    message_list_release(&path);
    chat_release(&chat);
    REQUIRE(transfer_import_any(st, "[" USER "]", strlen("[" USER "]"), &r, &err) == 0);
    REQUIRE(store_chat_get(st, r.last, &chat, &err) == 0);
    CHECK(!strncmp(chat.title, "hi ", 3));
    CHECK(chat.title_source == TITLE_FIRST_MESSAGE);
    chat_release(&chat);
    store_close(st);
}

static void test_marked_text(void)
{
    check("<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nq\n2<|im_end|>\n"
          "<|im_start|>assistant\n<think>\nhm\n</think>\n\na<|im_end|>\n",
          1, "s:S|u:q\n2|a:(hm)a");
    check("  <|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n", 1, "u:q");
    check("<|im_start|>user\nq\n<|im_start|>assistant\na", 1, "u:q\n|a:a");
    refuse("<|im_start|>", "no message");
    refuse("<|im_start|>robot\nx<|im_end|>", "no message");
}

static void test_refusals(void)
{
    refuse("", "byte 0");
    refuse("hello", "byte");
    refuse("[]", "not a conversation");
    refuse("{}", "not a conversation");
    refuse("[1,2]", "not a conversation");
    refuse("{\"messages\":\"x\"}", "not a conversation");
    refuse("{\"mapping\":[]}", "not a conversation");
    refuse("[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]", "message 1");
    refuse("[" USER ",{\"content\":\"x\"}]", "message 2");
    refuse("[" USER ",7]", "message 2");
}

/* Any file that is cut or changed anywhere is taken whole or leaves nothing. */
static void test_damaged(void)
{
    static const char *const files[] = {
        "{\"title\":\"T\",\"messages\":[" USER "," ASSISTANT "]}",
        "{\"current_node\":\"b\",\"mapping\":{" NODE("a", "null", "user", "x") "," NODE(
            "b", "\"a\"", "assistant", "y") "}}",
        "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>a</"
        "think>b<|im_end|>\n",
        "{\"messages\":[" USER "]}\n{\"messages\":[" ASSISTANT "]}\n",
    };
    struct store *st = store_memory();
    size_t kept = 0;
    srand(11);
    for (int i = 0; i < 3000; i++) {
        const char *whole = files[i % 4];
        size_t n = strlen(whole);
        char *bad = mem_strndup(whole, n);
        if (i % 3 == 0)
            n = (size_t)rand() % n;
        for (int k = rand() % 4; i % 3 && k >= 0; k--)
            bad[(size_t)rand() % n] =
                (char)(i % 2 ? rand() % 256 : "{}[]\",:\\<|"[rand() % 10]);
        bad[n] = 0;
        struct import_result r;
        struct err err = { "" };
        int rc = transfer_import_any(st, bad, n, &r, &err);
        CHECK((rc == 0) == (r.n > 0) && (rc == 0 || err.text[0]));
        kept += r.n;
        CHECK(n_chats(st) == kept || i % 50 != 0);
        free(bad);
    }
    CHECK(n_chats(st) == kept && kept > 100);
    store_close(st);
}

TEST_MAIN(T(test_message_lists), T(test_many), T(test_mapping), T(test_times_and_titles),
          T(test_marked_text), T(test_refusals), T(test_damaged))
