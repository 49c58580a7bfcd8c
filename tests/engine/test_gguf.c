/* test_gguf.c - the GGUF container: right files, and many wrong ones, each of
 * which must be refused with one clear line and without harm. */
#define TEST_SECONDS 60
#include "tests/engine/gguf_writer.h"
#include "tests/test.h"

#include <sys/resource.h>

#define MINI "assets/tern-mini.gguf"

/* So that a header that asks for gigabytes fails the test. */
static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit limit = { 256u << 20, 256u << 20 };
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
#endif
}

static bool one_clear_line(const struct err *e)
{
    size_t n = strlen(e->text);
    for (size_t i = 0; i < n; i++)
        if (e->text[i] < ' ' || e->text[i] > '~')
            return false;
    return n > 10;
}

/* Touches all that an opened file offers; a sanitiser or the MMU objects. */
static uint64_t walk(const struct gguf *g)
{
    uint64_t sum = gguf_file_bytes(g);
    for (size_t i = 0; i < g->parts[0].n_values; i++) {
        const struct gguf_value *v = &g->parts[0].values[i];
        char key[300];
        struct gguf_array a;
        struct gguf_str s;
        float f;
        uint32_t u;
        bool b;
        snprintf(key, sizeof key, "%.*s", (int)(v->key.bytes < 250 ? v->key.bytes : 250),
                 v->key.v);
        sum += gguf_u32(g, key, &u, NULL) == 1 ? u : 0;
        sum += gguf_f32(g, key, &f, NULL) == 1;
        sum += gguf_bool(g, key, &b, NULL) == 1;
        if (gguf_string(g, key, &s, NULL) == 1 && s.bytes)
            sum += (uint8_t)s.v[s.bytes - 1];
        for (int kind = GGUF_INTS; kind <= GGUF_STRINGS; kind++) {
            if (gguf_array(g, key, (enum gguf_elements)kind, &a, NULL) != 1 || !a.n)
                continue;
            if (kind == GGUF_INTS)
                sum += (uint64_t)gguf_array_int(&a, a.n - 1);
            if (kind == GGUF_FLOATS)
                sum += gguf_array_f32(&a, a.n - 1) > 0;
            if (kind == GGUF_STRINGS && (s = gguf_array_str(&a, a.n - 1)).bytes)
                sum += (uint8_t)s.v[s.bytes - 1];
        }
    }
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct tensor *t = gguf_tensor(g, i);
        CHECK(t->bytes > 0 && gguf_tensor_find(g, t->name) == t);
        sum += t->data[0] + t->data[t->bytes - 1] + strlen(t->name);
    }
    return sum;
}

/* Opens; on success walks over everything, on failure checks the text. */
static bool opens(const char *path)
{
    struct gguf *g;
    struct err e = { "" };
    if (gguf_open(&g, path, &e) < 0) {
        CHECK(g == NULL);
        if (!one_clear_line(&e))
            printf("# \"%s\"\n", e.text);
        CHECK(one_clear_line(&e));
        return false;
    }
    CHECK(walk(g) > 0);
    gguf_close(g);
    return true;
}

static void check_refused(const struct gguf_writer *w, const char *expected)
{
    char path[256];
    struct gguf *g = NULL;
    struct err e = { "" };
    gw_save(w, gw_path(path, "refused.gguf"));
    CHECK(gguf_open(&g, path, &e) == -1);
    if (!strstr(e.text, expected) || !one_clear_line(&e))
        printf("# want \"%s\", got \"%s\"\n", expected, e.text);
    CHECK(strstr(e.text, expected) && one_clear_line(&e));
    CHECK(!strncmp(e.text, path, strlen(path))); /* says which file */
    gguf_close(g);
}

/* ---- a small right file ------------------------------------------------- */

static const float three[32] = { 1, 2, 3 };

