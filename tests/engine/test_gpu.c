/* test_gpu.c - the Vulkan layer without lists: choice of device and memory,
 * copies, kernels, and how each call fails. */
#include "tests/engine/harness.h"
#include "tests/engine/test_gpu_spirv.h"

#include "base/fault.h"
#include "base/mem.h"
#include "engine/gpu_internal.h"

#include <fcntl.h>

/* ---- devices ------------------------------------------------------------ */

static void test_list_names_every_device_and_the_chosen_one(void)
{
    struct device_info info[8];
    struct err err = { "" };
    size_t n = 0, counted = 0;
    int chosen = -2, again = -2;
    REQUIRE(device_list(info, 8, &n, &chosen, &err) == 0);
    REQUIRE(n >= 1 && chosen >= 0 && (size_t)chosen < n);
    CHECK(gpu_list(NULL, 0, &counted, &again, &err) == 0);
    CHECK(counted == n && again == chosen);
    const struct device_info *d = &info[chosen];
    CHECK(d->usable && d->name[0] && d->driver[0] &&
          d->api_version >= VK_API_VERSION_1_2);
    CHECK(d->memory_bytes >= (uint64_t)256 << 20);
    CHECK(d->buffer_bytes >= (uint64_t)128 << 20);
    CHECK(d->subgroup_size >= 4 && d->subgroup_size <= 128);
    CHECK(d->shared_bytes >= 16384);
    CHECK(strcmp(d->kind, "cpu") != 0 || d->note[0]);

    struct gpu *gpu = harness_open();
    CHECK_STR(gpu_info(gpu)->name, d->name);
    harness_close(gpu);
}

static void test_device_that_does_not_exist(void)
{
    struct gpu *gpu = NULL;
    struct err err = { "" };
    const int bad[] = { -1, 99 };
    for (int i = 0; i < 2; i++) {
        CHECK(gpu_open(&gpu, &(struct gpu_params){ .device = bad[i] }, &err) == -1);
        CHECK(gpu == NULL && strstr(err.text, "there is no device"));
    }
    CHECK(gpu_open(&gpu, &(struct gpu_params){ .device = 1 }, &err) == 0);
    gpu_close(gpu);
}

/* Runs gpu_open and returns what anybody wrote to the standard streams. */
static size_t open_quietly(struct gpu **gpu, bool validate, int *rc, struct err *err)
{
    char path[] = "/tmp/tern-gpu-XXXXXX";
    int fd = mkstemp(path), old_out = dup(1), old_err = dup(2);
    REQUIRE(fd >= 0);
    fflush(stdout);
    dup2(fd, 1);
    dup2(fd, 2);
    *rc = gpu_open(gpu, &(struct gpu_params){ .validate = validate }, err);
    dup2(old_out, 1);
    dup2(old_err, 2);
    off_t written = lseek(fd, 0, SEEK_END);
    close(fd);
    unlink(path);
    return (size_t)written;
}

static void test_no_driver_is_one_clear_line(void)
{
    setenv("VK_DRIVER_FILES", "/nonexistent/driver.json", 1);
    setenv("VK_ICD_FILENAMES", "/nonexistent/driver.json", 1);
    for (int validate = 0; validate < 2; validate++) {
        struct gpu *gpu = NULL;
        struct err err = { "" };
        int rc = 0;
        CHECK(open_quietly(&gpu, validate, &rc, &err) == 0);
        CHECK(rc == -1 && gpu == NULL);
        CHECK(strstr(err.text, "no Vulkan device") &&
              strstr(err.text, "mesa-vulkan-drivers"));
        CHECK(!strchr(err.text, '\n'));
    }
    size_t n = 99;
    int chosen = 99;
    struct err err = { "" };
    CHECK(device_list(NULL, 0, &n, &chosen, &err) == 0 && n == 0 && chosen == -1);
}

static void test_no_validation_layer_is_said(void)
{
    setenv("VK_LAYER_PATH", "/nonexistent", 1);
    struct gpu *gpu = NULL;
    struct err err = { "" };
    CHECK(gpu_open(&gpu, &(struct gpu_params){ .validate = true }, &err) == -1);
    CHECK(gpu == NULL && strstr(err.text, "validation layers") &&
          strstr(err.text, "not installed"));
}

