/* test_limits.c - what is given as a model but is none, numbers at the edge of
 * what a file may claim, and promises about running: no allocation between tokens,
 * the same result each time. */
#define TEST_SECONDS 120
#include "base/clock.h"
#include "base/fault.h"
#include "tests/engine/tiny_model.h"
#include "tests/engine/whole.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define DENSE "tests/data/dense_qwen35.gguf"

/* ---- names ------------------------------------------------------------------- */

/* Refused at once, with the reason. */
static void refused_path(const char *path, const char *reason)
{
    struct model *m = NULL;
    struct err err = { "" };
    uint64_t from = clock_ns();
    CHECK(model_open(&m, path, &err) == -1 && !m);
    CHECK(clock_ns() - from < 2000000000u);
    if (!strstr(err.text, reason))
        printf("# %s\n", err.text);
    CHECK(strstr(err.text, reason));
}

static void test_no_models(void)
{
    char path[256], other[256], longest[6000];
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    refused_path("", "No such file");
    refused_path(longest, "too long");
    refused_path("/", "is a directory");
    refused_path("/dev/null", "not a regular file");
    refused_path("/dev/zero", "not a regular file");
    REQUIRE(mkfifo(gw_path(path, "fifo"), 0600) == 0);
    refused_path(path, "not a regular file");
    REQUIRE(strlen(gw_path(path, "socket")) < sizeof at.sun_path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    refused_path(path, "cannot be opened");
    close(fd);
    REQUIRE(symlink("nowhere", gw_path(path, "dangling")) == 0);
    refused_path(path, "No such file");
    REQUIRE(symlink("loop", gw_path(path, "loop")) == 0);
    refused_path(path, "cannot be opened");
    REQUIRE(symlink(gw_path(other, "fifo"), gw_path(path, "to-fifo")) == 0);
    refused_path(path, "not a regular file");
    REQUIRE(mkdir(gw_path(path, "shut"), 0) == 0);
    if (geteuid() != 0) {
        gw_path(path, "shut/model.gguf");
        refused_path(path, "Permission denied");
    }
}

/* A link to a model is one, whatever it is called. */
static void test_strange_names(void)
{
    static const char *const names[] = { "line\nbreak.gguf", "tab\t.gguf", "\xff\xfe",
                                         "\x1b[31mred.gguf", "-m",         " ",
                                         "%s%n.gguf" };
    char path[256], real[4096];
    REQUIRE(realpath(DENSE, real));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model *m;
        struct err err = { "" };
        REQUIRE(symlink(real, gw_path(path, names[i])) == 0);
        OK(model_open(&m, path, &err), &err);
        CHECK_STR(model_info(m)->path, path);
        model_close(m);
        snprintf(path + strlen(path), 8, ".none");
        refused_path(path, "No such file");
    }
}

/* ---- numbers ----------------------------------------------------------------- */

static uint64_t resident_bytes(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss * 1024;
}

/* Each number of a model at the ends of what is let through, alone: an answer in
 * little time and memory, be it that it cannot run. */
static void test_edges(void)
{
    static const uint32_t values[] = { 0,       1,         2,         255,       256,
                                       1000,    1024,      1 << 14,   1 << 20,   1 << 22,
                                       1 << 24, (1 << 30), INT32_MAX, UINT32_MAX };
    struct model *m;
    struct err err;
    size_t opened = 0, tried = 0;
    uint64_t from = clock_ns(), before = resident_bytes();
    for (int moe = 0; moe < 2; moe++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                const struct tiny t = { .arch = moe ? "qwen35moe" : NULL,
                                        .set_key = numbers[k].key,
                                        .value = values[i] };
                struct model_memory memory;
                tried++;
                if (open_tiny(&m, &t, &err) < 0) {
                    CHECK(one_clear_line(err.text));
                    continue;
                }
                opened++;
                CHECK(!model_info(m)->refusal || one_clear_line(model_info(m)->refusal));
                model_memory(m, 0, &memory);
                model_memory(m, UINT32_MAX, &memory);
                model_close(m);
            }
    CHECK(opened > 30 && opened < tried);
    CHECK(clock_ns() - from < 60000000000u);
    CHECK(resident_bytes() - before < (uint64_t)64 << 20);
}

/* What a file may claim and no device has: refused with the numbers, before
 * anything is taken. */
