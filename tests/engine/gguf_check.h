/* gguf_check.h - what the tests of the container share: opening a file and
 * touching all that it offers, or checking how it is refused; and a small file
 * that has every kind of key. */
#ifndef TESTS_ENGINE_GGUF_CHECK_H
#define TESTS_ENGINE_GGUF_CHECK_H

#include "tests/engine/gguf_writer.h"
#include "tests/test.h"

#include <sys/resource.h>

#define MINI "assets/tern-mini.gguf"

/* From here on the process may take 24 MiB more than it has: a header of a few
 * hundred bytes must not make the reader ask for so much. */
static inline void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    REQUIRE(f && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    rlim_t bytes = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (24u << 20);
    struct rlimit limit = { bytes, bytes };
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
#endif
}

static inline bool one_clear_line(const struct err *e)
{
    size_t n = strlen(e->text);
    for (size_t i = 0; i < n; i++)
        if (e->text[i] < ' ' || e->text[i] > '~')
            return false;
    return n > 10;
}

/* Touches all that an opened file offers; a sanitiser or the MMU objects. */
static inline uint64_t walk(const struct gguf *g)
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
static inline bool opens(const char *path)
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

static inline void check_refused(const struct gguf_writer *w, const char *expected)
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

static inline void check_path_refused(const char *path, const char *expected)
{
    struct gguf *g;
    struct err e = { "" };
    CHECK(gguf_open(&g, path, &e) == -1 && g == NULL);
    if (!strstr(e.text, expected))
        printf("# want \"%s\", got \"%s\"\n", expected, e.text);
    CHECK(strstr(e.text, expected) && strstr(e.text, path));
}

static inline void copy_file(const char *from, const char *to)
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

/* ---- a small right file ------------------------------------------------- */

static const float three[32] = { 1, 2, 3 };

static inline void write_small(struct gguf_writer *w)
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
    gw_array(w, "u64s", GGUF_U64, 1);
    gw_number(w, UINT64_MAX, 8);
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

#endif
