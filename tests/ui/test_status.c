/* test_status.c - the status line at every width. */
#include "ui/status.h"

#include "base/utf8.h"
#include "tests/test.h"

static const struct ui_status writing = {
    .phase = PHASE_DECODE,
    .model = "Qwen3.5 4B",
    .device = "H200",
    .generated = 35,
    .ctx_used = 1204,
    .ctx_tokens = 4096,
    .ttft_ms = 340,
    .prefill_tps = 4812,
    .decode_tps = 35.24,
    .snapshot_bytes = 120 << 20,
};

/* left, blanks up to the width, right */
static void check(const struct ui_status *s, int width, const char *left,
                  const char *right)
{
    struct buf b = BUF_INIT, want = BUF_INIT;
    status_format(&b, s, width);
    size_t used = utf8_width(left, strlen(left)) + utf8_width(right, strlen(right));
    buf_printf(&want, "%s%*s%s", left, (int)((size_t)width - used), "", right);
    CHECK_STR(buf_cstr(&b), buf_cstr(&want));
    buf_release(&b);
    buf_release(&want);
}

static void test_wide_to_narrow(void)
{
    check(&writing, 115, "Qwen3.5 4B  H200",
          "writing 35  1,204/4,096 (29%)  first 340 ms  35.2 tok/s  read 4812 tok/s  "
          "snapshots 126 MB");
    check(&writing, 80, "Qwen3.5 4B",
          "writing 35  1,204/4,096 (29%)  first 340 ms  35.2 tok/s");
    check(&writing, 60, "Qwen3.5 4B", "writing 35  1,204/4,096 (29%)  35.2 tok/s");
    check(&writing, 45, "", "writing 35  1,204/4,096 (29%)  35.2 tok/s");
    check(&writing, 25, "", "writing 35  35.2 tok/s");
    check(&writing, 12, "", "writing 35");
    check(&writing, 5, "", "writi");
    check(&writing, 0, "", "");
}

static void test_phases(void)
{
    check(&(struct ui_status){ .phase = PHASE_IDLE }, 8, "", "ready");
    check(
        &(struct ui_status){ .phase = PHASE_LOADING, .load_done = 45, .load_total = 100 },
        12, "", "loading 45%");
    check(&(struct ui_status){ .phase = PHASE_LOADING }, 8, "", "loading");
    check(&(struct ui_status){ .phase = PHASE_PREFILL,
                               .prefill_done = 120,
                               .prefill_total = 480,
                               .reused = 10240 },
          32, "", "reading 120/480, 10,240 reused");
    check(
        &(struct ui_status){ .phase = PHASE_IDLE, .ctx_used = 3500, .ctx_tokens = 4096 },
        30, "", "ready  3,500/4,096 (85%)!");
    check(&(struct ui_status){ .phase = PHASE_IDLE, .ttft_ms = 3000 }, 20, "",
          "ready  first 3.0 s");
}

#define FULL  "\xE2\x96\x88"
#define SHADE "\xE2\x96\x91"

/* What is known in advance has a bar, and long waits say how long. */
static void test_progress(void)
{
    struct ui_status s = { .phase = PHASE_PREFILL, .model = "m" };
    check(&s, 20, "m", "reading");
    s.prefill_done = 1000;
    s.prefill_total = 8000;
    s.reused = 512;
    s.prefill_tps = 500;
    check(&s, 80, "m",
          "reading 1,000/8,000, 512 reused  14 s left  read 500 tok/s  " FULL
          "\xE2\x96\x8C" SHADE SHADE SHADE SHADE SHADE SHADE SHADE SHADE SHADE SHADE);
    check(&s, 44, "", "reading 1,000/8,000, 512 reused  14 s left");
    s.prefill_done = 7600; /* soon */
    check(&s, 32, "", "reading 7,600/8,000, 512 reused");
    s.prefill_done = 8000;
    check(&s, 80, "m",
          "reading 8,000/8,000, 512 reused  read 500 tok/s  " FULL FULL FULL FULL FULL
              FULL FULL FULL FULL FULL FULL FULL);
    s.phase = PHASE_LOADING;
    s.prefill_tps = 0;
    s.load_total = UINT64_C(1) << 40;
    check(&s, 40, "m",
          "loading 0%  " SHADE SHADE SHADE SHADE SHADE SHADE SHADE SHADE SHADE SHADE SHADE
              SHADE);
}

static void test_memory_and_graph(void)
{
    static const float rates[] = { 50, 100, 10, 0, 90 };
    static const float many[20] = { [19] = 1 };
    struct ui_status s = { .phase = PHASE_IDLE,
                           .snapshot_bytes = 1500,
                           .device_bytes = UINT64_C(12345678901),
                           .rates = rates,
                           .n_rates = 5 };
    check(&s, 60, "",
          "ready  \xE2\x96\x84\xE2\x96\x88\xE2\x96\x81\xE2\x96\x81\xE2\x96\x87  "
          "snapshots 1.5 KB  device 12 GB");
    check(&s, 36, "",
          "ready  \xE2\x96\x84\xE2\x96\x88\xE2\x96\x81\xE2\x96\x81\xE2\x96\x87  "
          "snapshots 1.5 KB");
    s.rates = many;
    s.n_rates = 20;
    struct buf b = BUF_INIT;
    status_format(&b, &s, 19);
    CHECK(utf8_width(b.v, b.len) == 19 && !strncmp(b.v, "ready  ", 7)); /* 12 columns */
    buf_release(&b);
    s.n_rates = 19; /* nothing but zeros */
    check(&s, 6, "", "ready");
}

static void test_sizes_and_times(void)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } sizes[] = { { 0, "0 B" },          { 999, "999 B" },     { 1000, "1.0 KB" },
                  { 12345, "12 KB" },    { 999499, "999 KB" }, { 999500, "1.0 MB" },
                  { 1u << 30, "1.1 GB" } };
    static const struct {
        double ms;
        const char *want;
    } times[] = { { 0.4, "0 ms" },   { 340, "340 ms" }, { 1000, "1.0 s" },
                  { 9949, "9.9 s" }, { 12345, "12 s" }, { 180000, "3 min" } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct buf b = BUF_INIT;
        status_size(&b, sizes[i].bytes);
        CHECK_STR(b.v, sizes[i].want);
        buf_release(&b);
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct buf b = BUF_INIT;
        status_time(&b, times[i].ms);
        CHECK_STR(b.v, times[i].want);
        buf_release(&b);
    }
}

static void test_note(void)
{
    struct ui_status s = { .phase = PHASE_ERROR,
                           .model = "m",
                           .note = "device lost\n\x1b[2J" };
    check(&s, 40, "m  device lost \\x1b[2J", "error");
    s.note = "a long explanation of what went wrong, and where";
    check(&s, 30, "a long explanation of \xE2\x80\xA6", "error");
}

static void test_every_width(void)
{
    struct ui_status s = writing;
    s.model = "\xE4\xBD\xA0\xE5\xA5\xBD\xE4\xBD\xA0\xE5\xA5\xBD";
    s.note = "slow path: no integer dot product";
    for (int w = 0; w < 200; w++) {
        struct buf b = BUF_INIT;
        status_format(&b, &s, w);
        CHECK(utf8_width(buf_cstr(&b), b.len) <= (size_t)w);
        CHECK(utf8_valid(buf_cstr(&b), b.len));
        buf_release(&b);
    }
}

TEST_MAIN(T(test_wide_to_narrow), T(test_phases), T(test_progress),
          T(test_memory_and_graph), T(test_sizes_and_times), T(test_note),
          T(test_every_width))
