/* test_vocab.c - vocabularies of files: hostile and malformed ones, the
 * fingerprint, the time that opening takes. */
#include "base/clock.h"
#include "engine/engine.h"
#include "tests/engine/make_vocab.h"

static void check_refused(struct maker *m, const char *word)
{
    struct err err = { "" };
    struct opened o = made_vocab(m, &err);
    CHECK(!o.v);
    CHECK(strstr(err.text, word) && !strchr(err.text, '\n') && !strchr(err.text, '\x1b'));
    if (!strstr(err.text, word))
        printf("# \"%s\" lacks \"%s\"\n", err.text, word);
    opened_close(&o);
}

static void test_missing_keys(void)
{
    struct maker m;
    make_begin(&m);
    gw_str(&m.w, "general.architecture", "qwen35");
    check_refused(&m, "no vocabulary");

    make_begin(&m);
    gw_str(&m.w, "tokenizer.ggml.model", "llama\n\x1b[2J");
    check_refused(&m, "\"llama");

    make_begin(&m);
    gw_u32(&m.w, "tokenizer.ggml.model", 2);
    check_refused(&m, "tokenizer.ggml.model");

    make_head(&m);
    check_refused(&m, "tokenizer.ggml.tokens");

    make_head(&m);
    make_lists(&m);
    check_refused(&m, "0 tokens");

    make_head(&m);
    make_bytes(&m);
    make_list(&m, "tokenizer.ggml.tokens", GGUF_STRING, &m.tokens);
    check_refused(&m, "tokenizer.ggml.token_type");

    make_head(&m);
    make_bytes(&m);
    make_list(&m, "tokenizer.ggml.tokens", GGUF_STRING, &m.tokens);
    make_list(&m, "tokenizer.ggml.token_type", GGUF_I32, &m.types);
    check_refused(&m, "tokenizer.ggml.merges");

    make_begin(&m);
    gw_str(&m.w, "tokenizer.ggml.model", "gpt2");
    make_bytes(&m);
    make_lists(&m);
    check_refused(&m, "pre-tokenizer");

    make_begin(&m);
    gw_str(&m.w, "tokenizer.ggml.model", "gpt2");
    gw_str(&m.w, "tokenizer.ggml.pre", "gpt-2");
    make_bytes(&m);
    make_lists(&m);
    check_refused(&m, "\"gpt-2\"");
}

static void test_wrong_arrays(void)
{
    struct maker m;
    make_head(&m);
    make_bytes(&m);
    make_list(&m, "tokenizer.ggml.tokens", GGUF_I32, &m.types);
    make_list(&m, "tokenizer.ggml.token_type", GGUF_I32, &m.types);
    make_list(&m, "tokenizer.ggml.merges", GGUF_STRING, &m.merges);
    check_refused(&m, "tokenizer.ggml.tokens");

    make_head(&m);
    make_bytes(&m);
    make_list(&m, "tokenizer.ggml.tokens", GGUF_STRING, &m.tokens);
    make_list(&m, "tokenizer.ggml.token_type", GGUF_STRING, &m.tokens);
    make_list(&m, "tokenizer.ggml.merges", GGUF_STRING, &m.merges);
    check_refused(&m, "tokenizer.ggml.token_type");

    make_head(&m);
    make_bytes(&m);
    buf_truncate(&m.types.bytes, m.types.bytes.len - 4);
    m.types.n--;
    make_lists(&m);
    check_refused(&m, "255 entries for 256 tokens");

    make_head(&m);
    make_bytes(&m);
    make_list(&m, "tokenizer.ggml.tokens", GGUF_STRING, &m.tokens);
    make_list(&m, "tokenizer.ggml.token_type", GGUF_I32, &m.types);
    make_list(&m, "tokenizer.ggml.merges", GGUF_I32, &m.types);
    check_refused(&m, "tokenizer.ggml.merges");
}

