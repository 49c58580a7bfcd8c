/* test_search.c - what is found, by any input that a user can type, and how
 * long it takes in a large history. */
#include "tests/storage/scratch.h"

#include "base/clock.h"

#define MAN_WOMAN_GIRL \
    "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"

static size_t count(struct store *st, const char *words)
{
    struct err err;
    struct hit_list l;
    OK(store_search(st, words, 100, &l, &err));
    size_t n = l.len;
    hit_list_release(&l);
    return n;
}

static void check_snippet(struct store *st, const char *words, const char *want)
{
    struct err err;
    struct hit_list l;
    OK(store_search(st, words, 1, &l, &err));
    CHECK(l.len == 1);
    CHECK_STR(l.len ? l.v[0].snippet : "nothing", want);
    hit_list_release(&l);
}

static void test_words(void)
{
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "A talk about Kernels");
    int64_t a = add(st, chat, 0, ROLE_USER, "How does a Vulkan memory barrier work?");
    add(st, chat, a, ROLE_ASSISTANT,
        "It orders writes; the caf\xc3\xa9 is na\xc3\xafve.");
    add(st, chat, 0, ROLE_USER,
        "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 "
        "Wei\xc3\x9fwurst x_y_z foo.bar(baz)");

    CHECK(count(st, "vulkan") == 1);
    CHECK(count(st, "VULK") == 1);           /* the beginning of a word */
    CHECK(count(st, "barrier vulkan") == 1); /* any order */
    CHECK(count(st, "vulkan orders") == 0);  /* not in one message */
    CHECK(count(st, "cafe naive") == 1);
    CHECK(count(st, "CAF\xc3\x89") == 1);
    CHECK(count(st, "\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2") == 1);
    CHECK(count(st, "bar baz foo") == 1);
    CHECK(count(st, "foo.bar") == 1 && count(st, "bar.foo") == 0);
    CHECK(count(st, "kern") == 1);  /* the title */
    CHECK(count(st, "wurst") == 1); /* a part of a word, where nothing else is */
    CHECK(count(st, "work?") == 1);
    CHECK(count(st, "writes;") == 1 && count(st, ";") == 1 && count(st, "(") == 1);
    CHECK(count(st, "zebra") == 0);

    check_snippet(st, "vulk", "How does a \x02Vulkan\x03 memory barrier work?");
    check_snippet(st, "  ; ",
                  "It orders writes\x02;\x03 the caf\xc3\xa9 is na\xc3\xafve.");
    check_snippet(st, "kern", "A talk about \x02Kernels\x03");
    store_close(st);
}

static void test_scripts_without_spaces(void)
{
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "");
    /* "Today's weather is good. Is it raining in Tokyo?" */
    add(st, chat, 0, ROLE_USER,
        "\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xa4\xa9\xe6\xb0\x94\xe5\xbe\x88\xe5\xa5\xbd\xe3\x80"
        "\x82"
        "\xe6\x9d\xb1\xe4\xba\xac\xe3\x81\xaf\xe9\x9b\xa8\xe3\x81\xa7\xe3\x81\x99\xe3\x81"
        "\x8b");
    add(st, chat, 0, ROLE_USER,
        "GPU\xe5\x86\x85\xe5\xad\x98H200 \xe6\xb0\x94\xe5\xa4\xa9");
    add(st, chat, 0, ROLE_USER,
        "\xe0\xb8\xaa\xe0\xb8\xa7\xe0\xb8\xb1\xe0\xb8\xaa\xe0\xb8\x94\xe0\xb8\xb5"
        "\xe0\xb8\x84\xe0\xb8\xa3\xe0\xb8\xb1\xe0\xb8\x9a");
    add(st, chat, 0, ROLE_USER,
        "family " MAN_WOMAN_GIRL " and \xe2\x9d\xa4 Tern\xe2\x84\xa2");

    CHECK(count(st, "\xe5\xa4\xa9\xe6\xb0\x94") == 1); /* weather, mid-sentence */
    CHECK(count(st, "\xe6\xb0\x94\xe5\xa4\xa9") == 1); /* the other way round */
    CHECK(count(st, "\xe4\xba\xac") == 1);             /* one character */
    CHECK(count(st, "\xe9\x9b\xa8\xe3\x81\xa7") == 1);
    CHECK(count(st, "\xe5\xa5\xbd\xe4\xbb\x8a") == 0);
    CHECK(count(st, "gpu") == 1 && count(st, "h200") == 1); /* beside Han */
    CHECK(count(st, "\xe5\xad\x98h200") == 1);
    CHECK(count(st, "\xe0\xb8\x84\xe0\xb8\xa3\xe0\xb8\xb1\xe0\xb8\x9a") == 1);
    CHECK(count(st, MAN_WOMAN_GIRL) == 1);
    CHECK(count(st, "\xf0\x9f\x91\xa9") == 1); /* one of the family */
    CHECK(count(st, "\xe2\x9d\xa4") == 1 && count(st, "\xf0\x9f\x9a\x80") == 0);
    CHECK(count(st, "tern") == 1);
    check_snippet(
        st, "\xe5\xa4\xa9\xe6\xb0\x94",
        "\xe4\xbb\x8a\xe5\xa4\xa9\x02\xe5\xa4\xa9\xe6\xb0\x94\x03\xe5\xbe\x88\xe5\xa5\xbd"
        "\xe3\x80\x82\xe6\x9d\xb1\xe4\xba\xac\xe3\x81\xaf\xe9\x9b\xa8\xe3\x81\xa7"
        "\xe3\x81\x99\xe3\x81\x8b");
    check_snippet(st, "\xe5\xad\x98H2",
                  "GPU\xe5\x86\x85\x02\xe5\xad\x98H200\x03 "
                  "\xe6\xb0\x94\xe5\xa4\xa9");
    check_integrity(st);
    store_close(st);
}

