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
    check(&writing, 110, "Qwen3.5 4B  H200",
          "writing 35  1,204/4,096 (29%)  first 340 ms  35.2 tok/s  read 4812 tok/s  "
          "kept 120 MiB");
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

TEST_MAIN(T(test_wide_to_narrow), T(test_phases), T(test_note), T(test_every_width))
