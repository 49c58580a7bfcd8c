/* test_gguf_layout.c - the two tensor layouts that share a type id, and models
 * that are split over several files. */
#define TEST_SECONDS 60
#include "base/fault.h"
#include "tests/engine/gguf_check.h"

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
            check_path_refused(path, cuts[k] < 1000 ? "incomplete" : "bytes of data");
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

/* A tensor so small that both layouts round to the same says nothing. */
static void test_tiny_tensor_of_42(void)
{
    char path[256];
    struct gguf_writer w;
    struct gguf *g;
    struct err e;
    const uint64_t small[] = { 128 }, large[] = { 512, 64 };
    gw_begin(&w);
    gw_info(&w, "small", 42, small, 1, 0);
    gw_info(&w, "large", 42, large, 2, 64);
    gw_info(&w, "end", 42, small, 1, 64 + quant_bytes(QUANT_PQ2_0, 512 * 64));
    w.data_bytes = 64 + quant_bytes(QUANT_PQ2_0, 512 * 64) + 64;
    gw_finish(&w);
    gw_save(&w, gw_path(path, "q2.gguf"));
    gw_release(&w);
    REQUIRE(gguf_open(&g, path, &e) == 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(gguf_tensor(g, i)->type == QUANT_PQ2_0);
    gguf_close(g);
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

/* Whichever file cannot be opened, nothing is left behind. */
static void test_split_faults(void)
{
    char path[256];
    unsigned n = 1;
    write_split();
    gw_path(path, PART1);
    for (;; n++) {
        struct gguf *g;
        struct err e = { "" };
        fault_arm(FAULT_OPEN, n);
        int rc = gguf_open(&g, path, &e);
        if (!fault_disarm(FAULT_OPEN)) {
            CHECK(rc == 0);
            gguf_close(g);
            break;
        }
        CHECK(rc == -1 && g == NULL && strstr(e.text, "cannot be opened"));
    }
    CHECK(n == 4);
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
    check_split_refused(PART1, "60000 parts, more than 4096");
    write_part(&(struct split){ 0, 2, 3, "a" }, PART1);
    check_split_refused(PART1, "its name must end in -00001-of-00002.gguf");
    write_part(&(struct split){ 0, 1, 1, "a" }, "whole.gguf");
    CHECK(opens(gw_path(path, "whole.gguf")));
    copy_file(MINI, gw_path(path, PART2));
    write_part(&(struct split){ 0, 3, 3, "a" }, PART1);
    check_split_refused(PART1, "is not part 2 of 3");
}

TEST_MAIN(T(test_two_layouts_of_42), T(test_layouts_of_42_cut),
          T(test_tiny_tensor_of_42), T(test_split), T(test_split_faults),
          T(test_split_wrong))