static void write_small(struct gguf_writer *w)
{
    static const char *const words[] = { "one", "", "three \xff" };
    static const int32_t numbers[] = { -1, 2, 3 };
    gw_begin(w);
    gw_str(w, "general.architecture", "test");
    gw_u32(w, "u32", 4000000000u);
    gw_scalar(w, "u8", GGUF_U8, 200);
    gw_scalar(w, "i8", GGUF_I8, (uint8_t)-5);
    gw_scalar(w, "u16", GGUF_U16, 60000);
    gw_scalar(w, "i16", GGUF_I16, 300);
    gw_scalar(w, "i32", GGUF_I32, 70000);
    gw_scalar(w, "u64", GGUF_U64, 1ull << 40);
    gw_scalar(w, "u64.small", GGUF_U64, 9);
    gw_scalar(w, "u64.max", GGUF_U64, UINT64_MAX);
    gw_scalar(w, "i64", GGUF_I64, 12);
    gw_scalar(w, "f64", GGUF_F64, 0x3ff8000000000000);
    gw_f32(w, "f32", 0.25f);
    gw_bool(w, "yes", true);
    gw_bool(w, "no", false);
    gw_str(w, "text", "some text");
    gw_str(w, "text.empty", "");
    gw_strs(w, "words", words, 3);
    gw_strs(w, "words.none", words, 0);
    gw_i32s(w, "numbers", numbers, 3);
    gw_array(w, "flags", GGUF_BOOL, 2);
    gw_number(w, 0x0001, 2);
    gw_array(w, "floats", GGUF_F32, 1);
    gw_number(w, 0xc0000000, 4);
    gw_tensor(w, "first", QUANT_F32, 32, 1, three);
    gw_tensor(w, "second", QUANT_Q8_0, 64, 3, NULL);
    gw_tensor(w, "third", QUANT_F16, 5, 1, NULL);
    gw_finish(w);
}

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
    CHECK(gguf_n_tensors(g) == 3 && gguf_n_keys(g) == 22);
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

static void check_path_refused(const char *path, const char *expected)
{
    struct gguf *g;
    struct err e = { "" };
    CHECK(gguf_open(&g, path, &e) == -1 && g == NULL);
    if (!strstr(e.text, expected))
        printf("# want \"%s\", got \"%s\"\n", expected, e.text);
    CHECK(strstr(e.text, expected) && strstr(e.text, path));
}

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
    gw_path(path, "cut.gguf");
    uint64_t needed = w.head.len + 128 + 224 + 10; /* padding may be missing */
    for (uint64_t n = 0; n <= gw_file_bytes(&w) + 5; n++) {
        gw_save_cut(&w, path, n);
        CHECK(opens(path) == (n >= needed));
        if (test_failures)
            break;
    }
    gw_release(&w);
}

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char chunk[1 << 16];
    size_t n;
    REQUIRE(in && out);
    while ((n = fread(chunk, 1, sizeof chunk, in)) > 0)
        REQUIRE(fwrite(chunk, 1, n, out) == n);
    fclose(in);
    fclose(out);
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

/* ---- wrong numbers ------------------------------------------------------ */

/* Each count, length, type and offset of a file, one after the other, gets
 * each of these values. */
static void test_every_field(void)
{
    static const uint64_t values[] = {
        0, 1, 2, 3, 5, 9, 12, 13, 31, 42, 255, 1ull << 16, 1ull << 24, 1ull << 30,
        1ull << 31, UINT32_MAX, 1ull << 32, 1ull << 61, 1ull << 62, INT64_MAX,
        1ull << 63, UINT64_MAX - 31, UINT64_MAX - 7, UINT64_MAX,
    };
    char path[256];
    struct gguf_writer w;
    size_t refused = 0, tried = 0;
    limit_memory();
    write_small(&w);
    gw_path(path, "field.gguf");
    for (size_t m = 0; m < w.n_marks; m++) {
        char old[8];
        memcpy(old, w.head.v + w.marks[m].at, w.marks[m].bytes);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            gw_patch(&w, w.marks[m].at, values[i], w.marks[m].bytes);
            bool changed = memcmp(old, w.head.v + w.marks[m].at, w.marks[m].bytes) != 0;
            gw_save(&w, path);
            bool opened = opens(path);
            CHECK(opened || changed);
            refused += !opened;
            tried++;
        }
        memcpy(w.head.v + w.marks[m].at, old, w.marks[m].bytes);
    }
    CHECK(w.n_marks > 60 && refused > tried * 8 / 10);
    gw_release(&w);
}

