/* test_gguf.c - the GGUF container: what a right file offers, what is not a
 * model at all, and files that are cut short. */
#define TEST_SECONDS 60
#include "tests/engine/gguf_check.h"

static struct gguf *open_small(char path[256])
{
    struct gguf_writer w;
    struct gguf *g;
    struct err e;
    write_small(&w);
    gw_save(&w, gw_path(path, "small.gguf"));
    gw_release(&w);
    if (gguf_open(&g, path, &e) < 0) {
        printf("# %s\n", e.text);
        exit(1);
    }
    return g;
}

static void test_integers(void)
{
    char path[256];
    struct gguf *g = open_small(path);
    struct err e;
    static const struct { const char *key; uint32_t value; } good[] = {
        { "u32", 4000000000u }, { "u8", 200 }, { "u16", 60000 }, { "i16", 300 },
        { "i32", 70000 }, { "u64.small", 9 }, { "i64", 12 },
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint32_t v = 0;
        float f = 0;
        CHECK(gguf_u32(g, good[i].key, &v, &e) == 1 && v == good[i].value);
        CHECK(gguf_f32(g, good[i].key, &f, &e) == 1 && f == (float)good[i].value);
    }
    static const char *const bad[] = { "i8", "u64", "u64.max", "f32", "f64", "yes",
                                       "text", "words", "numbers" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t v = 77;
        e.text[0] = 0;
        CHECK(gguf_u32(g, bad[i], &v, &e) == -1 && v == 77 && strstr(e.text, bad[i]));
    }
    uint32_t v = 77;
    CHECK(gguf_u32(g, "absent", &v, &e) == 0 && v == 77);
    CHECK(gguf_u32(g, "u3", &v, &e) == 0 && gguf_u32(g, "u322", &v, &e) == 0);
    gguf_close(g);
}

static void test_other_scalars(void)
{
    char path[256];
    struct gguf *g = open_small(path);
    struct err e;
    float f = 0;
    bool b = true;
    struct gguf_str s = { 0 };
    CHECK(gguf_f32(g, "f32", &f, &e) == 1 && f == 0.25f);
    CHECK(gguf_f32(g, "f64", &f, &e) == 1 && f == 1.5f);
    CHECK(gguf_f32(g, "i8", &f, &e) == 1 && f == -5);
    CHECK(gguf_f32(g, "text", &f, &e) == -1 && gguf_f32(g, "numbers", &f, &e) == -1);
    CHECK(gguf_bool(g, "no", &b, &e) == 1 && !b);
    CHECK(gguf_bool(g, "yes", &b, &e) == 1 && b);
    CHECK(gguf_bool(g, "u8", &b, &e) == -1 && gguf_bool(g, "text", &b, &e) == -1);
    CHECK(gguf_bool(g, "absent", &b, &e) == 0 && b);
    CHECK(gguf_string(g, "text", &s, &e) == 1 && s.bytes == 9);
    CHECK(!memcmp(s.v, "some text", 9));
    CHECK(gguf_string(g, "text.empty", &s, &e) == 1 && s.bytes == 0);
    CHECK(gguf_string(g, "u8", &s, &e) == -1 && gguf_string(g, "words", &s, &e) == -1);
    CHECK(gguf_has(g, "words") && !gguf_has(g, "word") && !gguf_has(g, ""));
    CHECK(gguf_has_prefix(g, "word") && gguf_has_prefix(g, "") &&
          !gguf_has_prefix(g, "words.none."));
    gguf_close(g);
}

static void test_arrays(void)
{
    char path[256];
    struct gguf *g = open_small(path);
    struct err e;
    struct gguf_array a = { 0 };
    CHECK(gguf_array(g, "words", GGUF_STRINGS, &a, &e) == 1 && a.n == 3);
    struct gguf_str s = gguf_array_str(&a, 0);
    CHECK(s.bytes == 3 && !memcmp(s.v, "one", 3));
    CHECK(gguf_array_str(&a, 1).bytes == 0);
    s = gguf_array_str(&a, 2);
    CHECK(s.bytes == 7 && !memcmp(s.v, "three \xff", 7));
    CHECK(gguf_array(g, "words", GGUF_INTS, &a, &e) == -1);
    CHECK(gguf_array(g, "words.none", GGUF_STRINGS, &a, &e) == 1 && a.n == 0);
    CHECK(gguf_array(g, "numbers", GGUF_INTS, &a, &e) == 1 && a.n == 3);
    CHECK(gguf_array_int(&a, 0) == -1 && gguf_array_int(&a, 2) == 3);
    CHECK(gguf_array(g, "numbers", GGUF_FLOATS, &a, &e) == 1);
    CHECK(gguf_array_f32(&a, 0) == -1);
    CHECK(gguf_array(g, "numbers", GGUF_STRINGS, &a, &e) == -1);
    CHECK(gguf_array(g, "flags", GGUF_INTS, &a, &e) == 1 && a.n == 2);
    CHECK(gguf_array_int(&a, 0) == 1 && gguf_array_int(&a, 1) == 0);
    CHECK(gguf_array(g, "u64s", GGUF_INTS, &a, &e) == 1);
    CHECK(gguf_array_int(&a, 0) == INT64_MAX);
    CHECK(gguf_array(g, "floats", GGUF_FLOATS, &a, &e) == 1);
    CHECK(gguf_array_f32(&a, 0) == -2);
    CHECK(gguf_array(g, "floats", GGUF_INTS, &a, &e) == -1);
    CHECK(gguf_array(g, "u32", GGUF_INTS, &a, &e) == -1);
    CHECK(gguf_array(g, "absent", GGUF_INTS, &a, &e) == 0);
    gguf_close(g);
}

