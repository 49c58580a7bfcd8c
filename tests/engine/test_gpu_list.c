/* test_gpu_list.c - recorded lists: planned barriers, order of execution,
 * repeated submits, timestamps, and how recording and running can fail.
 *
 * The synchronization validation layer is on throughout, so that a missing
 * barrier is seen even where the device happens to run things in order. */
#include "tests/engine/harness.h"
#include "tests/engine/test_gpu_spirv.h"

#include "base/mem.h"

enum { WORDS = 4096, BYTES = WORDS * 4, GROUP = 64 };

struct rig {
    struct gpu *gpu;
    struct gpu_kernel affine, inplace;
    struct gpu_commands *list;
    struct gpu_buffer a, b;
    uint32_t data[WORDS]; /* what a held at first; b held zeros */
};

static void rig_open(struct rig *r)
{
    const uint32_t spec[2] = { GROUP, 0 };
    struct err err = { "" };
    for (uint32_t i = 0; i < WORDS; i++)
        r->data[i] = i * 2654435761u;
    r->gpu = harness_open();
    r->a = harness_buffer(r->gpu, r->data, BYTES);
    r->b = harness_buffer(r->gpu, NULL, BYTES);
    HARNESS_OK(gpu_kernel_open(&r->affine, r->gpu, &affine, spec, 2, &err), &err);
    HARNESS_OK(gpu_kernel_open(&r->inplace, r->gpu, &inplace, spec, 1, &err), &err);
    HARNESS_OK(gpu_commands_open(&r->list, r->gpu, &err), &err);
    HARNESS_OK(gpu_record_begin(r->list, &err), &err);
}

static void rig_close(struct rig *r)
{
    gpu_commands_close(r->list);
    gpu_kernel_close(&r->affine, r->gpu);
    gpu_kernel_close(&r->inplace, r->gpu);
    gpu_buffer_close(&r->a, r->gpu);
    gpu_buffer_close(&r->b, r->gpu);
    CHECK(gpu_allocated(r->gpu) == (uint64_t)32 << 20); /* the staging ring */
    harness_close(r->gpu);
}

/* Words [at, at + n) of a buffer. */
static struct gpu_span words(const struct gpu_buffer *b, uint64_t at, uint64_t n)
{
    return gpu_span_at(b, at * 4, n * 4);
}

/* to = from * mul + add over the words of both spans. */
static void add_affine(struct rig *r, struct gpu_commands *list, struct gpu_span to,
                       struct gpu_span from, uint32_t mul, uint32_t add)
{
    struct err err = { "" };
    const struct test_push push = { (uint32_t)(to.bytes / 4), mul, add };
    const struct gpu_dispatch d = {
        .kernel = &r->affine,
        .bind = { from, to },
        .push = &push,
        .groups = { 7, 1, 1 },
        .label = "affine step",
    };
    HARNESS_OK(gpu_record(list, &d, &err), &err);
}

static void add_inplace(struct rig *r, struct gpu_commands *list, struct gpu_span s,
                        uint32_t mul, uint32_t add)
{
    struct err err = { "" };
    const struct test_push push = { (uint32_t)(s.bytes / 4), mul, add };
    const struct gpu_dispatch d = {
        .kernel = &r->inplace,
        .bind = { s },
        .push = &push,
        .groups = { 7, 1, 1 },
    };
    HARNESS_OK(gpu_record(list, &d, &err), &err);
}

static void add_copy(struct gpu_commands *list, struct gpu_span to, struct gpu_span from)
{
    struct err err = { "" };
    HARNESS_OK(gpu_record_copy(list, to, from, &err), &err);
}

static void run_lists(struct rig *r, struct gpu_commands *const *lists, uint32_t n,
                      uint32_t repeat)
{
    struct err err = { "" };
    HARNESS_OK(gpu_submit(r->gpu, lists, n, repeat, &err), &err);
    HARNESS_OK(gpu_wait(r->gpu, 0, &err), &err);
}

static void end_list(struct gpu_commands *list)
{
    struct err err = { "" };
    HARNESS_OK(gpu_record_end(list, &err), &err);
}

static struct gpu_commands *new_list(struct rig *r)
{
    struct gpu_commands *list;
    struct err err = { "" };
    HARNESS_OK(gpu_commands_open(&list, r->gpu, &err), &err);
    HARNESS_OK(gpu_record_begin(list, &err), &err);
    return list;
}

/* ---- barriers ----------------------------------------------------------- */