static void test_bit_flips(void)
{
    char path[256];
    struct gguf_writer w;
    uint64_t state = 20240229;
    size_t opened = 0;
    limit_memory();
    write_small(&w);
    gw_path(path, "flip.gguf");
    char *good = mem_strndup(w.head.v, w.head.len);
    memcpy(good, w.head.v, w.head.len);
    for (int i = 0; i < 6000; i++) {
        memcpy(w.head.v, good, w.head.len);
        for (uint64_t k = 1 + gw_random(&state) % 4; k; k--)
            w.head.v[gw_random(&state) % w.head.len] ^=
                (char)(1 << gw_random(&state) % 8);
        gw_save(&w, path);
        opened += opens(path);
    }
    CHECK(opened > 100 && opened < 5900); /* both paths were taken */
    free(good);
    gw_release(&w);
}

static void test_noise(void)
{
    char path[256], noise[512];
    uint64_t state = 99;
    limit_memory();
    gw_path(path, "noise.gguf");
    for (int i = 0; i < 1000; i++) {
        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = (char)(gw_random(&state) % (i & 1 ? 256 : 4));
        memcpy(noise, "GGUF\3\0\0\0", 8);
        FILE *f = fopen(path, "wb");
        REQUIRE(f && fwrite(noise, 1, sizeof noise, f) == sizeof noise);
        fclose(f);
        CHECK(!opens(path));
    }
}

/* ---- wrong content, each with its reason --------------------------------- */

static void test_bad_keys(void)
{
    static const char *const text[] = { "x" };
    struct gguf_writer w;
    gw_begin(&w);
    gw_u32(&w, "twice", 1);
    gw_u32(&w, "other", 1);
    gw_str(&w, "twice", "1");
    gw_finish(&w);
    check_refused(&w, "the key twice twice");
    gw_release(&w);

    gw_begin(&w);
    gw_u32(&w, "", 1);
    gw_finish(&w);
    check_refused(&w, "has 0 bytes");
    gw_release(&w);

    gw_begin(&w);
    char *key = mem_alloc(70000);
    memset(key, 'k', 65535);
    key[65535] = 0;
    gw_u32(&w, key, 1);
    gw_finish(&w);
    char path[256];
    gw_save(&w, gw_path(path, "long.gguf"));
    CHECK(opens(path));
    gw_release(&w);
    gw_begin(&w);
    strcat(key, "k");
    gw_u32(&w, key, 1);
    gw_finish(&w);
    check_refused(&w, "has 65536 bytes");
    gw_release(&w);
    free(key);

    gw_begin(&w);
    gw_strs(&w, "x\n\x1b[31m\xff", text, 1);
    gw_scalar(&w, "bool", GGUF_BOOL, 2);
    gw_finish(&w);
    check_refused(&w, "key bool: a truth value is 2");
    gw_patch(&w, w.marks[4].at, 99, 4);
    check_refused(&w, "key x??[31m?: the value has type 99");
    gw_release(&w);

    gw_begin(&w);
    gw_array(&w, "flags", GGUF_BOOL, 3);
    gw_number(&w, 0x070001, 3);
    gw_finish(&w);
    check_refused(&w, "key flags: a truth value is 7");
    gw_release(&w);

    gw_begin(&w);
    gw_array(&w, "nested", GGUF_ARRAY, 1);
    gw_number(&w, GGUF_U8, 4);
    gw_number(&w, 0, 8);
    gw_finish(&w);
    check_refused(&w, "key nested: an array of elements of type 9");
    gw_release(&w);
}