static void test_missing_bytes(void)
{
    struct maker m;
    make_head(&m);
    make_token(&m, "only", TOKEN_NORMAL);
    make_lists(&m);
    check_refused(&m, "byte 0x00");

    make_head(&m);
    make_bytes(&m);
    m.types.bytes.v[4 * 0x41] = TOKEN_CONTROL;
    make_lists(&m);
    check_refused(&m, "byte 0x41");
}

static int32_t encode_one(const struct vocab *v, const char *text, unsigned flags)
{
    struct tokens t = { 0 };
    vocab_encode(v, text, strlen(text), flags, &t);
    int32_t id = t.len == 1 ? t.v[0] : -1;
    tokens_release(&t);
    return id;
}

/* Duplicate tokens, merges of unknown, control and unmatched symbols, strange
 * types, ids out of range. */
static struct opened open_strange(void)
{
    static const struct {
        const char *text;
        int32_t type;
    } extra[] = { { "ab", 1 },         { "ab", 1 },   { "abc", 1 },
                  { "<|im_end|>", 1 }, { "", 3 },     { "<0x41>", 6 },
                  { "cc", 77 },        { "user", 4 }, { "x<|im_end|>", 4 },
                  { "\xFF\xFE", 1 },   { "dd", -3 } };
    static const char *const merges[] = {
        "a b", "a b", "ab c", "nope x", "x nope",      "",    " ",        "  ", "x",
        "x ",  " x",  "c c",  "d d",    "<|im_en d|>", "a a", "\xFF \xFE"
    };
    struct maker m;
    struct err err = { "" };
    make_head(&m);
    make_bytes(&m);
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++)
        make_token(&m, extra[i].text, extra[i].type);
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
        make_merge(&m, merges[i]);
    make_lists(&m);
    gw_u32(&m.w, "tokenizer.ggml.eos_token_id", 4000000000u);
    gw_u32(&m.w, "tokenizer.ggml.eot_token_id", 256 + 7);
    struct opened o = made_vocab(&m, &err);
    REQUIRE(o.v);
    return o;
}

static void test_strange_vocabulary(void)
{
    struct opened o = open_strange();
    CHECK(vocab_find(o.v, "ab") == 256);
    CHECK(encode_one(o.v, "ab", 0) == 256 && encode_one(o.v, "abc", 0) == 258);
    struct tokens t = { 0 };
    vocab_encode(o.v, "ccddaa", 6, 0, &t); /* merges of unusable results: ignored */
    CHECK(t.len == 6);
    /* typed normal in the file, but a turn's end all the same */
    CHECK(vocab_type(o.v, 259) == TOKEN_CONTROL);
    CHECK(encode_one(o.v, "<|im_end|>", 0) == -1);
    CHECK(encode_one(o.v, "<|im_end|>", TOKENIZE_SPECIAL) == 259);
    CHECK(encode_one(o.v, "x<|im_end|>", TOKENIZE_SPECIAL) == 264); /* the longest */
    const int32_t *ids;
    CHECK(vocab_end_ids(o.v, &ids) == 2 && ids[0] == 259 && ids[1] == 263);
    CHECK(vocab_type(o.v, 262) == TOKEN_UNUSED && vocab_type(o.v, 266) == TOKEN_UNUSED);
    struct buf b = BUF_INIT;
    for (int32_t id = -1; id < 300; id++)
        vocab_decode(o.v, id, TOKENIZE_SPECIAL, &b);
    CHECK(b.len > 256);
    buf_truncate(&b, 0);
    vocab_decode(o.v, 261, 0, &b);
    CHECK_STR(buf_cstr(&b), "A"); /* a token written as <0x41> */
    buf_truncate(&b, 0);
    vocab_decode(o.v, 265, 0, &b);
    CHECK_STR(buf_cstr(&b), "\xFF\xFE");
    buf_release(&b);
    tokens_release(&t);
    opened_close(&o);
}

/* Variant 1 has another token, 2 another type, 3 another merge. */
static struct opened open_variant(int variant)
{
    struct maker m;
    struct err err = { "" };
    make_head(&m);
    make_bytes(&m);
    make_token(&m, variant == 1 ? "ac" : "ab",
               variant == 2 ? TOKEN_UNUSED : TOKEN_NORMAL);
    make_merge(&m, variant == 3 ? "b a" : "a b");
    make_lists(&m);
    struct opened o = made_vocab(&m, &err);
    REQUIRE(o.v);
    return o;
}