static void test_dependent_chain(void)
{
    struct rig r;
    rig_open(&r);
    const struct gpu_buffer *at[2] = { &r.a, &r.b };
    for (uint32_t i = 0; i < 20; i++)
        add_affine(&r, r.list, words(at[(i + 1) & 1], 0, WORDS),
                   words(at[i & 1], 0, WORDS), 3, i);
    CHECK(gpu_recorded_steps(r.list) == 20);
    CHECK(gpu_recorded_dispatches(r.list) == 20);
    end_list(r.list);
    run_lists(&r, &r.list, 1, 1);
    uint32_t got[WORDS];
    harness_read(r.gpu, &r.a, got, BYTES);
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t want = r.data[i];
        for (uint32_t k = 0; k < 20; k++)
            want = want * 3 + k;
        CHECK(got[i] == want);
    }
    rig_close(&r);
}

static void test_independent_dispatches_share_a_step(void)
{
    struct rig r;
    rig_open(&r);
    CHECK(gpu_recorded_steps(r.list) == 0);
    /* Shared reads, and writes that only touch at their borders. */
    for (uint32_t i = 0; i < 16; i++)
        add_affine(&r, r.list, words(&r.b, i * 256, 256), words(&r.a, 0, 256), 1, i);
    CHECK(gpu_recorded_steps(r.list) == 1);
    add_inplace(&r, r.list, words(&r.a, 256, 256), 5, 5);
    CHECK(gpu_recorded_steps(r.list) == 1);
    /* The last word of what is read, the first of what is written. */
    add_inplace(&r, r.list, words(&r.b, 15 * 256, 256), 2, 0);
    CHECK(gpu_recorded_steps(r.list) == 2);
    add_inplace(&r, r.list, words(&r.b, 14 * 256, 256), 2, 0);
    CHECK(gpu_recorded_steps(r.list) == 2);
    CHECK(gpu_recorded_dispatches(r.list) == 19);
    end_list(r.list);
    run_lists(&r, &r.list, 1, 1);
    uint32_t got[WORDS];
    harness_read(r.gpu, &r.b, got, BYTES);
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK(got[i] == (r.data[i % 256] + i / 256) * (i / 256 >= 14 ? 2 : 1));
    rig_close(&r);
}

/* Entries that stand beside each other bind the same range and write elements
 * of their own; what came before the first of them still separates. */
static void test_entries_beside_each_other(void)
{
    struct rig r;
    struct err err = { "" };
    rig_open(&r);
    add_inplace(&r, r.list, words(&r.b, 512, 64), 1, 1);
    for (uint32_t i = 0; i < 3; i++) {
        const struct test_push push = { 64, 1, i };
        const struct gpu_dispatch d = {
            .kernel = &r.affine,
            .bind = { words(&r.a, 0, 64), words(&r.b, i * 64, WORDS - i * 64) },
            .push = &push,
            .groups = { 1, 1, 1 },
            .beside = i > 0,
        };
        HARNESS_OK(gpu_record(r.list, &d, &err), &err);
        CHECK(gpu_recorded_steps(r.list) == 2);
    }
    add_inplace(&r, r.list, words(&r.b, 0, 64), 2, 0);
    CHECK(gpu_recorded_steps(r.list) == 3);
    end_list(r.list);
    run_lists(&r, &r.list, 1, 1);
    uint32_t got[WORDS];
    harness_read(r.gpu, &r.b, got, BYTES);
    for (uint32_t i = 0; i < 192; i++)
        CHECK(got[i] == (r.data[i % 64] + i / 64) * (i < 64 ? 2 : 1));
    CHECK(got[512] == 1);
    rig_close(&r);
}

