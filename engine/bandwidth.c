/* bandwidth.c - how fast a device reads its memory: what the decoding of a token
 * could reach at best, since it must read all weights once. */
#include "engine/kernel.h"

#include "base/clock.h"

#include <inttypes.h>
#include <string.h>

enum { SIZE = 256, WORD = 3 };

struct reader {
    struct gpu *gpu;
    struct gpu_buffer ctl, from, sum;
    struct gpu_kernel kernel;
    struct gpu_commands *list;
    uint64_t bytes;
    double best; /* seconds of a run, on the device */
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int reader_open(struct reader *r, int device, struct err *err)
{
    if (gpu_open(&r->gpu, &(struct gpu_params){ .device = device }, err) < 0)
        return -1;
    const struct device_info *info = gpu_info(r->gpu);
    bool cpu = !strcmp(info->kind, "cpu");
    r->bytes = smaller(cpu ? 64 << 20 : 1 << 30, info->buffer_bytes) / 4096 * 4096;
    r->bytes = smaller(r->bytes, info->memory_bytes / 4 / 4096 * 4096);
    uint32_t spec[] = { (uint32_t)smaller(SIZE, info->group_size) };
    if (gpu_buffer_open(&r->ctl, r->gpu, sizeof(struct ctl_block), GPU_SHARED, "control",
                        err) < 0 ||
        gpu_buffer_open(&r->from, r->gpu, r->bytes, GPU_DEVICE, "memory to read", err) <
            0 ||
        gpu_buffer_open(&r->sum, r->gpu, 4, GPU_DEVICE, "sum", err) < 0 ||
        gpu_fill(r->gpu, gpu_span_all(&r->from), WORD, err) < 0)
        return -1;
    if (gpu_kernel_open(&r->kernel, r->gpu, kernel_module(KERNEL_READ), spec, 1, err) < 0)
        return -1;
    return gpu_commands_open(&r->list, r->gpu, err);
}

static void reader_close(struct reader *r)
{
    if (!r->gpu)
        return;
    gpu_commands_close(r->list);
    gpu_kernel_close(&r->kernel, r->gpu);
    gpu_buffer_close(&r->ctl, r->gpu);
    gpu_buffer_close(&r->from, r->gpu);
    gpu_buffer_close(&r->sum, r->gpu);
    gpu_close(r->gpu);
}

static int record(struct reader *r, struct err *err)
{
    struct push_read push = { .units = (uint32_t)(r->bytes / 16) };
    struct gpu_dispatch d = { .kernel = &r->kernel,
                              .bind = { gpu_span_all(&r->ctl), gpu_span_all(&r->from),
                                        gpu_span_all(&r->sum) },
                              .push = &push,
                              .groups = { (uint32_t)(r->bytes >> 18), 1, 1 },
                              .label = "read" };
    gpu_profile_enable(r->list, true);
    if (gpu_record_begin(r->list, err) < 0 || gpu_record(r->list, &d, err) < 0)
        return -1;
    return gpu_record_end(r->list, err);
}

static void take_best(void *arg, const struct gpu_step *step)
{
    struct reader *r = arg;
    double seconds = step->nanoseconds * 1e-9;
    if (seconds > 0 && (r->best <= 0 || seconds < r->best))
        r->best = seconds;
}

/* One run, and whether it read what is there. */
static int run(struct reader *r, struct err *err)
{
    uint32_t sum, want = (uint32_t)(r->bytes / 4 * WORD);
    if (gpu_fill(r->gpu, gpu_span_all(&r->sum), 0, err) < 0 ||
        gpu_submit(r->gpu, &r->list, 1, 1, err) < 0 || gpu_wait(r->gpu, 0, err) < 0 ||
        gpu_download(r->gpu, &sum, gpu_span_at(&r->sum, 0, 4), err) < 0 ||
        gpu_profile_read(r->list, take_best, r, err) < 0)
        return -1;
    if (sum == want)
        return 0;
    return err_set(err,
                   "%s reads wrongly: a sum of %" PRIu32 " where %" PRIu32 " is right",
                   gpu_info(r->gpu)->name, sum, want);
}

int device_bandwidth(int device, double *bytes_per_second, struct err *err)
{
    struct reader r = { 0 };
    int rc = reader_open(&r, device, err);
    if (rc == 0 && !gpu_info(r.gpu)->timestamps)
        rc = err_set(err, "%s has no timestamps to measure with", gpu_info(r.gpu)->name);
    if (rc == 0)
        rc = record(&r, err);
    for (uint64_t from = clock_ns(); rc == 0 && clock_ns() - from < 500000000u;)
        rc = run(&r, err);
    if (rc == 0 && r.best <= 0)
        rc = err_set(err, "the timestamps of %s stand still", gpu_info(r.gpu)->name);
    if (rc == 0)
        *bytes_per_second = (double)r.bytes / r.best;
    reader_close(&r);
    return rc;
}
