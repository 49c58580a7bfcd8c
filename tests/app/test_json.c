/* test_json.c - what is written reads back as it was; what is not JSON is
 * refused, whatever it is. */
#include "app/json.h"

#include "tests/test.h"

#include <float.h>

static struct json_doc *parse(const char *text, size_t n)
{
    struct err err;
    struct json_doc *d = NULL;
    if (json_parse(&d, text, n, &err) < 0)
        printf("# %s\n", err.text);
    return d;
}

static bool accepts(const char *text)
{
    struct err err = { "" };
    struct json_doc *d;
    int rc = json_parse(&d, text, strlen(text), &err);
    CHECK((rc == 0) == (d != NULL));
    CHECK(rc == 0 || strstr(err.text, "byte"));
    json_doc_close(d);
    return rc == 0;
}

static void test_round_trip_text(void)
{
    char all[600] = "";
    size_t n = 0;
    for (unsigned c = 0; c < 128; c++)
        all[n++] = (char)c;
    n += (size_t)snprintf(
        all + n, sizeof all - n,
        "\xc2\x80\xc2\x9f\u00e9\u2028\u202e\U0001f468\u200d\U0001f469\\\"");
    struct buf b = BUF_INIT;
    struct json_writer w = { .out = &b };
    json_open(&w, '{');
    json_key(&w, "a \"key\"\n");
    json_text(&w, all, n);
    json_close(&w, '}');
    for (size_t i = 0; i < b.len; i++)
        CHECK((unsigned char)b.v[i] >= 0x20 && b.v[i] != 0x7f);
    struct json_doc *d = parse(b.v, b.len);
    REQUIRE(d);
    size_t got_n;
    const char *got =
        json_get_text(d, json_get(d, json_root(d), "a \"key\"\n"), &got_n, NULL);
    REQUIRE(got && got_n == n);
    CHECK(!memcmp(got, all, n) && got[n] == 0);
    json_doc_close(d);
    buf_release(&b);
}

static void test_round_trip_numbers(void)
{
    const double numbers[] = { 0,       0.1,     -1.5, 1e-300, DBL_MAX,
                               DBL_MIN, 1.0 / 3, 1e21, 20.0,   -0.0 };
    struct buf b = BUF_INIT;
    struct json_writer w = { .out = &b };
    json_open(&w, '[');
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_number(&w, numbers[i]);
    json_int(&w, INT64_C(9007199254740993));
    json_int(&w, -1);
    json_fixed(&w, 2.0 / 3, 3);
    json_number(&w, NAN);
    json_fixed(&w, INFINITY, 1);
    json_bool(&w, true);
    json_str(&w, NULL);
    json_close(&w, ']');
    struct json_doc *d = parse(b.v, b.len);
    REQUIRE(d);
    uint32_t v = json_first(d, json_root(d));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++, v = json_next(d, v))
        CHECK(json_get_number(d, v, 99) == numbers[i]);
    int64_t integer = 0;
    CHECK(json_get_int(d, v, 0, INT64_MAX, &integer));
    CHECK(integer == INT64_C(9007199254740993));
    v = json_next(d, v);
    CHECK(!json_get_int(d, v, 0, 10, &integer));
    CHECK(json_get_int(d, v, -1, 10, &integer) && integer == -1);
    v = json_next(d, v);
    CHECK(json_get_number(d, v, 0) == 0.667);
    for (int i = 0; i < 2; i++) {
        v = json_next(d, v);
        CHECK(json_kind(d, v) == JSON_NULL && v);
    }
    CHECK(json_kind(d, json_next(d, v)) == JSON_BOOL);
    json_doc_close(d);
    buf_release(&b);
}

static void test_writer_replaces_bad_bytes(void)
{
    struct buf b = BUF_INIT;
    struct json_writer w = { .out = &b };
    json_text(&w, "a\xff\xc3z\xed\xa0\x80", 7);
    struct json_doc *d = parse(b.v, b.len);
    REQUIRE(d);
    CHECK_STR(json_get_text(d, json_root(d), NULL, ""),
              "a\ufffd\ufffdz\ufffd\ufffd\ufffd");
    json_doc_close(d);
    buf_release(&b);
}