static void test_alignment(void)
{
    static const struct { uint32_t v; bool good; } rows[] = {
        { 0, false }, { 1, false }, { 3, false }, { 4, false }, { 24, false },
        { 33, false }, { 0xffffffff, false }, { 8, true }, { 16, true }, { 64, true },
        { 4096, true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_writer w;
        char path[256];
        gw_begin(&w);
        gw_u32(&w, "general.alignment", rows[i].v);
        if (rows[i].good)
            w.alignment = rows[i].v;
        gw_tensor(&w, "a", QUANT_F32, 3, 1, three);
        gw_tensor(&w, "b", QUANT_F32, 3, 1, three);
        gw_finish(&w);
        gw_save(&w, gw_path(path, "aligned.gguf"));
        CHECK(opens(path) == rows[i].good);
        if (!rows[i].good)
            check_refused(&w, "general.alignment");
        gw_release(&w);
    }
}

static void try_info(const char *name, size_t name_bytes, uint32_t type, uint32_t n_dims,
                     const uint64_t *ne, uint64_t offset, const char *expected)
{
    struct gguf_writer w;
    gw_begin(&w);
    gw_tensor(&w, "good", QUANT_F32, 32, 1, NULL);
    w.data_bytes += 1 << 16;
    gw_bytes(&w, name, name_bytes);
    gw_field(&w, n_dims, 4);
    for (uint32_t d = 0; d < n_dims && d < 8; d++)
        gw_field(&w, ne[d], 8);
    gw_field(&w, type, 4);
    gw_field(&w, offset, 8);
    w.n_tensors++;
    gw_finish(&w);
    if (expected) {
        check_refused(&w, expected);
    } else {
        char path[256];
        gw_save(&w, gw_path(path, "info.gguf"));
        CHECK(opens(path));
    }
    gw_release(&w);
}

static void test_bad_tensors(void)
{
    static const char name[] = "0123456789012345678901234567890123456789"
                               "012345678901234567890123456789";
    const uint64_t small[] = { 64, 2, 1, 1, 1, 1, 1, 1 }, odd[] = { 33 };
    const uint64_t zero[] = { 64, 0 }, huge[] = { 1ull << 40, 1ull << 40 };
    const uint64_t wide[] = { 1ull << 62, 2 }, big[] = { 1ull << 50 };
    try_info("t", 1, 0, 2, small, 128, NULL);
    try_info(name, 63, 0, 2, small, 128, NULL);
    try_info(name, 64, 0, 2, small, 128, "tensor name at byte");
    try_info(name, 0, 0, 2, small, 128, "tensor name at byte");
    try_info("a\0b", 3, 0, 2, small, 128, "tensor name at byte");
    try_info("good", 4, 0, 2, small, 128, "two tensors of the name good");
    try_info("t", 1, 0, 0, small, 128, "has 0 dimensions");
    try_info("t", 1, 0, 5, small, 128, "has 5 dimensions");
    try_info("t", 1, 0, 2, zero, 128, "dimension of 0");
    try_info("t", 1, 0, 2, huge, 128, "product overflows");
    try_info("t", 1, 0, 2, wide, 128, "product overflows");
    try_info("t", 1, 0, 1, big, 128, "incomplete");
    try_info("t", 1, 27, 1, wide, 128, "no whole number"); /* bytes overflow */
    try_info("t", 1, 8, 1, odd, 128, "rows of 33 elements");
    try_info("t", 1, 0, 2, small, 130, "no multiple of 32");
    try_info("t", 1, 0, 2, small, 1 << 20, "incomplete");
    try_info("t", 1, 0, 2, small, UINT64_MAX - 31, "incomplete");
    try_info("t", 1, 0, 2, small, 96, "overlap");
    try_info("t", 1, 0, 2, small, 0, "overlap");
    try_info("x\x1by\n", 4, 77, 2, small, 128, "tensor x?y? is of type 77");
    static const uint32_t removed[] = { 4, 5, 31, 32, 33, 36, 37, 38, 43, 0xffffffff };
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        try_info("t", 1, removed[i], 2, small, 128, "does not know");
}

/* A sparse file may be far larger than what its header can justify. */
static void test_sparse_giant(void)
{
    static const char *const word[] = { "x" };
    char path[256];
    struct gguf_writer w;
    uint64_t giant = 1ull << 40;
    gw_path(path, "giant.gguf");
    gw_begin(&w);
    gw_strs(&w, "words", word, 1);
    gw_finish(&w);
    gw_patch(&w, 16, UINT64_MAX, 8);
    gw_save_cut(&w, path, giant);
    CHECK(!opens(path));
    gw_patch(&w, 16, 1, 8);
    gw_patch(&w, w.marks[6].at, 1 << 25, 8);
    gw_save_cut(&w, path, giant);
    CHECK(!opens(path));
    gw_patch(&w, 8, 1ull << 32, 8);
    gw_patch(&w, w.marks[6].at, 1, 8);
    gw_save_cut(&w, path, giant);
    CHECK(!opens(path));
    gw_release(&w);
}

/* ---- type 42 ------------------------------------------------------------ */

/* Three tensors of id 42 laid out as either format, something behind them. */
static void write_q2(struct gguf_writer *w, enum quant layout, bool other_last)
{
    const uint64_t ne[2] = { 512, 64 };
    char name[] = "q0";
    gw_begin(w);
    for (; name[1] < '3'; name[1]++) {
        gw_info(w, name, 42, ne, 2, w->data_bytes);
        w->data_bytes += gw_round(quant_bytes(layout, 512 * 64), 32);
    }
    if (other_last)
        gw_tensor(w, "norm", QUANT_F32, 512, 1, NULL);
    gw_finish(w);
}

static void test_two_layouts_of_42(void)
{
    char path[256];
    gw_path(path, "q2.gguf");
    for (int i = 0; i < 4; i++) {
        enum quant layout = i & 1 ? QUANT_PQ2_0 : QUANT_Q2_0;
        struct gguf_writer w;
        struct gguf *g;
        struct err e;
        write_q2(&w, layout, i >> 1);
        gw_save(&w, path);
        REQUIRE(gguf_open(&g, path, &e) == 0);
        for (size_t k = 0; k < 3; k++) {
            CHECK(gguf_tensor(g, k)->type == layout);
            CHECK(gguf_tensor(g, k)->bytes == quant_bytes(layout, 512 * 64));
        }
        gguf_close(g);
        gw_release(&w);
    }
}

/* Cut by less than the difference, the last tensor would fit the smaller
 * layout: that must not make noise of a damaged file. */
static void test_layouts_of_42_cut(void)
{
    char path[256];
    gw_path(path, "q2.gguf");
    for (int i = 0; i < 2; i++) {
        struct gguf_writer w;
        write_q2(&w, i ? QUANT_PQ2_0 : QUANT_Q2_0, false);
        uint64_t cuts[] = { 1, 100, 500, 512, 513, 1000, 5000, 9000, 20000 };
        for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
            gw_save_cut(&w, path, gw_file_bytes(&w) - cuts[k]);
            CHECK(!opens(path));
        }
        gw_save_cut(&w, path, gw_file_bytes(&w) + 4000); /* what follows is ignored */
        struct gguf *g;
        struct err e;
        REQUIRE(gguf_open(&g, path, &e) == 0);
        CHECK(gguf_tensor(g, 2)->type == (i ? QUANT_PQ2_0 : QUANT_Q2_0));
        gguf_close(g);
        gw_release(&w);
    }
}

