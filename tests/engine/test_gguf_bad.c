/* test_gguf_bad.c - GGUF files with wrong numbers or wrong content: each must be
 * refused with one clear line and without harm. */
#define TEST_SECONDS 60
#include "tests/engine/gguf_check.h"

/* ---- wrong numbers ------------------------------------------------------ */

/* Each count, length, type and offset of a file, one after the other, gets
 * each of these values. */
static void test_every_field(void)
{
    static const uint64_t values[] = {
        0, 1, 2, 3, 5, 9, 12, 13, 31, 42, 255, 1ull << 16, 1ull << 18, 1ull << 24,
        1ull << 30, 1ull << 31, UINT32_MAX, 1ull << 32, 1ull << 61, 1ull << 62, INT64_MAX,
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

struct info {
    const char *name;
    size_t name_bytes;
    uint32_t type, n_dims;
    const uint64_t *ne;
    uint64_t offset;
};

/* A file with a good tensor and this one; expected NULL: it opens. */
static void try_info(const struct info *t, const char *expected)
{
    struct gguf_writer w;
    gw_begin(&w);
    gw_tensor(&w, "good", QUANT_F32, 32, 1, NULL);
    w.data_bytes += 1 << 16;
    gw_bytes(&w, t->name, t->name_bytes);
    gw_field(&w, t->n_dims, 4);
    for (uint32_t d = 0; d < t->n_dims; d++)
        gw_field(&w, t->ne[d], 8);
    gw_field(&w, t->type, 4);
    gw_field(&w, t->offset, 8);
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
    const struct {
        struct info t;
        const char *expected;
    } rows[] = {
        { { "t", 1, 0, 2, small, 128 }, NULL },
        { { name, 63, 0, 2, small, 128 }, NULL },
        { { name, 64, 0, 2, small, 128 }, "tensor name at byte" },
        { { name, 0, 0, 2, small, 128 }, "tensor name at byte" },
        { { "a\0b", 3, 0, 2, small, 128 }, "tensor name at byte" },
        { { "good", 4, 0, 2, small, 128 }, "two tensors of the name good" },
        { { "t", 1, 0, 0, small, 128 }, "has 0 dimensions" },
        { { "t", 1, 0, 5, small, 128 }, "has 5 dimensions" },
        { { "t", 1, 0, 2, zero, 128 }, "dimension of 0" },
        { { "t", 1, 0, 2, huge, 128 }, "product overflows" },
        { { "t", 1, 0, 2, wide, 128 }, "product overflows" },
        { { "t", 1, 0, 1, big, 128 }, "incomplete" },
        { { "t", 1, 27, 1, wide, 128 }, "more than can be addressed" },
        { { "t", 1, 8, 1, odd, 128 }, "rows of 33 elements" },
        { { "t", 1, 0, 2, small, 130 }, "no multiple of 32" },
        { { "t", 1, 0, 2, small, 1 << 20 }, "incomplete" },
        { { "t", 1, 0, 2, small, UINT64_MAX - 31 }, "incomplete" },
        { { "t", 1, 0, 2, small, 96 }, "overlap" },
        { { "t", 1, 0, 2, small, 0 }, "overlap" },
        { { "x\x1by\n", 4, 77, 2, small, 128 }, "tensor x?y? is of type 77" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_info(&rows[i].t, rows[i].expected);
    static const uint32_t removed[] = { 4, 5, 31, 32, 33, 36, 37, 38, 43, 0xffffffff };
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        try_info(&(struct info){ "t", 1, removed[i], 2, small, 128 }, "does not know");
}

/* Foreign text in an error line: all lengths about that of the place for it. */
static void test_text_fits(void)
{
    char text[3 * GGUF_TEXT_BYTES];
    struct {
        char dst[GGUF_TEXT_BYTES];
        char after[8];
    } place;
    memset(text, 'x', sizeof text);
    text[1] = '\x1b';
    for (size_t n = 0; n <= sizeof text; n++) {
        memset(&place, '#', sizeof place);
        gguf_text(place.dst, text, n);
        size_t len = strnlen(place.dst, sizeof place.dst);
        CHECK(len < GGUF_TEXT_BYTES && !memcmp(place.after, "########", 8));
        CHECK(n < GGUF_TEXT_BYTES ? len == n : !strcmp(place.dst + len - 3, "..."));
        CHECK(n < 2 || place.dst[1] == '?');
    }
}

/* A sparse file may be far larger than what its header can justify; then the
 * limits, not the end of the file, must stop the reader. */
static void test_sparse_giant(void)
{
    static const char *const word[] = { "x" };
    enum { N_TENSORS = 8, N_KEYS = 16 };
    char path[256];
    struct gguf_writer w;
    gw_path(path, "giant.gguf");
    gw_begin(&w);
    gw_strs(&w, "words", word, 1);
    gw_array(&w, "bytes", GGUF_U8, 0);
    gw_str(&w, "text", "");
    gw_finish(&w);
    const size_t n_words = w.marks[6].at, n_bytes = w.marks[11].at;
    const size_t text = w.marks[14].at;
    const struct { size_t at; uint64_t good, bad; const char *expected; } rows[] = {
        { N_TENSORS, 0, GGUF_MAX_TENSORS + 1, "claims 262145 tensors" },
        { N_KEYS, 3, GGUF_MAX_KEYS + 1, "claims 65537 metadata keys" },
        { N_KEYS, 3, UINT64_MAX, "metadata keys" },
        { n_words, 1, GGUF_MAX_STRINGS + 1, "more than 16777216 strings" },
        { n_bytes, 0, GGUF_MAX_ELEMENTS + 1, "claims 1073741825 elements" },
        { text, 0, (1ull << 30) + 1, "claims 1073741825 bytes" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gw_patch(&w, rows[i].at, rows[i].bad, 8);
        gw_save_cut(&w, path, 1ull << 34);
        check_path_refused(path, rows[i].expected);
        gw_patch(&w, rows[i].at, rows[i].good, 8);
    }
    gw_save_cut(&w, path, 1ull << 34);
    CHECK(opens(path));
    gw_release(&w);
}

TEST_MAIN(T(test_every_field), T(test_bit_flips), T(test_noise), T(test_bad_keys),
          T(test_alignment), T(test_bad_tensors), T(test_text_fits), T(test_sparse_giant))