static void test_each_kind_of_hazard_separates(void)
{
    struct rig r;
    rig_open(&r);
    const struct gpu_span a0 = words(&r.a, 0, 1024), a1 = words(&r.a, 1024, 1024);
    const struct gpu_span b0 = words(&r.b, 0, 1024), b1 = words(&r.b, 1024, 1024);
    add_affine(&r, r.list, b0, a0, 1, 1); /* reads a0, writes b0 */
    add_affine(&r, r.list, a0, a1, 1, 2); /* write after read of a0 */
    CHECK(gpu_recorded_steps(r.list) == 2);
    add_affine(&r, r.list, a0, b0, 1, 3); /* write after write of a0 */
    CHECK(gpu_recorded_steps(r.list) == 3);
    add_affine(&r, r.list, b1, a0, 1, 4); /* read after write of a0 */
    CHECK(gpu_recorded_steps(r.list) == 4);
    add_affine(&r, r.list, words(&r.b, 2048, 1024), a0, 1, 5); /* read after read */
    CHECK(gpu_recorded_steps(r.list) == 4);
    add_copy(r.list, words(&r.b, 3072, 1024), b1); /* a copy reads what was written */
    CHECK(gpu_recorded_steps(r.list) == 5);
    /* Inside what the copy writes. */
    add_inplace(&r, r.list, words(&r.b, 3072 + 64, 64), 1, 9);
    CHECK(gpu_recorded_steps(r.list) == 6);
    add_copy(r.list, words(&r.a, 2048, 64), words(&r.b, 3072 + 64, 64));
    CHECK(gpu_recorded_steps(r.list) == 7);
    CHECK(gpu_recorded_dispatches(r.list) == 6);
    end_list(r.list);
    run_lists(&r, &r.list, 1, 1);
    uint32_t a[WORDS], b[WORDS];
    harness_read(r.gpu, &r.a, a, BYTES);
    harness_read(r.gpu, &r.b, b, BYTES);
    for (uint32_t i = 0; i < 1024; i++) {
        CHECK(a[i] == r.data[i] + 4 && a[1024 + i] == r.data[1024 + i]);
        CHECK(b[i] == r.data[i] + 1 && b[1024 + i] == r.data[i] + 8);
        CHECK(b[2048 + i] == r.data[i] + 9);
        CHECK(b[3072 + i] == r.data[i] + 8 + (i / 64 == 1 ? 9 : 0));
    }
    for (uint32_t i = 0; i < 64; i++)
        CHECK(a[2048 + i] == r.data[64 + i] + 17);
    rig_close(&r);
}

/* A kernel that hides what it writes gets no barriers, and the validation
 * layer must notice: else its silence elsewhere means nothing. */
static void test_validation_sees_a_missing_barrier(void)
{
    struct rig r;
    rig_open(&r);
    struct gpu_module liar = affine;
    struct gpu_kernel k;
    struct err err = { "" };
    const uint32_t spec[2] = { GROUP, 0 };
    const struct test_push push = { WORDS, 1, 1 };
    const char *first = "";
    liar.writes = 0;
    HARNESS_OK(gpu_kernel_open(&k, r.gpu, &liar, spec, 2, &err), &err);
    struct gpu_dispatch d = { .kernel = &k, .push = &push, .groups = { 1, 1, 1 } };
    d.bind[0] = gpu_span_all(&r.a);
    d.bind[1] = gpu_span_all(&r.b);
    HARNESS_OK(gpu_record(r.list, &d, &err), &err);
    CHECK(gpu_validation_errors(r.gpu, &first) == 0);
    CHECK_STR(first, "");
    d.bind[0] = gpu_span_all(&r.b);
    d.bind[1] = gpu_span_all(&r.a);
    HARNESS_OK(gpu_record(r.list, &d, &err), &err);
    CHECK(gpu_recorded_steps(r.list) == 1);
    CHECK(gpu_validation_errors(r.gpu, &first) > 0);
    CHECK(strstr(first, "SYNC-HAZARD-READ-AFTER-WRITE"));
    gpu_kernel_close(&k, r.gpu);
    gpu_commands_close(r.list);
    gpu_kernel_close(&r.affine, r.gpu);
    gpu_kernel_close(&r.inplace, r.gpu);
    gpu_buffer_close(&r.a, r.gpu);
    gpu_buffer_close(&r.b, r.gpu);
    gpu_close(r.gpu);
}

/* ---- running ------------------------------------------------------------ */

static void test_repeats_and_several_lists(void)
{
    struct rig r;
    rig_open(&r);
    struct gpu_commands *second = new_list(&r);
    add_inplace(&r, r.list, words(&r.a, 0, WORDS), 3, 1);
    add_inplace(&r, second, words(&r.a, 0, WORDS), 1, 10);
    add_affine(&r, second, words(&r.b, 0, WORDS), words(&r.a, 0, WORDS), 2, 0);
    end_list(r.list);
    end_list(second);
    struct gpu_commands *const lists[2] = { r.list, second };
    run_lists(&r, lists, 2, 1);
    run_lists(&r, lists, 2, 6);
    run_lists(&r, &r.list, 1, 64);
    run_lists(&r, &second, 1, 2);
    uint32_t a[WORDS], b[WORDS];
    harness_read(r.gpu, &r.a, a, BYTES);
    harness_read(r.gpu, &r.b, b, BYTES);
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t want = r.data[i];
        for (int k = 0; k < 7; k++)
            want = want * 3 + 1 + 10;
        for (int k = 0; k < 64; k++)
            want = want * 3 + 1;
        want += 20;
        CHECK(a[i] == want && b[i] == want * 2);
    }
    gpu_commands_close(second);
    rig_close(&r);
}

