/* harness.h - a device with the validation layers on, and short cuts to run
 * one kernel on it. Every failure ends the test: a missing device is one too.
 *
 *     struct gpu *gpu = harness_open();
 *     struct gpu_buffer x = harness_buffer(gpu, data, sizeof data);
 *     harness_run(gpu, &(struct harness_job){ .module = &m, .spec = { 64 },
 *         .n_spec = 1, .buffers = { &x, &y }, .push = &push, .groups = { 4, 1, 1 } });
 *     harness_read(gpu, &y, got, sizeof got);
 *     CHECK(harness_near(got, want, n, 1e-5));
 *     gpu_buffer_close(&x, gpu); ...
 *     harness_close(gpu); */
#ifndef TESTS_ENGINE_HARNESS_H
#define TESTS_ENGINE_HARNESS_H

#include "engine/gpu.h"
#include "tests/engine/drivers.h"
#include "tests/test.h"

#include <stdint.h>

/* For calls that must succeed: prints err and ends the test if one does not. */
#define HARNESS_OK(call, err)                                                    \
    do {                                                                         \
        if (call) {                                                              \
            printf("# %s:%d: %s: %s\n", __FILE__, __LINE__, #call, (err)->text); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static inline struct gpu *harness_open(void)
{
    struct gpu *gpu = NULL;
    struct err err = { "" };
    const struct gpu_params params = { .validate = drivers_validate() };
    HARNESS_OK(gpu_open(&gpu, &params, &err), &err);
    return gpu;
}

/* Fails the test if the validation layers said anything. */
static inline void harness_close(struct gpu *gpu)
{
    const char *first = "";
    uint32_t n = gpu_validation_errors(gpu, &first);
    if (n)
        printf("# %u validation messages, the first: %s\n", n, first);
    CHECK(n == 0);
    gpu_close(gpu);
}

/* A GPU_DEVICE buffer of `bytes`, with a copy of data, or zeros for NULL. The
 * bytes beyond, up to the rounded size, are 0xff (NaN as a float), so that a
 * kernel that uses them shows. */
static inline struct gpu_buffer harness_buffer(struct gpu *gpu, const void *data,
                                               uint64_t bytes)
{
    struct gpu_buffer b;
    struct err err = { "" };
    HARNESS_OK(gpu_buffer_open(&b, gpu, bytes, GPU_DEVICE, "test", &err), &err);
    HARNESS_OK(gpu_fill(gpu, gpu_span_all(&b), UINT32_MAX, &err), &err);
    const uint64_t words = bytes & ~(uint64_t)3;
    if (data && words)
        HARNESS_OK(gpu_upload(gpu, gpu_span_at(&b, 0, words), data, &err), &err);
    if (!data && words)
        HARNESS_OK(gpu_fill(gpu, gpu_span_at(&b, 0, words), 0, &err), &err);
    if (bytes > words) {
        uint32_t last = data ? UINT32_MAX : 0;
        if (data)
            memcpy(&last, (const char *)data + words, bytes - words);
        HARNESS_OK(gpu_upload(gpu, gpu_span_at(&b, words, 4), &last, &err), &err);
    }
    return b;
}

/* The first `bytes` (a multiple of 4) of a buffer. */
static inline void harness_read(struct gpu *gpu, const struct gpu_buffer *b, void *to,
                                uint64_t bytes)
{
    struct err err = { "" };
    HARNESS_OK(gpu_download(gpu, to, gpu_span_at(b, 0, bytes), &err), &err);
}

struct harness_job {
    const struct gpu_module *module;
    uint32_t spec[GPU_MAX_SPEC];
    uint32_t n_spec;
    /* One a binding: a whole buffer, or where that is NULL a span. */
    const struct gpu_buffer *buffers[GPU_MAX_BINDINGS];
    struct gpu_span spans[GPU_MAX_BINDINGS];
    const void *push;
    uint32_t groups[3];
};

/* Builds the kernel, runs one dispatch and waits for it. */
static inline void harness_run(struct gpu *gpu, const struct harness_job *job)
{
    struct err err = { "" };
    struct gpu_kernel kernel;
    struct gpu_commands *list;
    HARNESS_OK(gpu_kernel_open(&kernel, gpu, job->module, job->spec, job->n_spec, &err),
               &err);
    struct gpu_dispatch d = {
        .kernel = &kernel,
        .push = job->push,
        .groups = { job->groups[0], job->groups[1], job->groups[2] },
    };
    for (uint32_t i = 0; i < job->module->n_bindings; i++)
        d.bind[i] = job->buffers[i] ? gpu_span_all(job->buffers[i]) : job->spans[i];
    HARNESS_OK(gpu_commands_open(&list, gpu, &err), &err);
    HARNESS_OK(gpu_record_begin(list, &err), &err);
    HARNESS_OK(gpu_record(list, &d, &err), &err);
    HARNESS_OK(gpu_record_end(list, &err), &err);
    HARNESS_OK(gpu_submit(gpu, &list, 1, 1, &err), &err);
    HARNESS_OK(gpu_wait(gpu, (uint64_t)120 * 1000 * 1000 * 1000, &err), &err);
    gpu_commands_close(list);
    gpu_kernel_close(&kernel, gpu);
}

/* Whether |got - want| <= tol * (|want| + rms(want)) for all n values; prints
 * the worst one if not. NaN is never near. */
static inline bool harness_near(const float *got, const float *want, size_t n, double tol)
{
    double sum = 0, worst = -1;
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)want[i] * want[i];
    const double rms = n ? sqrt(sum / (double)n) : 0;
    for (size_t i = 0; i < n; i++) {
        double diff = fabs((double)got[i] - want[i]);
        double scale = fabs((double)want[i]) + rms;
        double e = diff == 0 ? 0 : diff / scale;
        if (isnan(e) || e > worst) {
            worst = isnan(e) ? INFINITY : e;
            at = i;
        }
    }
    if (n && worst <= tol)
        return true;
    printf("# worst of %zu at %zu: got %.9g, want %.9g (error %.3g, allowed %.3g)\n", n,
           at, n ? (double)got[at] : 0.0, n ? (double)want[at] : 0.0, worst, tol);
    return false;
}

#endif