static void test_lost_device_fails_fast_and_closes(void)
{
    struct gpu *gpu = harness_open();
    struct gpu_buffer b = harness_buffer(gpu, NULL, 1024);
    struct gpu_commands *list;
    struct gpu_kernel k;
    struct err first = { "" }, err = { "" };
    uint32_t word = 0;
    HARNESS_OK(gpu_commands_open(&list, gpu, &err), &err);
    CHECK(gpu_check(gpu, VK_ERROR_DEVICE_LOST, &first, "wait") == -1);
    CHECK(strstr(first.text, "device was lost") && strstr(first.text, "wait"));

    struct gpu_commands *other;
    struct gpu_buffer c;
    const uint32_t spec = 64;
    CHECK(gpu_upload(gpu, gpu_span_at(&b, 0, 4), &word, &err) == -1);
    CHECK(strstr(err.text, first.text) != NULL);
    CHECK(gpu_buffer_open(&c, gpu, 64, GPU_DEVICE, "c", &err) == -1 && !c.vk);
    CHECK_STR(err.text, first.text);
    CHECK(gpu_kernel_open(&k, gpu, &affine, &spec, 1, &err) == -1 && !k.pipeline);
    CHECK_STR(err.text, first.text);
    CHECK(gpu_commands_open(&other, gpu, &err) == -1 && !other);
    CHECK(gpu_record_begin(list, &err) == -1);
    CHECK_STR(err.text, first.text);
    CHECK(gpu_submit(gpu, &list, 1, 1, &err) == -1);
    CHECK_STR(err.text, first.text);
    CHECK(gpu_wait(gpu, 0, &err) == -1);
    CHECK_STR(err.text, first.text);
    gpu_commands_close(list);
    gpu_buffer_close(&b, gpu);
    harness_close(gpu);
}

static void test_closing_nothing(void)
{
    struct gpu *gpu = harness_open();
    struct gpu_buffer b = { 0 };
    struct gpu_kernel k = { 0 };
    gpu_buffer_close(&b, gpu);
    gpu_buffer_close(NULL, gpu);
    gpu_kernel_close(&k, gpu);
    gpu_kernel_close(NULL, gpu);
    gpu_commands_close(NULL);
    CHECK(gpu_allocated(gpu) == 0);
    harness_close(gpu);
    gpu_close(NULL);
}

/* ---- choice of memory --------------------------------------------------- */

enum {
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
};

static int first_type(const VkPhysicalDeviceMemoryProperties *m, enum gpu_use use)
{
    uint32_t order[VK_MAX_MEMORY_TYPES];
    return gpu_memory_order(m, UINT32_MAX, use, order) ? (int)order[0] : -1;
}