/* More dispatches than one descriptor pool holds, recorded three times. */
static void test_long_lists_recorded_anew(void)
{
    struct rig r;
    rig_open(&r);
    for (uint32_t round = 1; round <= 3; round++) {
        struct err err = { "" };
        HARNESS_OK(gpu_record_begin(r.list, &err), &err);
        CHECK(gpu_recorded_steps(r.list) == 0 && gpu_recorded_dispatches(r.list) == 0);
        for (uint32_t i = 0; i < 150 * round; i++)
            add_inplace(&r, r.list, words(&r.a, i % 16 * 64, 64), 1, round);
        CHECK(gpu_recorded_dispatches(r.list) == 150 * round);
        CHECK(gpu_recorded_steps(r.list) == (150 * round + 15) / 16);
        end_list(r.list);
        run_lists(&r, &r.list, 1, 1);
    }
    uint32_t got[WORDS];
    harness_read(r.gpu, &r.a, got, BYTES);
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t want = r.data[i], at = i / 64;
        for (uint32_t round = 1; round <= 3 && at < 16; round++)
            want += round * ((150 * round - at + 15) / 16);
        CHECK(got[i] == want);
    }
    rig_close(&r);
}

/* What a kernel wrote is in mapped memory after the wait. */
static void test_mapped_buffers(void)
{
    struct rig r;
    rig_open(&r);
    struct gpu_buffer in, out;
    struct err err = { "" };
    HARNESS_OK(gpu_buffer_open(&in, r.gpu, BYTES, GPU_SHARED, "in", &err), &err);
    HARNESS_OK(gpu_buffer_open(&out, r.gpu, BYTES, GPU_READBACK, "out", &err), &err);
    add_affine(&r, r.list, gpu_span_all(&out), gpu_span_all(&in), 2, 1);
    end_list(r.list);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < WORDS; i++)
            ((uint32_t *)in.map)[i] = i + round;
        run_lists(&r, &r.list, 1, 1);
        for (uint32_t i = 0; i < WORDS; i++)
            CHECK(((uint32_t *)out.map)[i] == (i + round) * 2 + 1);
    }
    gpu_buffer_close(&in, r.gpu);
    gpu_buffer_close(&out, r.gpu);
    rig_close(&r);
}

static void test_wait_with_a_limit(void)
{
    enum { LARGE = 8 << 20 };
    struct rig r;
    rig_open(&r);
    struct err err = { "" };
    struct gpu_buffer large;
    HARNESS_OK(gpu_buffer_open(&large, r.gpu, LARGE * 4, GPU_DEVICE, "large", &err),
               &err);
    CHECK(gpu_wait(r.gpu, 1, &err) == 0); /* nothing in flight */
    for (int i = 0; i < 20; i++)
        add_inplace(&r, r.list, gpu_span_all(&large), 3, 1);
    end_list(r.list);
    HARNESS_OK(gpu_submit(r.gpu, &r.list, 1, 1, &err), &err);
    CHECK(gpu_wait(r.gpu, 1000, &err) == -1 && strstr(err.text, "still busy") &&
          strstr(err.text, "inplace"));

    /* What may not be done meanwhile. */
    uint32_t word = 0;
    const struct gpu_span span = gpu_span_at(&r.b, 0, 4);
    CHECK(gpu_submit(r.gpu, &r.list, 1, 1, &err) == -1 && strstr(err.text, "waited"));
    CHECK(gpu_record_begin(r.list, &err) == -1 && strstr(err.text, "in flight"));
    CHECK(gpu_upload(r.gpu, span, &word, &err) == -1 && strstr(err.text, "in flight"));
    CHECK(gpu_download(r.gpu, &word, span, &err) == -1 && strstr(err.text, "in flight"));
    CHECK(gpu_fill(r.gpu, span, 0, &err) == -1 && strstr(err.text, "in flight"));
    HARNESS_OK(gpu_wait(r.gpu, 0, &err), &err);
    HARNESS_OK(gpu_upload(r.gpu, span, &word, &err), &err);

    /* A list that is closed in flight is waited for. */
    HARNESS_OK(gpu_submit(r.gpu, &r.list, 1, 1, &err), &err);
    gpu_commands_close(r.list);
    r.list = NULL;
    CHECK(gpu_wait(r.gpu, 1, &err) == 0);
    gpu_buffer_close(&large, r.gpu);
    rig_close(&r);
}