static void test_more_than_there_is(void)
{
    static const struct tiny giants[] = {
        { .set_key = "context_length", .value = 1 << 30 },
    };
    struct err err = { "" };
    struct engine *e = NULL;
    struct session *s = NULL;
    struct model *m = need_tiny(&giants[0]);
    const struct engine_params p = { .ctx_tokens = 1 << 30 };
    CHECK(engine_open(&e, m, &p, &err) == -1 && !e);
    if (!strstr(err.text, "MiB"))
        printf("# %s\n", err.text);
    CHECK(strstr(err.text, "MiB of device memory are needed"));
    OK(engine_open(&e, m, NULL, &err), &err);
    CHECK(session_open(&s, e, &(struct session_params){ .ctx_tokens = 1 << 30 }, &err) ==
              -1 &&
          !s);
    CHECK(strstr(err.text, "MiB"));
    /* And the same engine still serves. */
    OK(session_open(&s, e, &(struct session_params){ .ctx_tokens = 64 }, &err), &err);
    session_close(s);
    engine_close(e);
    model_close(m);
}

/* ---- running ----------------------------------------------------------------- */

static void prompt_make(int32_t *ids, size_t n)
{
    uint32_t noise = 7;
    for (size_t i = 0; i < n; i++) {
        noise = noise * 1664525u + 1013904223u;
        ids[i] = (int32_t)(5 + (noise >> 10) % 500);
    }
}

/* Between one token and the next no device memory is taken. */
static void test_decoding_allocates_nothing(void)
{
    enum { N = 40 };
    int32_t prompt[N], id;
    struct whole w = whole_open(DENSE, MATH_FLOAT);
    struct session *s = whole_session(&w, &(struct session_params){ .ctx_tokens = 256 });
    struct engine_info before, after;
    struct err err = { "" };
    prompt_make(prompt, N);
    whole_greedy(s, prompt, N, 2, 1, &id);
    engine_info(w.engine, &before);
    fault_arm(FAULT_DEVICE_ALLOC, 1);
    for (int i = 0; i < 100; i++) {
        size_t n;
        int32_t ids[4];
        OK(session_decode(s, 1 + i % 4 / 3, &(struct sampler_params){ .seed = 1 }, ids,
                          &n, &err),
           &err);
        if (!n || model_is_end(w.model, ids[n - 1]))
            break;
    }
    CHECK(!fault_disarm(FAULT_DEVICE_ALLOC));
    engine_info(w.engine, &after);
    CHECK(before.device_bytes == after.device_bytes);
    session_close(s);
    whole_close(&w);
}

/* Ten times the same, with new sessions and a new engine: the same bits. */
static void test_ten_runs(void)
{
    enum { N = 50, NEW = 12 };
    int32_t prompt[N], want[NEW], got[NEW];
    const struct sampler_params p = { .temperature = 0.9f, .top_k = 40, .seed = 5 };
    float *first = NULL, *logits = NULL;
    prompt_make(prompt, N);
    for (int engine = 0; engine < 2; engine++) {
        struct whole w = whole_open(DENSE, MATH_AUTO);
        struct err err = { "" };
        logits = mem_regrow(logits, w.n_vocab, sizeof *logits);
        first = first ? first : mem_array(w.n_vocab, sizeof *first);
        for (int run = 0; run < 5; run++) {
            struct session *s =
                whole_session(&w, &(struct session_params){ .ctx_tokens = 128 });
            size_t n, made = 0;
            OK(session_sync(s, prompt, N, NULL, NULL, &err), &err);
            for (; made < NEW; made += n)
                OK(session_decode(s, 4, &p, got + made, &n, &err), &err);
            OK(session_logits(s, logits, &err), &err);
            if (!engine && !run) {
                memcpy(want, got, sizeof want);
                memcpy(first, logits, w.n_vocab * sizeof *first);
            }
            CHECK(!memcmp(want, got, sizeof want));
            CHECK(!memcmp(first, logits, w.n_vocab * sizeof *first));
            session_close(s);
        }
        whole_close(&w);
    }
    free(first);
    free(logits);
}

TEST_MAIN(T(test_no_models), T(test_strange_names), T(test_edges),
          T(test_more_than_there_is), T(test_decoding_allocates_nothing),
          T(test_ten_runs))