static void test_tree(void)
{
    const char *text = " { \"a\" : [ 1 , {\"b\":[]} , \"x\" ] , \"c\":{}, \"a\":2}\n";
    struct json_doc *d = parse(text, strlen(text));
    REQUIRE(d);
    uint32_t a = json_get(d, json_root(d), "a");
    CHECK(json_kind(d, a) == JSON_ARRAY && json_count(d, a) == 3);
    uint32_t second = json_next(d, json_first(d, a));
    CHECK(json_kind(d, second) == JSON_OBJECT);
    CHECK(json_count(d, json_get(d, second, "b")) == 0);
    CHECK(json_get(d, json_root(d), "none") == 0);
    CHECK(json_get(d, a, "none") == 0 && json_first(d, 0) == 0);
    CHECK_STR(json_get_text(d, a, NULL, "def"), "def");
    CHECK(json_next(d, json_next(d, second)) == 0);
    json_doc_close(d);
}

static void test_accepts(void)
{
    const char *good[] = { "0",
                           "-0",
                           "1e5",
                           "1.25E-3",
                           "\"\"",
                           "null",
                           "[]",
                           "{}",
                           "\"\\ud83d\\ude00\"",
                           "\"\\/\\u0000\"",
                           " [1 ,2]\r\n" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(accepts(good[i]));
}

static void test_refuses(void)
{
    const char *bad[] = {
        "",
        " ",
        "nul",
        "truefalse",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "-",
        "0x10",
        "1e999",
        "Infinity",
        "NaN",
        "'a'",
        "\"a",
        "\"\n\"",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "[1,]",
        "[1 2]",
        "[",
        "]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":1,}",
        "[1]x",
        "/**/1",
        "{\"a\" 1}",
        "\"\\",
        "\"\\u",
        "[1,,2]",
        "11111111111111111111111111111111111111111111111111111111111111111111111",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (accepts(bad[i]))
            printf("# accepted: %s\n", bad[i]);
        CHECK(!accepts(bad[i]));
    }
    CHECK(!parse("1\0", 2));
}

static void test_depth(void)
{
    char text[2 * JSON_MAX_DEPTH + 3];
    memset(text, '[', JSON_MAX_DEPTH);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    text[2 * JSON_MAX_DEPTH] = 0;
    CHECK(accepts(text));
    memset(text, '[', JSON_MAX_DEPTH + 1);
    memset(text + JSON_MAX_DEPTH + 1, ']', JSON_MAX_DEPTH + 1);
    text[2 * JSON_MAX_DEPTH + 2] = 0;
    CHECK(!accepts(text));

    size_t n = 4u << 20;
    char *deep = malloc(n);
    memset(deep, '[', n);
    CHECK(!parse(deep, n));
    for (size_t i = 0; i < n; i += 4)
        memcpy(deep + i, "{\"\":", 4);
    CHECK(!parse(deep, n));
    free(deep);
}

/* Every prefix of a document, and every document with one byte changed, ends
 * with a verdict and no invalid access. */
static void test_damaged(void)
{
    const char good[] = "{\"k\":[1,-2.5e3,\"\\u00e9\\ud83d\\ude00\\n\",true,null,{}]}";
    const size_t n = sizeof good - 1;
    for (size_t cut = 0; cut < n; cut++) {
        char *piece = malloc(cut + 1);
        memcpy(piece, good, cut);
        struct err err;
        struct json_doc *d;
        CHECK(json_parse(&d, piece, cut, &err) < 0);
        free(piece);
    }
    size_t accepted = 0;
    for (size_t at = 0; at < n; at++)
        for (unsigned c = 0; c < 256; c++) {
            char copy[sizeof good];
            memcpy(copy, good, sizeof good);
            copy[at] = (char)c;
            struct err err;
            struct json_doc *d;
            accepted += json_parse(&d, copy, n, &err) == 0;
            json_doc_close(d);
        }
    CHECK(accepted >= n && accepted < n * 128);
}

TEST_MAIN(T(test_round_trip_text), T(test_round_trip_numbers),
          T(test_writer_replaces_bad_bytes), T(test_tree), T(test_accepts),
          T(test_refuses), T(test_depth), T(test_damaged))