/* ---- refusals ----------------------------------------------------------- */

static void refused(struct rig *r, struct gpu_dispatch d, const char *why)
{
    struct err err = { "" };
    uint32_t before = gpu_recorded_dispatches(r->list);
    CHECK(gpu_record(r->list, &d, &err) == -1);
    CHECK(gpu_recorded_dispatches(r->list) == before);
    bool said = strstr(err.text, "kernel affine: ") && strstr(err.text, why);
    if (!said)
        printf("# got \"%s\", want \"%s\"\n", err.text, why);
    CHECK(said);
}

static void test_dispatches_that_are_refused(void)
{
    struct rig r;
    rig_open(&r);
    const struct test_push push = { WORDS, 1, 1 };
    const struct gpu_dispatch good = {
        .kernel = &r.affine,
        .bind = { gpu_span_all(&r.a), gpu_span_all(&r.b) },
        .push = &push,
        .groups = { 4, 1, 1 },
    };
    const struct gpu_span bad[] = {
        { NULL, 0, 64 },          { &r.b, 4, 64 },
        { &r.b, BYTES, 64 },      { &r.b, BYTES - 64, 128 },
        { &r.b, 0, BYTES + 256 }, { &r.b, UINT64_MAX - 255, 512 },
        { &r.b, 256, 0 },
    };
    struct gpu_dispatch d = good;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        d.bind[1] = bad[i];
        refused(&r, d, "binding 1: ");
    }
    for (int axis = 0; axis < 3; axis++) {
        d = good;
        d.groups[axis] = 0;
        refused(&r, d, "0 groups along axis");
    }
    d = good;
    d.groups[1] = UINT32_MAX;
    refused(&r, d, "4294967295 groups along axis 1");
    d = good;
    d.push = NULL;
    refused(&r, d, "push constants");

    /* A range above the device's limit; where memory cannot hold one there is
     * nothing to refuse. */
    const uint64_t over = gpu_info(r.gpu)->buffer_bytes + 256;
    struct gpu_buffer large = { 0 };
    struct err err = { "" };
    if (over < (uint64_t)1 << 30) {
        HARNESS_OK(gpu_buffer_open(&large, r.gpu, over, GPU_DEVICE, "large", &err), &err);
        d = good;
        d.bind[0] = gpu_span_all(&large);
        refused(&r, d, "binding 0: ");
        d.bind[0] = gpu_span_at(&large, 256, over - 256);
        HARNESS_OK(gpu_record(r.list, &d, &err), &err);
        HARNESS_OK(gpu_record_begin(r.list, &err), &err);
    }
    gpu_buffer_close(&large, r.gpu);

    /* None of this has spoilt the list. */
    HARNESS_OK(gpu_record(r.list, &good, &err), &err);
    end_list(r.list);
    run_lists(&r, &r.list, 1, 1);
    uint32_t got[WORDS];
    harness_read(r.gpu, &r.b, got, BYTES);
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK(got[i] == r.data[i] + 1);
    rig_close(&r);
}

static void test_copies_that_are_refused(void)
{
    struct rig r;
    rig_open(&r);
    struct err err = { "" };
    const struct gpu_span a = words(&r.a, 0, 64), b = words(&r.b, 0, 64);
    CHECK(gpu_record_copy(r.list, b, words(&r.a, 0, 65), &err) == -1);
    CHECK(strstr(err.text, "copy: "));
    CHECK(gpu_record_copy(r.list, words(&r.a, 63, 64), a, &err) == -1);
    CHECK(strstr(err.text, "overlap"));
    CHECK(gpu_record_copy(r.list, gpu_span_at(&r.b, 2, 64), a, &err) == -1);
    CHECK(strstr(err.text, "copy target: "));
    CHECK(gpu_record_copy(r.list, b, words(&r.a, WORDS, 64), &err) == -1);
    CHECK(strstr(err.text, "copy source: "));
    CHECK(gpu_recorded_steps(r.list) == 0);
    add_copy(r.list, words(&r.a, 64, 64), a);
    CHECK(gpu_recorded_steps(r.list) == 1);
    rig_close(&r);
}