/* ---- split models ------------------------------------------------------- */

struct split {
    uint32_t no, count;
    int32_t total;      /* < 0: no key */
    const char *tensor;
};

static void write_part(const struct split *s, const char *name)
{
    struct gguf_writer w;
    char path[256];
    gw_begin(&w);
    if (s->no == 0)
        gw_str(&w, "general.architecture", "test");
    gw_scalar(&w, "split.no", GGUF_U16, s->no);
    gw_scalar(&w, "split.count", GGUF_U16, s->count);
    if (s->total >= 0)
        gw_scalar(&w, "split.tensors.count", GGUF_I32, (uint32_t)s->total);
    static float data[3][32];
    data[s->no % 3][0] = (float)s->no + 1;
    gw_tensor(&w, s->tensor, QUANT_F32, 32, 1, data[s->no % 3]);
    gw_finish(&w);
    gw_save(&w, gw_path(path, name));
    gw_release(&w);
}

#define PART1 "m-00001-of-00003.gguf"
#define PART2 "m-00002-of-00003.gguf"
#define PART3 "m-00003-of-00003.gguf"

static void write_split(void)
{
    write_part(&(struct split){ 0, 3, 3, "a" }, PART1);
    write_part(&(struct split){ 1, 3, 3, "b" }, PART2);
    write_part(&(struct split){ 2, 3, 3, "c" }, PART3);
}