/* Diacritics that folding removes must not shift where the pieces are. */
static void test_pieces_after_folding(void)
{
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "");
    add(st, chat, 0, ROLE_USER,
        "x \xc3\xa9\xc3\xa9\xc3\xa9\xe6\xb0\xb4\xc3\xa0\xe7\x81\xab z");
    check_snippet(st, "\xe6\xb0\xb4",
                  "x \xc3\xa9\xc3\xa9\xc3\xa9\x02\xe6\xb0\xb4\x03\xc3\xa0"
                  "\xe7\x81\xab z");
    check_snippet(st, "eee",
                  "x \x02\xc3\xa9\xc3\xa9\xc3\xa9\x03\xe6\xb0\xb4\xc3\xa0\xe7\x81\xab z");
    check_snippet(st, "\xe7\x81\xab",
                  "x \xc3\xa9\xc3\xa9\xc3\xa9\xe6\xb0\xb4\xc3\xa0\x02"
                  "\xe7\x81\xab\x03 z");
    store_close(st);
}

/* No input is an error, and none is taken as a query language. */
static void test_any_input(void)
{
    /* clang-format off */
    static const char *const inputs[] = {
        "", " ", "\t\n", "\"", "\"\"", "\"\"\"", "'", "*", "**", "^a", "a*", "a AND",
        "AND", "OR", "NOT", "NOT a", "a NEAR b", "NEAR(a b, 3)", "text:a", "{text}: a",
        "-a", "+a", "(", ")", "((a", "a)", "a OR", "\\", "%", "_", "a;b", "--", "/*",
        "\x01\x02\x03", "\xff\xfe", "\xc3", "a\xc3", "\xed\xa0\x80", "\xe2\x80\x8d",
        "\xcc\x81", "\x7f", "'; DROP TABLE messages; --", "a\"b", "\"a b\"", "a\"*",
        "message_words", "rank",
    };
    /* clang-format on */
    struct err err;
    struct hit_list l;
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "t");
    add(st, chat, 0, ROLE_USER,
        "x and \"quoted words\" NEAR(a b) OR 100% a_b -- C++ \\n");
    add(st, chat, 0, ROLE_USER, "");
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        OK(store_search(st, inputs[i], 10, &l, &err));
        hit_list_release(&l);
    }
    CHECK(count(st, "") == 0 && count(st, " \t\n") == 0);
    CHECK(count(st, "OR") == 1 && count(st, "AND") == 1 && count(st, "NOT") == 0);
    CHECK(count(st, "\"quoted words\"") == 1 && count(st, "\"words quoted") == 1);
    CHECK(count(st, "NEAR(a") == 1 && count(st, "%") == 1 && count(st, "--") == 1);
    CHECK(count(st, "\\n") == 1 && count(st, "C++") == 1);

    /* All bytes, single and in pairs. */
    for (int a = 1; a < 256; a++) {
        char s[3] = { (char)a, (char)(a * 7), 0 };
        OK(store_search(st, s, 10, &l, &err));
        hit_list_release(&l);
    }
    /* 200,000 words, one word of 1 MB, one of Han: a pasted file. */
    char *big = mem_alloc((1 << 20) + 1);
    for (int kind = 0; kind < 3; kind++) {
        for (int i = 0; i < 1 << 20; i++)
            big[i] = kind == 0   ? (i % 5 ? 'q' : ' ')
                     : kind == 1 ? 'q'
                                 : "\xe6\xb0\xb4"[i % 3];
        big[1 << 20] = 0;
        uint64_t t0 = clock_ns();
        OK(store_search(st, big, 10, &l, &err));
        CHECK(l.len == 0 && clock_ns() - t0 < 5000000000u);
        hit_list_release(&l);
    }
    free(big);
    store_close(st);
}

