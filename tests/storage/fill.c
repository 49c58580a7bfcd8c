/* fill.c - a database as it is after years of use, and what it costs to use it.
 *
 * Usage: fill DATABASE [CHATS [MESSAGES]]    2,000 conversations of 40 messages
 *        fill --figures DATABASE             times of list, search and deletion
 * Words are drawn as in real texts, few of them often and many of them seldom;
 * every run gives the same texts. Conversation number 7 alone holds the words
 * "unforgettable quincunx". */
#include "tests/storage/scratch.h"

#include "base/clock.h"

#include <inttypes.h>

enum { VOCABULARY = 40000 };

static uint64_t state = 88172645463325252u;

static uint32_t random_below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 16) % n);
}

/* Number r of the vocabulary: short words come often. */
static void word(struct buf *b, uint32_t r)
{
    static const char *const parts[] = { "ka",  "lo", "min", "te", "ra",  "so",
                                         "vel", "du", "ni",  "pa", "rin", "gos",
                                         "the", "ul", "for", "ber" };
    do {
        buf_str(b, parts[r % 16]);
        r /= 16;
    } while (r > 0);
}

static void text_make(struct buf *b, int words)
{
    buf_truncate(b, 0);
    for (int i = 0; i < words; i++) {
        /* A product of uniform numbers: about Zipf's law. */
        uint64_t r = random_below(VOCABULARY);
        r = r * random_below(VOCABULARY) / VOCABULARY;
        r = r * random_below(VOCABULARY) / VOCABULARY;
        word(b, (uint32_t)r);
        buf_str(b, i % 17 == 16 ? ".\n" : " ");
    }
}

static int64_t add_row(sqlite3_stmt *s, int64_t chat, int64_t parent, int i,
                       const struct buf *text)
{
    sqlite3_reset(s);
    sqlite3_bind_int64(s, 1, chat);
    if (parent)
        sqlite3_bind_int64(s, 2, parent);
    else
        sqlite3_bind_null(s, 2);
    sqlite3_bind_text(s, 3, i % 2 ? "assistant" : "user", -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 4, text->v, (int)text->len, SQLITE_STATIC);
    sqlite3_bind_int64(s, 5, INT64_C(1700000000000) + chat * 60000 + i);
    REQUIRE(sqlite3_step(s) == SQLITE_ROW);
    int64_t id = sqlite3_column_int64(s, 0);
    REQUIRE(sqlite3_step(s) == SQLITE_DONE);
    return id;
}

static int64_t add_chat(struct store *st, sqlite3_stmt *s, int number, int messages)
{
    static const char leaf[] = "UPDATE chats SET leaf_id = (SELECT max(id) FROM messages "
                               "WHERE chat_id = chats.id)"
                               " WHERE leaf_id IS NULL";
    struct buf b = BUF_INIT;
    struct err err;
    int64_t id = 0, parent = 0;
    text_make(&b, 6);
    OK(store_chat_new(st, b.v, "Tern Mini 38M", &id, &err));
    REQUIRE(sqlite3_exec(st->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    for (int i = 0; i < messages; i++) {
        text_make(&b, i % 2 ? 40 + (int)random_below(200) : 5 + (int)random_below(40));
        if (number == 7 && i == messages / 2)
            buf_str(&b, "unforgettable quincunx");
        parent = add_row(s, id, parent, i, &b);
    }
    REQUIRE(sqlite3_exec(st->db, leaf, NULL, NULL, NULL) == SQLITE_OK);
    REQUIRE(sqlite3_exec(st->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    buf_release(&b);
    return id;
}

static void fill(const char *path, int chats, int messages)
{
    static const char insert[] =
        "INSERT INTO messages (chat_id, parent_id, role, text, created_ms, state, "
        "prompt_tokens, reused_tokens, evaluated_tokens, generated_tokens, ttft_ms, "
        "prefill_tps, decode_tps, searchable) "
        "VALUES (?1, ?2, ?3, ?4, ?5, 'complete', 0, 0, 0, 0, 0, 0, 0, 1) RETURNING id";
    struct store *st = open_store(path);
    sqlite3_stmt *s = NULL;
    sqlite3_exec(st->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    REQUIRE(sqlite3_prepare_v2(st->db, insert, -1, &s, NULL) == SQLITE_OK);
    for (int i = 0; i < chats; i++)
        add_chat(st, s, i, messages);
    sqlite3_finalize(s);
    store_close(st);
}

/* ---- figures -------------------------------------------------------------- */

static double ms_since(uint64_t from)
{
    return (double)(clock_ns() - from) / 1e6;
}

static void list_figure(struct store *st)
{
    struct chat_list list;
    struct err err;
    uint64_t from = clock_ns();
    OK(store_chat_list(st, &list, &err));
    printf("list       %8.1f ms  %zu conversations\n", ms_since(from), list.len);
    chat_list_release(&list);
}

static void search_figure(struct store *st, const char *words)
{
    struct hit_list hits;
    struct err err;
    uint64_t from = clock_ns();
    OK(store_search(st, words, 100, &hits, &err));
    printf("search     %8.1f ms  %3zu hits for \"%s\"\n", ms_since(from), hits.len,
           words);
    hit_list_release(&hits);
}

static void figures(const char *path)
{
    static const char *const words[] = { "unforgettable quincunx",
                                         "unforgettable",
                                         "u",
                                         "k",
                                         "ka",
                                         "lo ka",
                                         "lo ka min te",
                                         "kaloka",
                                         "no such words anywhere",
                                         "n'importe",
                                         "lo ka rinrinrin" };
    struct chat_list list;
    struct err err;
    uint64_t from = clock_ns();
    struct store *st = open_store(path);
    printf("open       %8.1f ms\n", ms_since(from));
    list_figure(st);
    list_figure(st);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        search_figure(st, words[i]);
    OK(store_chat_list(st, &list, &err));
    from = clock_ns();
    OK(store_chat_delete(st, list.v[list.len / 2].id, &err));
    printf("delete     %8.1f ms\n", ms_since(from));
    chat_list_release(&list);
    store_close(st);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--figures")) {
        figures(argv[2]);
    } else if (argc >= 2 && argc <= 4) {
        fill(argv[1], argc > 2 ? atoi(argv[2]) : 2000, argc > 3 ? atoi(argv[3]) : 40);
    } else {
        fprintf(stderr, "usage: fill DATABASE [CHATS [MESSAGES]] | --figures DATABASE\n");
        return 2;
    }
    return test_failures != 0;
}