static void check_split_refused(const char *name, const char *expected)
{
    char path[256];
    struct gguf *g;
    struct err e = { "" };
    CHECK(gguf_open(&g, gw_path(path, name), &e) == -1);
    if (!strstr(e.text, expected))
        printf("# want \"%s\", got \"%s\"\n", expected, e.text);
    CHECK(strstr(e.text, expected) && one_clear_line(&e));
}

static void test_split(void)
{
    char path[256];
    struct gguf *g;
    struct err e;
    write_split();
    REQUIRE(gguf_open(&g, gw_path(path, PART1), &e) == 0);
    REQUIRE(gguf_n_tensors(g) == 3);
    for (uint32_t i = 0; i < 3; i++) {
        const char name[] = { (char)('a' + i), 0 };
        const struct tensor *t = gguf_tensor_find(g, name);
        REQUIRE(t);
        float f;
        memcpy(&f, t->data, sizeof f);
        CHECK(t->part == i && f == (float)i + 1);
    }
    struct stat st;
    REQUIRE(stat(path, &st) == 0);
    CHECK(gguf_file_bytes(g) > (uint64_t)st.st_size);
    CHECK(walk(g) > 0);
    gguf_close(g);
}

static void test_split_wrong(void)
{
    char path[256], to[256];
    write_split();
    check_split_refused(PART2, "open the first part, whose name ends in "
                               "-00001-of-00003.gguf");
    unlink(gw_path(path, PART3));
    check_split_refused(PART1, "part 3 of 3");
    check_split_refused(PART1, "No such file");
    write_part(&(struct split){ 1, 3, 3, "c" }, PART3);
    check_split_refused(PART1, "is not part 3 of 3");
    write_part(&(struct split){ 2, 4, 3, "c" }, PART3);
    check_split_refused(PART1, "is not part 3 of 3");
    write_part(&(struct split){ 2, 3, 3, "a" }, PART3);
    check_split_refused(PART1, "two tensors of the name a");
    write_part(&(struct split){ 0, 3, 4, "a" }, PART1);
    write_part(&(struct split){ 2, 3, 3, "c" }, PART3);
    check_split_refused(PART1, "hold 3 tensors together, not 4");
    write_part(&(struct split){ 0, 3, -1, "a" }, PART1);
    CHECK(opens(gw_path(path, PART1)));
    REQUIRE(rename(path, gw_path(to, "renamed.gguf")) == 0);
    check_split_refused("renamed.gguf", "its name must end in -00001-of-00003.gguf");
    write_part(&(struct split){ 0, 60000, 3, "a" }, PART1);
    check_split_refused(PART1, "60000 parts");
    write_part(&(struct split){ 0, 2, 3, "a" }, PART1);
    check_split_refused(PART1, "its name must end in -00001-of-00002.gguf");
    write_part(&(struct split){ 0, 1, 1, "a" }, "whole.gguf");
    CHECK(opens(gw_path(path, "whole.gguf")));
    copy_file(MINI, gw_path(path, PART2));
    write_part(&(struct split){ 0, 3, 3, "a" }, PART1);
    check_split_refused(PART1, "is not part 2 of 3");
}

TEST_MAIN(T(test_integers), T(test_other_scalars), T(test_arrays), T(test_tensors),
          T(test_shipped_model), T(test_other_files), T(test_versions),
          T(test_cut_everywhere), T(test_cut_model), T(test_every_field),
          T(test_bit_flips), T(test_noise), T(test_bad_keys), T(test_alignment),
          T(test_bad_tensors), T(test_sparse_giant), T(test_two_layouts_of_42),
          T(test_layouts_of_42_cut), T(test_split), T(test_split_wrong))