/* A text may hold the marks themselves, NULs and bytes that are not UTF-8. */
static void test_hostile_texts(void)
{
    struct err err;
    struct store *st = open_store(":memory:");
    int64_t chat = new_chat(st, "t\x02i\x03tle needle");
    struct message m = make_message(chat, 0, ROLE_USER, "a\x02 mark\x03 needle \x02");
    OK(store_message_add(st, &m, &err));
    m = make_message(chat, 0, ROLE_USER, "nul\0needle2 \xff\xc3 after");
    m.text_bytes = 20;
    OK(store_message_add(st, &m, &err));
    check_snippet(st, "mark", "a  \x02mark\x03  needle  ");
    check_snippet(st, "tle", "t i \x02tle\x03 needle");
    CHECK(count(st, "needle2") == 1 && count(st, "after") == 1);
    CHECK(count(st, "needle") == 3);
    check_snippet(st, "\"ma", "a  \x02mark\x03  needle  ");
    check_integrity(st);
    store_close(st);
}

/* Renames, updates and partial answers. */
static void test_index_follows(void)
{
    struct err err;
    struct scratch s;
    struct hit_list l;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    int64_t chat = new_chat(st, "oldtitle");
    OK(store_chat_rename(st, chat, "newtitle", &err));
    CHECK(count(st, "oldtitle") == 0 && count(st, "newtitle") == 1);
    struct message m = make_message(chat, 0, ROLE_ASSISTANT, "");
    m.state = STATE_PARTIAL;
    OK(store_message_add(st, &m, &err));
    char text[] = "growing answer", final[] = "another ending";
    m.text = text;
    m.text_bytes = sizeof text - 1;
    OK(store_message_update(st, &m, &err));
    CHECK(count(st, "growing answer") == 1); /* found, although not by word yet */
    check_integrity(st);

    /* Another program looks meanwhile: it puts the text into the index. */
    struct store *other = open_store(s.db);
    CHECK(count(other, "answer growing") == 1);
    check_integrity(st);
    m.text = final;
    m.text_bytes = sizeof final - 1;
    OK(store_message_update(st, &m, &err)); /* still partial */
    CHECK(count(other, "answer growing") == 0);
    check_integrity(st);
    m.state = STATE_COMPLETE;
    OK(store_message_update(st, &m, &err));
    CHECK(count(other, "ending another") == 1 && count(st, "growing") == 0);
    check_integrity(other);
    store_close(other);

    /* Order, limit, and the message that a hit in a title names. */
    for (int i = 0; i < 20; i++)
        add(st, chat, m.id, ROLE_USER, "newtitle here too");
    OK(store_search(st, "newtitle", 5, &l, &err));
    CHECK(l.len == 5 && l.v[0].chat_id == chat && l.v[0].message_id == m.id + 20);
    CHECK_STR(l.v[0].snippet, "\x02newtitle\x03");
    CHECK_STR(l.v[1].snippet, "\x02newtitle\x03 here too");
    CHECK_STR(l.v[1].title, "newtitle");
    hit_list_release(&l);
    OK(store_search(st, "newtitle", 0, &l, &err));
    CHECK(l.len == 0 && !l.v);
    store_close(st);
    scratch_leave(&s);
}

/* ---- a large history --------------------------------------------------- */