static void test_fingerprint(void)
{
    char prints[5][33];
    struct err err;
    for (int k = 0; k < 4; k++) {
        struct opened o = open_variant(k);
        const char *print = vocab_fingerprint(o.v);
        REQUIRE(strlen(print) == 32 && strspn(print, "0123456789abcdef") == 32);
        memcpy(prints[k], print, 33);
        opened_close(&o);
    }
    struct opened o = open_variant(0);
    CHECK_STR(vocab_fingerprint(o.v), prints[0]);
    CHECK(vocab_set_pre(o.v, "qwen2", &err) == 0);
    memcpy(prints[4], vocab_fingerprint(o.v), 33);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            CHECK(strcmp(prints[i], prints[k]) != 0);
    CHECK(vocab_set_pre(o.v, "qwen35", &err) == 0);
    CHECK_STR(vocab_fingerprint(o.v), prints[0]);
    opened_close(&o);
}

/* Tokens and merges of a real file, and joined pairs of tokens on top. */
static void make_large(struct maker *m, uint64_t n_tokens)
{
    struct err err;
    struct gguf *g;
    struct gguf_array tokens, merges;
    struct buf joined = BUF_INIT;
    REQUIRE(gguf_open(&g, "tests/data/qwen3-vocab.gguf", &err) == 0);
    REQUIRE(gguf_array(g, "tokenizer.ggml.tokens", GGUF_STRINGS, &tokens, &err) == 1);
    REQUIRE(gguf_array(g, "tokenizer.ggml.merges", GGUF_STRINGS, &merges, &err) == 1);
    for (uint64_t i = 0; i < merges.n; i++) {
        struct gguf_str s = gguf_array_str(&merges, i);
        list_string(&m->merges, s.v, s.bytes);
    }
    for (uint64_t i = 0; i < tokens.n; i++) {
        struct gguf_str s = gguf_array_str(&tokens, i);
        make_token_bytes(m, s.v, s.bytes, i < 151643 ? TOKEN_NORMAL : TOKEN_CONTROL);
    }
    for (uint64_t seed = 5; m->tokens.n < n_tokens;) {
        struct gguf_str left = gguf_array_str(&tokens, gw_random(&seed) % 100000);
        struct gguf_str right = gguf_array_str(&tokens, gw_random(&seed) % 100000);
        buf_truncate(&joined, 0);
        buf_add(&joined, left.v, left.bytes);
        buf_add(&joined, right.v, right.bytes);
        make_token_bytes(m, joined.v, joined.len, TOKEN_NORMAL);
        buf_truncate(&joined, left.bytes);
        buf_char(&joined, ' ');
        buf_add(&joined, right.v, right.bytes);
        list_string(&m->merges, joined.v, joined.len);
    }
    buf_release(&joined);
    gguf_close(g);
}

/* As many tokens and merges as the large vocabularies have. */
static void test_open_time(void)
{
    struct maker m;
    struct err err = { "" };
    make_head(&m);
    make_large(&m, 248320);
    uint64_t n_merges = m.merges.n;
    CHECK(n_merges > 247587);
    make_lists(&m);
    struct gguf *g = made_file(&m);
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        struct vocab *v;
        uint64_t start = clock_ns();
        REQUIRE(vocab_open(&v, g, &err) == 0);
        double seconds = (double)(clock_ns() - start) / 1e9;
        best = seconds < best ? seconds : best;
        CHECK(vocab_size(v) == 248320);
        vocab_close(v);
    }
    printf("# 248320 tokens, %u merges: opened in %.3f s\n", (unsigned)n_merges, best);
    CHECK(best < 2);
    vocab_close(NULL);
    gguf_close(g);
}

TEST_MAIN(T(test_missing_keys), T(test_wrong_arrays), T(test_missing_bytes),
          T(test_strange_vocabulary), T(test_fingerprint), T(test_open_time))