static void test_tensors(void)
{
    char path[256];
    struct gguf *g = open_small(path);
    CHECK(gguf_n_tensors(g) == 3 && gguf_n_keys(g) == 23);
    CHECK_STR(gguf_path(g), path);
    const struct tensor *t = gguf_tensor(g, 0);
    CHECK_STR(t->name, "first");
    CHECK(t->type == QUANT_F32 && t->n_dims == 1 && t->ne[0] == 32 && t->ne[1] == 1 &&
          t->ne[3] == 1 && t->bytes == 128 && t->offset == 0);
    CHECK(!memcmp(t->data, three, sizeof three));
    t = gguf_tensor_find(g, "second");
    REQUIRE(t);
    CHECK(t->type == QUANT_Q8_0 && t->ne[0] == 64 && t->ne[1] == 3);
    CHECK(t->n_elements == 192);
    CHECK(t->bytes == 6 * 34 && t->offset == 128);
    CHECK(gguf_tensor_find(g, "third")->bytes == 10);
    CHECK(!gguf_tensor_find(g, "fourth") && !gguf_tensor_find(g, ""));
    gguf_close(g);
    gguf_close(NULL);
}

static void test_shipped_model(void)
{
    struct gguf *g;
    struct err e;
    REQUIRE(gguf_open(&g, MINI, &e) == 0);
    CHECK(gguf_n_tensors(g) == 161 && gguf_n_keys(g) == 32);
    CHECK(gguf_file_bytes(g) == 14493408);
    uint32_t n = 0;
    struct gguf_array a;
    CHECK(gguf_u32(g, "qwen35.block_count", &n, &e) == 1 && n == 12);
    CHECK(gguf_array(g, "tokenizer.ggml.tokens", GGUF_STRINGS, &a, &e) == 1);
    CHECK(a.n == 8192);
    struct gguf_str s = gguf_array_str(&a, 1);
    CHECK(s.bytes == 12 && !memcmp(s.v, "<|im_start|>", 12));
    const struct tensor *t = gguf_tensor_find(g, "blk.11.ffn_down.weight");
    REQUIRE(t);
    CHECK(t->type == QUANT_Q2_0 && t->ne[0] == 1152 && t->ne[1] == 512);
    CHECK(t->bytes == 1152 * 512 / 64 * 18);
    CHECK(walk(g) > 0);
    gguf_close(g);
    CHECK(opens("tests/data/dense_qwen35.gguf") && opens("tests/data/moe_qwen35.gguf") &&
          opens("tests/data/next.gguf") && opens("tests/data/qwen3-vocab.gguf"));
}

/* ---- not a model -------------------------------------------------------- */

static void test_other_files(void)
{
    char path[256];
    check_path_refused("/tmp", "is a directory");
    check_path_refused("/dev/null", "not a regular file");
    check_path_refused("/nonexistent/model.gguf", "No such file");
    check_path_refused("", "cannot be opened");
    check_path_refused("Makefile", "not a GGUF model");
    REQUIRE(mkfifo(gw_path(path, "fifo"), 0600) == 0);
    check_path_refused(path, "not a regular file");
    FILE *f = fopen(gw_path(path, "short"), "w");
    REQUIRE(f);
    check_path_refused(path, "is empty");
    fputs("GG", f);
    fflush(f);
    check_path_refused(path, "not a GGUF model");
    fputs("UF", f);
    fflush(f);
    check_path_refused(path, "ends inside its header");
    fclose(f);
}

static void test_versions(void)
{
    static const struct { uint32_t version; const char *expected; } rows[] = {
        { 0, "version 0" }, { 1, "version 1" }, { 4, "version 4" },
        { 0x03000000, "big-endian" }, { 0x02000000, "big-endian" },
        { 0xffffffff, "version 4294967295" },
    };
    char path[256];
    struct gguf_writer w;
    write_small(&w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gw_patch(&w, 4, rows[i].version, 4);
        check_refused(&w, rows[i].expected);
    }
    gw_patch(&w, 4, 2, 4); /* the same layout as 3 */
    gw_save(&w, gw_path(path, "v2.gguf"));
    CHECK(opens(path));
    gw_release(&w);
}

/* ---- cut short ---------------------------------------------------------- */

static void test_cut_everywhere(void)
{
    char path[256];
    struct gguf_writer w;
    write_small(&w);
    size_t header = w.marks[w.n_marks - 1].at + 8; /* without padding */
    gw_path(path, "cut.gguf");
    uint64_t needed = w.head.len + 128 + 224 + 10; /* padding may be missing */
    for (uint64_t n = 0; n <= gw_file_bytes(&w) + 5; n++) {
        gw_save_cut(&w, path, n);
        CHECK(opens(path) == (n >= needed));
        if (n >= 4 && n < header)
            check_path_refused(path, "ends inside its header");
        if (test_failures)
            break;
    }
    gw_release(&w);
}

static void test_cut_model(void)
{
    char path[256];
    uint64_t state = 7, n = 14493408;
    copy_file(MINI, gw_path(path, "cut.gguf"));
    CHECK(opens(path));
    for (int i = 0; i < 400 && n > 0; i++) {
        n -= i < 40 ? 1 : 1 + gw_random(&state) % (n / 8 + 1);
        REQUIRE(truncate(path, (off_t)n) == 0);
        CHECK(!opens(path) || n > 14493408 - 32);
    }
}

TEST_MAIN(T(test_integers), T(test_other_scalars), T(test_arrays), T(test_tensors),
          T(test_shipped_model), T(test_other_files), T(test_versions),
          T(test_cut_everywhere), T(test_cut_model))