static void test_calls_out_of_order(void)
{
    struct rig r;
    rig_open(&r);
    struct gpu_commands *fresh;
    struct err err = { "" };
    const struct test_push push = { WORDS, 1, 1 };
    const struct gpu_dispatch d = { .kernel = &r.inplace,
                                    .bind = { gpu_span_all(&r.a) },
                                    .push = &push,
                                    .groups = { 1, 1, 1 } };
    HARNESS_OK(gpu_commands_open(&fresh, r.gpu, &err), &err);
    CHECK(gpu_record(fresh, &d, &err) == -1 && strstr(err.text, "kernel inplace"));
    CHECK(gpu_record_copy(fresh, gpu_span_all(&r.a), gpu_span_all(&r.b), &err) == -1);
    CHECK(gpu_record_end(fresh, &err) == -1);
    CHECK(gpu_submit(r.gpu, &fresh, 1, 1, &err) == -1);
    CHECK(gpu_submit(r.gpu, &r.list, 1, 1, &err) == -1); /* begun, not ended */
    CHECK(strstr(err.text, "not recorded to its end"));
    end_list(r.list);
    CHECK(gpu_record(r.list, &d, &err) == -1);
    CHECK(gpu_record_end(r.list, &err) == -1);
    struct gpu_commands *const lists[2] = { r.list, fresh };
    CHECK(gpu_submit(r.gpu, lists, 2, 1, &err) == -1 && strstr(err.text, "list 1"));
    CHECK(gpu_submit(r.gpu, lists, 0, 1, &err) == -1);
    CHECK(gpu_submit(r.gpu, lists, 1, 0, &err) == -1);
    CHECK(gpu_submit(r.gpu, lists, 1, UINT32_MAX, &err) == -1);
    run_lists(&r, &r.list, 1, 2); /* an empty list is one */
    gpu_commands_close(fresh);
    rig_close(&r);
}

/* ---- timestamps --------------------------------------------------------- */

struct steps {
    uint32_t n;
    const char *labels[8];
    double sum;
    uint64_t reads;
};

static void count_step(void *arg, const struct gpu_step *step)
{
    struct steps *s = arg;
    if (s->n < 8)
        s->labels[s->n] = step->label;
    s->n++;
    CHECK(step->nanoseconds >= 0 && step->nanoseconds < 1e10);
    s->sum += step->nanoseconds;
    s->reads += step->reads;
}

static void test_profile(void)
{
    struct rig r;
    rig_open(&r);
    struct err err = { "" };
    struct steps s = { 0 };
    REQUIRE(gpu_info(r.gpu)->timestamps);
    CHECK(gpu_profile_read(r.list, count_step, &s, &err) == -1);
    gpu_profile_enable(r.list, true);
    HARNESS_OK(gpu_record_begin(r.list, &err), &err);
    add_affine(&r, r.list, words(&r.b, 0, 2048), words(&r.a, 0, 2048), 1, 1);
    add_inplace(&r, r.list, words(&r.a, 2048, 64), 1, 1);
    add_inplace(&r, r.list, words(&r.b, 0, WORDS), 3, 0);
    add_copy(r.list, words(&r.a, 0, WORDS), words(&r.b, 0, WORDS));
    end_list(r.list);
    CHECK(gpu_profile_read(r.list, count_step, &s, &err) == -1); /* not run yet */
    for (uint32_t repeat = 1; repeat <= 3; repeat++) {
        s = (struct steps){ 0 };
        run_lists(&r, &r.list, 1, repeat);
        HARNESS_OK(gpu_profile_read(r.list, count_step, &s, &err), &err);
        CHECK(s.n == 3 && gpu_recorded_steps(r.list) == 3);
        CHECK_STR(s.labels[0], "affine step");
        CHECK_STR(s.labels[1], "inplace");
        CHECK_STR(s.labels[2], "copy");
        CHECK(s.sum > 0);
    }
    gpu_profile_enable(r.list, false);
    HARNESS_OK(gpu_record_begin(r.list, &err), &err);
    end_list(r.list);
    run_lists(&r, &r.list, 1, 1);
    CHECK(gpu_profile_read(r.list, count_step, &s, &err) == -1);
    rig_close(&r);
}

TEST_MAIN(T(test_dependent_chain), T(test_independent_dispatches_share_a_step),
          T(test_entries_beside_each_other),
          T(test_each_kind_of_hazard_separates),
          T(test_validation_sees_a_missing_barrier), T(test_repeats_and_several_lists),
          T(test_long_lists_recorded_anew), T(test_mapped_buffers),
          T(test_wait_with_a_limit), T(test_dispatches_that_are_refused),
          T(test_copies_that_are_refused), T(test_calls_out_of_order), T(test_profile))