static void test_memory_of_a_discrete_device_with_a_small_window(void)
{
    const VkPhysicalDeviceMemoryProperties m = {
        .memoryHeapCount = 3,
        .memoryHeaps = { { (VkDeviceSize)16 << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
                         { (VkDeviceSize)64 << 30, 0 },
                         { (VkDeviceSize)256 << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT } },
        .memoryTypeCount = 6,
        .memoryTypes = { { LOCAL | VISIBLE, 2 },
                         { VISIBLE, 1 },
                         { VISIBLE | CACHED, 1 },
                         { LOCAL | VISIBLE | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD,
                           0 },
                         { LOCAL | VK_MEMORY_PROPERTY_PROTECTED_BIT, 0 },
                         { LOCAL, 0 } },
    };
    CHECK(first_type(&m, GPU_DEVICE) == 5);
    CHECK(first_type(&m, GPU_SHARED) == 0);
    CHECK(first_type(&m, GPU_READBACK) == 2);
    CHECK(first_type(&m, GPU_STAGING) == 2);
    uint32_t order[VK_MAX_MEMORY_TYPES];
    CHECK(gpu_memory_order(&m, UINT32_MAX, GPU_DEVICE, order) == 2 && order[1] == 0);
    CHECK(gpu_memory_order(&m, 1u << 1 | 1u << 2, GPU_DEVICE, order) == 0);
    CHECK(gpu_memory_order(&m, 1u << 1 | 1u << 2, GPU_SHARED, order) == 2);
}

static void test_memory_that_the_host_sees_whole(void)
{
    const VkPhysicalDeviceMemoryProperties m = {
        .memoryHeapCount = 2,
        .memoryHeaps = { { (VkDeviceSize)140 << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
                         { (VkDeviceSize)94 << 30, 0 } },
        .memoryTypeCount = 4,
        .memoryTypes = { { LOCAL | VISIBLE, 0 },
                         { LOCAL, 0 },
                         { VISIBLE, 1 },
                         { VISIBLE | CACHED, 1 } },
    };
    CHECK(first_type(&m, GPU_DEVICE) == 1);
    CHECK(first_type(&m, GPU_SHARED) == 0);
    CHECK(first_type(&m, GPU_READBACK) == 3);
}

static void test_memory_of_a_unified_device(void)
{
    const VkPhysicalDeviceMemoryProperties m = {
        .memoryHeapCount = 1,
        .memoryHeaps = { { (VkDeviceSize)8 << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT } },
        .memoryTypeCount = 1,
        .memoryTypes = { { LOCAL | VISIBLE | CACHED, 0 } },
    };
    for (int use = GPU_DEVICE; use <= GPU_STAGING; use++)
        CHECK(first_type(&m, (enum gpu_use)use) == 0);
}

/* ---- buffers and copies ------------------------------------------------- */

static void test_buffers_are_rounded_counted_and_zeroed(void)
{
    struct gpu *gpu = harness_open();
    struct err err = { "" };
    for (int use = GPU_DEVICE; use <= GPU_STAGING; use++) {
        struct gpu_buffer b;
        HARNESS_OK(gpu_buffer_open(&b, gpu, 257, (enum gpu_use)use, "b", &err), &err);
        CHECK(b.bytes == 512 && gpu_allocated(gpu) == 512);
        CHECK((b.map == NULL) == (use == GPU_DEVICE));
        for (size_t i = 0; b.map && i < b.bytes; i++)
            CHECK(((char *)b.map)[i] == 0);
        gpu_buffer_close(&b, gpu);
        CHECK(gpu_allocated(gpu) == 0 && !b.vk && !b.map && b.bytes == 0);
    }
    harness_close(gpu);
}

/* So that every test that opens a device sees reads of what nobody wrote. */
static void test_new_device_memory_is_poisoned(void)
{
    struct gpu *gpu = harness_open();
    struct gpu_buffer b;
    struct err err = { "" };
    uint32_t words[1000];
    if (!drivers_validate())
        SKIP("without validation it is what it was");
    HARNESS_OK(gpu_buffer_open(&b, gpu, sizeof words, GPU_DEVICE, "b", &err), &err);
    harness_read(gpu, &b, words, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK(words[i] == UINT32_MAX);
    gpu_buffer_close(&b, gpu);
    harness_close(gpu);
}

static void test_allocations_that_fail(void)
{
    struct gpu *gpu = harness_open();
    struct gpu_buffer b;
    struct err err = { "" };
    const uint64_t sizes[] = { UINT64_MAX, UINT64_MAX - 255, (uint64_t)1 << 50 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(gpu_buffer_open(&b, gpu, sizes[i], GPU_DEVICE, "KV cache", &err) == -1);
        CHECK(!b.vk && !b.memory && b.bytes == 0 && gpu_allocated(gpu) == 0);
        CHECK(strstr(err.text, "KV cache: ") && strstr(err.text, " MiB"));
    }
    CHECK(gpu_buffer_open(&b, gpu, (uint64_t)1 << 50, GPU_DEVICE, "w", &err) == -1);
    CHECK(strstr(err.text, "1073741824.0 MiB") &&
          strstr(err.text, "0.0 MiB are allocated"));
    CHECK(gpu_buffer_open(&b, gpu, 0, GPU_DEVICE, "none", &err) == -1 && !b.vk);

    for (int use = GPU_DEVICE; use <= GPU_STAGING; use++) {
        fault_arm(FAULT_DEVICE_ALLOC, 1);
        CHECK(gpu_buffer_open(&b, gpu, 4096, (enum gpu_use)use, "state", &err) == -1);
        CHECK(fault_disarm(FAULT_DEVICE_ALLOC));
        CHECK(!b.vk && gpu_allocated(gpu) == 0);
        CHECK(strstr(err.text, "state: ") && strstr(err.text, "OUT_OF_DEVICE_MEMORY"));
    }
    /* The staging ring is allocated at the first copy; a failure is no end. */
    uint32_t word = 7, got = 0;
    HARNESS_OK(gpu_buffer_open(&b, gpu, 4096, GPU_DEVICE, "b", &err), &err);
    fault_arm(FAULT_DEVICE_ALLOC, 1);
    CHECK(gpu_upload(gpu, gpu_span_at(&b, 0, 4), &word, &err) == -1);
    CHECK(fault_disarm(FAULT_DEVICE_ALLOC) && strstr(err.text, "staging"));
    HARNESS_OK(gpu_upload(gpu, gpu_span_at(&b, 0, 4), &word, &err), &err);
    HARNESS_OK(gpu_download(gpu, &got, gpu_span_at(&b, 0, 4), &err), &err);
    CHECK(got == 7);
    gpu_buffer_close(&b, gpu);
    harness_close(gpu);
}

static uint32_t mixed(uint64_t i)
{
    i = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(i >> 32);
}

/* Sizes around the staging halves of 16 MiB; what lies before and behind the
 * range must stay. */
static void copies_round_trip(struct gpu *gpu, enum gpu_use use, uint64_t bytes)
{
    enum { EDGE = 12 };
    struct err err = { "" };
    struct gpu_buffer b;
    const size_t n = bytes / 4;
    uint32_t *sent = mem_array(n, 4), *got = mem_zalloc(bytes + 2 * EDGE);
    for (size_t i = 0; i < n; i++)
        sent[i] = mixed(i);
    HARNESS_OK(gpu_buffer_open(&b, gpu, bytes + 2 * EDGE, use, "b", &err), &err);
    HARNESS_OK(gpu_fill(gpu, gpu_span_all(&b), 0xabcd1234, &err), &err);
    HARNESS_OK(gpu_upload(gpu, gpu_span_at(&b, EDGE, bytes), sent, &err), &err);
    HARNESS_OK(gpu_download(gpu, got, gpu_span_at(&b, 0, bytes + 2 * EDGE), &err), &err);
    CHECK(!memcmp(got + EDGE / 4, sent, bytes));
    for (size_t i = 0; i < EDGE / 4; i++)
        CHECK(got[i] == 0xabcd1234 && got[n + EDGE / 4 + i] == 0xabcd1234);
    HARNESS_OK(gpu_fill(gpu, gpu_span_at(&b, 4, 8), 0x55, &err), &err);
    HARNESS_OK(gpu_download(gpu, got, gpu_span_at(&b, 0, 16), &err), &err);
    CHECK(got[0] == 0xabcd1234 && got[1] == 0x55 && got[2] == 0x55 && got[3] == sent[0]);
    gpu_buffer_close(&b, gpu);
    free(sent);
    free(got);
}

static void test_copies_of_all_sizes(void)
{
    static const uint64_t half = (uint64_t)16 << 20;
    const uint64_t sizes[] = { 4,           8,        252,          256,
                               260,         65540,    half - 4,     half,
                               half + 4,    2 * half, 2 * half + 8, 3 * half + 12,
                               5 * half - 4 };
    struct gpu *gpu = harness_open();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        copies_round_trip(gpu, GPU_DEVICE, sizes[i]);
    for (int use = GPU_SHARED; use <= GPU_STAGING; use++)
        copies_round_trip(gpu, (enum gpu_use)use, 65540);
    CHECK(gpu_allocated(gpu) <= 2 * half);
    harness_close(gpu);
}

static void test_copies_that_are_refused(void)
{
    struct gpu *gpu = harness_open();
    struct gpu_buffer b = harness_buffer(gpu, NULL, 1024);
    struct gpu_buffer closed = { .bytes = 1024 };
    const struct gpu_span bad[] = {
        { NULL, 0, 4 },
        { &closed, 0, 4 },
        { &b, 0, 0 },
        { &b, 2, 4 },
        { &b, 0, 6 },
        { &b, 1024, 4 },
        { &b, 1020, 8 },
        { &b, 0, 1028 },
        { &b, UINT64_MAX - 3, 8 },
        { &b, 8, UINT64_MAX - 3 },
    };
    uint32_t words[512] = { 0 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = { "" };
        CHECK(gpu_upload(gpu, bad[i], words, &err) == -1 && strstr(err.text, "upload: "));
        CHECK(gpu_download(gpu, words, bad[i], &err) == -1 &&
              strstr(err.text, "download: "));
        CHECK(gpu_fill(gpu, bad[i], 0, &err) == -1 && strstr(err.text, "fill: "));
    }
    gpu_buffer_close(&b, gpu);
    harness_close(gpu);
}

/* ---- kernels ------------------------------------------------------------ */

static void test_specialization_and_push_constants(void)
{
    enum { N = 1000 };
    struct gpu *gpu = harness_open();
    uint32_t data[N], got[N];
    for (uint32_t i = 0; i < N; i++)
        data[i] = mixed(i);
    struct gpu_buffer src = harness_buffer(gpu, data, sizeof data);
    const uint32_t specs[][2] = {
        { 64, 11 }, { 256, 0 }, { 1, 12345 }, { 37, UINT32_MAX }
    };
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        struct gpu_buffer dst = harness_buffer(gpu, NULL, sizeof data);
        const struct test_push push = { N - 1, 3 + (uint32_t)s, 5 };
        harness_run(gpu, &(struct harness_job){
                             .module = &affine,
                             .spec = { specs[s][0], specs[s][1] },
                             .n_spec = 2,
                             .buffers = { &src, &dst },
                             .push = &push,
                             .groups = { 4, 1, 1 },
                         });
        harness_read(gpu, &dst, got, sizeof got);
        for (uint32_t i = 0; i < N - 1; i++)
            CHECK(got[i] == data[i] * push.mul + 5 + specs[s][1]);
        CHECK(got[N - 1] == 0);
        gpu_buffer_close(&dst, gpu);
    }
    gpu_buffer_close(&src, gpu);
    harness_close(gpu);
}

static void kernel_refused(struct gpu *gpu, struct gpu_module m, const uint32_t *spec,
                           uint32_t n_spec, const char *why)
{
    struct gpu_kernel k;
    struct err err = { "" };
    CHECK(gpu_kernel_open(&k, gpu, &m, spec, n_spec, &err) == -1);
    CHECK(!k.pipeline && !k.shader && !k.layout && !k.set_layout);
    bool said = strstr(err.text, "kernel affine: ") && strstr(err.text, why);
    if (!said)
        printf("# got \"%s\", want \"%s\"\n", err.text, why);
    CHECK(said);
}

static void test_kernels_that_are_refused(void)
{
    struct gpu *gpu = harness_open();
    const uint32_t spec[GPU_MAX_SPEC + 1] = { 64 };
    static const uint32_t garbage[64] = { 0x12345678 };
    struct gpu_module m = affine;
    m.spirv = garbage;
    m.spirv_bytes = sizeof garbage;
    kernel_refused(gpu, m, spec, 1, "no SPIR-V");
    m.spirv = NULL;
    kernel_refused(gpu, m, spec, 1, "no SPIR-V");
    m = affine;
    m.spirv_bytes -= 2;
    kernel_refused(gpu, m, spec, 1, "no SPIR-V");
    m = affine;
    m.n_bindings = 0;
    kernel_refused(gpu, m, spec, 1, "0 bindings");
    m.n_bindings = GPU_MAX_BINDINGS + 1;
    kernel_refused(gpu, m, spec, 1, "17 bindings");
    m = affine;
    m.writes = 1u << 2;
    kernel_refused(gpu, m, spec, 1, "does not have");
    m = affine;
    m.push_bytes = GPU_PUSH_BYTES + 4;
    kernel_refused(gpu, m, spec, 1, "push constants");
    m.push_bytes = 6;
    kernel_refused(gpu, m, spec, 1, "push constants");
    kernel_refused(gpu, affine, spec, GPU_MAX_SPEC + 1, "specialization");
    kernel_refused(gpu, affine, (uint32_t[]){ 0 }, 1, "workgroups of 0");
    kernel_refused(gpu, affine, (uint32_t[]){ 1u << 20 }, 1, "workgroups of 1048576");
    harness_close(gpu);
}

static void test_harness_near(void)
{
    const float want[4] = { 1, -2, 3, 0 };
    float got[4] = { 1, -2, 3, 0 };
    CHECK(harness_near(got, want, 4, 0));
    got[2] = 3.01f;
    CHECK(!harness_near(got, want, 4, 1e-4) && harness_near(got, want, 4, 1e-2));
    got[2] = NAN;
    CHECK(!harness_near(got, want, 4, 1e9));
    got[2] = INFINITY;
    CHECK(!harness_near(got, want, 4, 1e9));
    CHECK(!harness_near(got, want, 0, 1));
}

TEST_MAIN(T(test_list_names_every_device_and_the_chosen_one),
          T(test_device_that_does_not_exist), T(test_no_driver_is_one_clear_line),
          T(test_no_validation_layer_is_said), T(test_lost_device_fails_fast_and_closes),
          T(test_closing_nothing),
          T(test_memory_of_a_discrete_device_with_a_small_window),
          T(test_memory_that_the_host_sees_whole), T(test_memory_of_a_unified_device),
          T(test_buffers_are_rounded_counted_and_zeroed), T(test_new_device_memory_is_poisoned), T(test_allocations_that_fail),
          T(test_copies_of_all_sizes), T(test_copies_that_are_refused),
          T(test_specialization_and_push_constants), T(test_kernels_that_are_refused),
          T(test_harness_near))
