/* test_gguf_cut.c - another program cuts a model file short, or writes to it,
 * while it is mapped: no crash, and the next one who asks is told. */
#define TEST_SECONDS 60
#include "base/buf.h"
#include "engine/engine.h"
#include "tests/engine/drivers.h"
#include "tests/engine/gguf_check.h"

#include <signal.h>
#include <sys/mman.h>

#define DENSE "tests/data/dense_qwen35.gguf"

static void copy_to(char path[256], const char *from)
{
    copy_file(from, gw_path(path, "cut.gguf"));
}

/* Metadata of some pages, then data of some more. */
static void write_large(struct gguf_writer *w)
{
    static const char *const words[2] = { "one", "two" };
    gw_begin(w);
    gw_array(w, "words", GGUF_STRING, 2000);
    for (int i = 0; i < 2000; i++)
        gw_text(w, words[i & 1]);
    gw_tensor(w, "small", QUANT_F32, 32, 1, three);
    gw_tensor(w, "large", QUANT_F32, 1 << 14, 1, NULL);
    gw_finish(w);
}

/* Everything is touched before and after; what is gone reads as zeros. */
static void test_container(void)
{
    static const off_t sizes[] = { 0, 1, 100, 4096, 5000, 8192, 20000, 69000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char path[256];
        struct gguf_writer w;
        struct gguf *g;
        struct err err = { "" };
        write_large(&w);
        gw_save(&w, gw_path(path, "cut.gguf"));
        REQUIRE(gguf_open(&g, path, &err) == 0);
        CHECK(gguf_check(g, true, &err) == 0);
        REQUIRE(truncate(path, sizes[i]) == 0);
        CHECK(gguf_check(g, false, &err) == -1 && strstr(err.text, "cut short"));
        const struct tensor *t = gguf_tensor_find(g, "large");
        CHECK(t && t->data[t->bytes - 1] == 0);
        CHECK(walk(g) > 0);
        CHECK(gguf_check(g, false, &err) == -1);
        gguf_close(g);
        CHECK(!opens(path));
        gw_release(&w);
    }
}

/* The file is whole again, but what was read from it was not. */
static void test_cut_and_back(void)
{
    char path[256];
    struct gguf_writer w;
    struct gguf *g;
    struct err err = { "" };
    write_large(&w);
    gw_save(&w, gw_path(path, "cut.gguf"));
    REQUIRE(gguf_open(&g, path, &err) == 0 && truncate(path, 4096) == 0);
    const struct tensor *t = gguf_tensor_find(g, "large");
    CHECK(t->data[t->bytes - 1] == 0);
    REQUIRE(truncate(path, (off_t)gw_file_bytes(&w)) == 0);
    CHECK(gguf_check(g, false, &err) == -1);
    gguf_close(g);
    gw_release(&w);
}

static void test_vocabulary_goes(void)
{
    char path[256];
    struct model *m;
    struct err err = { "" };
    struct tokens ids = { 0 };
    struct buf text = BUF_INIT;
    copy_to(path, MINI);
    REQUIRE(model_open(&m, path, &err) == 0 && model_check(m, &err) == 0);
    REQUIRE(truncate(path, 4096) == 0);
    CHECK(model_check(m, &err) == -1 && strstr(err.text, path));
    model_tokenize(m, "hello there", 11, 0, &ids);
    for (int32_t id = 0; id < 8192; id++)
        model_detokenize(m, id, 0, &text);
    CHECK(model_info(m)->n_vocab == 8192);
    tokens_release(&ids);
    buf_release(&text);
    model_close(m);
}

static void refuses_weights(void (*spoil)(const char *path), const char *reason)
{
    char path[256];
    struct model *m;
    struct engine *e = NULL;
    struct err err = { "" };
    copy_to(path, DENSE);
    REQUIRE(model_open(&m, path, &err) == 0);
    spoil(path);
    CHECK(engine_open(&e, m, NULL, &err) == -1 && !e);
    if (!strstr(err.text, reason))
        printf("# %s\n", err.text);
    CHECK(strstr(err.text, reason));
    model_close(m);
}

static void cut_weights(const char *path)
{
    REQUIRE(truncate(path, 300000) == 0);
}

static void write_weights(const char *path)
{
    int fd = open(path, O_WRONLY);
    REQUIRE(fd >= 0 && pwrite(fd, "?", 1, 400000) == 1);
    close(fd);
}

static void test_weights(void)
{
    struct engine *e;
    struct model *m;
    struct err err = { "" };
    REQUIRE(model_open(&m, DENSE, &err) == 0);
    if (engine_open(&e, m, NULL, &err) < 0)
        SKIP(err.text);
    engine_close(e);
    model_close(m);
    refuses_weights(cut_weights, "changed by another program");
    refuses_weights(write_weights, "changed by another program");
}

/* A mapping that is not guarded still ends the program. */
static void test_foreign_fault(void)
{
    char path[256];
    struct gguf *g;
    struct err err;
    int status;
    copy_to(path, DENSE);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGBUS, SIG_DFL);
        REQUIRE(gguf_open(&g, MINI, &err) == 0);
        int fd = open(path, O_RDWR);
        volatile char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
        REQUIRE(fd >= 0 && p != MAP_FAILED && ftruncate(fd, 0) == 0);
        _exit(p[5000] ? 3 : 4);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

/* Many at once, more than there are guards: all open, all close. */
static void test_many(void)
{
    enum { MANY = 300 };
    struct gguf *g[MANY];
    char path[256];
    struct gguf_writer w;
    struct err err = { "" };
    write_small(&w);
    gw_save(&w, gw_path(path, "many.gguf"));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++)
            REQUIRE(gguf_open(&g[i], path, &err) == 0);
        for (int i = 0; i < MANY; i++)
            gguf_close(g[i]);
    }
    gw_release(&w);
}

TEST_MAIN(T(test_container), T(test_cut_and_back), T(test_vocabulary_goes),
          T(test_weights), T(test_foreign_fault), T(test_many))