/* Word number r of a vocabulary whose frequencies fall as in real text. */
static void add_word(struct buf *b, uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    double u = (double)(*seed >> 11) / 9007199254740992.0;
    int r = (int)(pow(20000, u)); /* about 1/rank */
    for (int n = r * 7919 % 20011 + 27; n; n /= 26)
        buf_char(b, (char)('a' + n % 26));
    buf_char(b, ' ');
}

static double search_ms(struct store *st, const char *words, size_t *hits)
{
    struct err err;
    struct hit_list l;
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        uint64_t t0 = clock_ns();
        OK(store_search(st, words, 50, &l, &err));
        double ms = (double)(clock_ns() - t0) / 1e6;
        best = ms < best ? ms : best;
        *hits = l.len;
        hit_list_release(&l);
    }
    return best;
}

static void fill(struct store *st, int chats, int messages, int words)
{
    struct buf b = BUF_INIT;
    uint64_t seed = 1;
    /* The rows go in as they would through the interface, but in one
     * transaction, for the sake of time. */
    REQUIRE(sqlite3_exec(st->db, "BEGIN", 0, 0, 0) == 0);
    for (int c = 0; c < chats; c++) {
        char sql[] =
            "INSERT INTO messages (chat_id, role, state, created_ms, text, prompt_tokens,"
            "reused_tokens, evaluated_tokens, generated_tokens, ttft_ms, prefill_tps,"
            "decode_tps, searchable) VALUES (?1, 'user', 'complete', 0, ?2, 0, 0, 0, 0, "
            "0,"
            "0, 0, 1)";
        sqlite3_stmt *stmt;
        REQUIRE(sqlite3_exec(st->db,
                             "INSERT INTO chats (title, model, created_ms, updated_ms,"
                             "written_seq) VALUES ('some talk', '', 0, 0, 0)",
                             0, 0, 0) == 0);
        int64_t chat = sqlite3_last_insert_rowid(st->db);
        REQUIRE(sqlite3_prepare_v2(st->db, sql, -1, &stmt, NULL) == SQLITE_OK);
        for (int i = 0; i < messages; i++) {
            buf_truncate(&b, 0);
            for (int w = 0; w < words; w++)
                add_word(&b, &seed);
            if (c == chats / 7 && i == 3)
                buf_str(&b, "the unforgettable quincunx of heaven");
            sqlite3_bind_int64(stmt, 1, chat);
            sqlite3_bind_text(stmt, 2, b.v, (int)b.len, SQLITE_STATIC);
            REQUIRE(sqlite3_step(stmt) == SQLITE_DONE);
            sqlite3_reset(stmt);
        }
        sqlite3_finalize(stmt);
    }
    REQUIRE(sqlite3_exec(st->db, "COMMIT", 0, 0, 0) == 0);
    buf_release(&b);
}

static void test_large_history(void)
{
    struct err err;
    struct scratch s;
    struct chat_list list;
    size_t hits;
    scratch_enter(&s);
    struct store *st = open_store(s.db);
    fill(st, 2000, 10, 100);
    store_close(st);
    st = open_store(s.db); /* nothing in SQLite's cache */
    struct stat file;
    REQUIRE(stat(s.db, &file) == 0);
    printf("# 2,000 chats, 20,000 messages, %lld MB\n", (long long)file.st_size >> 20);
    double rare = search_ms(st, "unforgettable quincunx", &hits);
    CHECK(hits == 1);
    double common = search_ms(st, "b", &hits);
    CHECK(hits == 50);
    double two = search_ms(st, "bbb b", &hits);
    double nothing = search_ms(st, "xyzzyx!", &hits);
    CHECK(hits == 0);
    printf("# search: rare %.1f ms, one letter %.1f ms, two words %.1f ms, nothing %.1f "
           "ms\n",
           rare, common, two, nothing);
    uint64_t t0 = clock_ns();
    OK(store_chat_list(st, &list, &err));
    CHECK(list.len == 2000 && list.v[5].n_messages == 10);
    uint64_t t1 = clock_ns();
    chat_list_release(&list);
    OK(store_chat_delete(st, 77, &err));
    printf("# list %.1f ms, delete a chat %.1f ms\n", (double)(t1 - t0) / 1e6,
           (double)(clock_ns() - t1) / 1e6);
    check_integrity(st);
    store_close(st);
    scratch_leave(&s);
}

TEST_MAIN(T(test_words), T(test_scripts_without_spaces), T(test_pieces_after_folding),
          T(test_any_input), T(test_hostile_texts), T(test_index_follows),
          T(test_large_history))
