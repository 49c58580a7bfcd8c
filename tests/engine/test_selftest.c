/* test_selftest.c - the device's self-test: right here, able to see every wrong
 * result, and done once for a device. */
#include "base/fault.h"
#include "engine/selftest.h"
#include "tests/engine/timeline.h"

struct seen {
    size_t n, wrong;
    struct buf names;
};

static void see(void *arg, const char *kernel, double error, double allowed)
{
    struct seen *s = arg;
    s->n++;
    if (!(error <= allowed)) {
        s->wrong++;
        printf("# %s: %g of %g\n", kernel, error, allowed);
    }
    buf_printf(&s->names, "%s\n", kernel);
}

/* Every format, and every kind of step of a pass. */
static void test_this_device(void)
{
    static const char *const steps[] = { "delta",
                                         "qk_f16",
                                         "qk_f32",
                                         "attend_f16",
                                         "attend_f32",
                                         "merge",
                                         "router",
                                         "select",
                                         "rotate",
                                         "sample",
                                         "experts_q4_k_float_swiglu" };
    struct seen s = { 0 };
    struct err err = { "" };
    OK(device_test(0, see, &s, &err), &err);
    CHECK(s.n > 100 && !s.wrong);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        CHECK(strstr(s.names.v, steps[i]));
#define FORMAT_NAME(id, name) CHECK(strstr(s.names.v, "product_" #name "_float_store"));
    DEVICE_FORMATS(FORMAT_NAME)
#define FORMAT_EMBED(id, name) CHECK(strstr(s.names.v, "embed_" #name "\n"));
    DEVICE_FORMATS(FORMAT_EMBED)
    buf_release(&s.names);
    CHECK(device_test(99, NULL, NULL, &err) == -1 && strstr(err.text, "no device 99"));
}

/* Few kernels, whose pipelines last. */
static struct engine bench_open(struct gpu **gpu)
{
    struct engine e = { 0 };
    struct err err = { "" };
    OK(gpu_open(gpu, &(struct gpu_params){ .validate = drivers_validate() }, &err), &err);
    e.gpu = *gpu;
    tuning_choose(&e.tune, gpu_info(*gpu));
    e.tiles = TILES_NONE;
    pipelines_init(&e.pipelines, *gpu);
    return e;
}

static void bench_close(struct engine *e)
{
    CHECK(gpu_validation_errors(e->gpu, NULL) == 0);
    pipelines_release(&e->pipelines);
    gpu_close(e->gpu);
}

static const struct selftest_scope some = { .formats = 1u << FORMAT_Q4_K,
                                            .floats = true,
                                            .recurrent = true,
                                            .attention = true,
                                            .experts = true,
                                            .rotation = true };

/* Whichever result is wrong, by a little more than a bit: a kernel is named. */
static void test_each_result(void)
{
    struct gpu *gpu;
    struct engine e = bench_open(&gpu);
    struct err err = { "" };
    unsigned n = 1;
    OK(selftest_run(&e, &some, NULL, NULL, &err), &err);
    for (;; n++) {
        fault_arm(FAULT_DEVICE_WRONG, n);
        int rc = selftest_run(&e, &some, NULL, NULL, &err);
        if (!fault_disarm(FAULT_DEVICE_WRONG))
            break;
        if (rc == 0)
            printf("# the wrong result %u was not seen\n", n);
        CHECK(rc == -1 && strstr(err.text, "computes wrongly and is not used: kernel "));
    }
    CHECK(n > 20);
    bench_close(&e);
}

/* Shapes that the kernels were not made for give wrong sums on any device. */
static void test_wrong_kernels(void)
{
    struct gpu *gpu;
    struct engine e = bench_open(&gpu);
    struct err err = { "" };
    const struct tuning good = e.tune;
    struct selftest_scope one = { .formats = 1u << FORMAT_F16, .floats = true };
    e.tune.product_one[EPILOGUE_STORE].lanes = 2 * gpu_info(gpu)->subgroup_size;
    CHECK(selftest_run(&e, &one, NULL, NULL, &err) == -1);
    CHECK(strstr(err.text, "kernel product_f16_float_store computes"));
    e.tune = good;
    OK(selftest_run(&e, &one, NULL, NULL, &err), &err);
    gpu_close(NULL);
    pipelines_release(&e.pipelines);
    gpu_close(gpu);
}

static int open_once(const char *folder, bool read_only, struct err *err)
{
    struct model *m;
    struct engine *e = NULL;
    OK(model_open(&m, MODEL, err), err);
    const struct engine_params p = { .tested_folder = folder,
                                     .tested_read_only = read_only };
    int rc = engine_open(&e, m, &p, err);
    engine_close(e);
    model_close(m);
    return rc;
}

/* A file for a device: then it is not tested again, before that each time. */
static void test_once(void)
{
    struct folder f = folder_make();
    struct err err = { "" };
    char path[256];
    fault_arm(FAULT_DEVICE_WRONG, 2);
    CHECK(open_once(f.dir, false, &err) == -1 && strstr(err.text, "computes wrongly"));
    CHECK(fault_disarm(FAULT_DEVICE_WRONG) && folder_count(f.dir, "", NULL) == 0);
    CHECK(open_once(f.dir, true, &err) == 0 && folder_count(f.dir, "", NULL) == 0);
    CHECK(open_once(f.dir, false, &err) == 0 && folder_count(f.dir, "", path) == 1);
    struct stat st;
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size < 600);
    fault_arm(FAULT_DEVICE_WRONG, 1);
    CHECK(open_once(f.dir, false, &err) == 0 && open_once(f.dir, true, &err) == 0);
    CHECK(!fault_disarm(FAULT_DEVICE_WRONG));
    folder_remove(&f);
    /* Where nothing can be remembered, it works all the same. */
    CHECK(open_once("/proc/nowhere", false, &err) == 0);
    CHECK(open_once(NULL, false, &err) == 0);
}

TEST_MAIN(T(test_this_device), T(test_each_result), T(test_wrong_kernels), T(test_once))
