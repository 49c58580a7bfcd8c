/* devices.c - `tern devices`: what there is, and with --test whether it computes
 * rightly. */
#include "app/command.h"

#include "base/mem.h"

#include "app/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 16 };

/* An indented line; it may hold foreign text. */
static void line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void line(const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    out_printf("%14s", "");
    out_line(buf_cstr(&b));
    buf_release(&b);
}

static void feature_add(struct buf *b, bool has, const char *name)
{
    if (has)
        buf_printf(b, "%s%s", b->len ? ", " : "", name);
}

static void device_print(const struct device_info *d, int number, bool chosen)
{
    struct buf b = BUF_INIT;
    out_printf("%d%s ", number, chosen ? "*" : " ");
    out_line(d->name);
    buf_printf(&b, "%s, driver %s, Vulkan %u.%u.%u, ", d->kind, d->driver,
               d->api_version >> 22, d->api_version >> 12 & 0x3ff,
               d->api_version & 0xfff);
    bytes_format(&b, d->memory_bytes);
    buf_str(&b, " of memory, buffers up to ");
    bytes_format(&b, d->buffer_bytes);
    line("%s", buf_cstr(&b));
    buf_truncate(&b, 0);
    feature_add(&b, d->int_dot, "integer dot products");
    feature_add(&b, d->f16, "16-bit floats");
    feature_add(&b, d->storage16, "16-bit storage");
    feature_add(&b, d->coopmat, "cooperative matrices");
    feature_add(&b, d->timestamps, "timestamps");
    line("subgroups of %u, %u bytes shared; %s", d->subgroup_size, d->shared_bytes,
         b.len ? buf_cstr(&b) : "no optional features");
    if (d->note[0])
        line("%s%s", d->usable ? "" : "not usable: ", d->note);
    buf_release(&b);
}

/* ---- testing --------------------------------------------------------------- */

struct results {
    size_t n, n_kernels;
    char *last; /* kernel; its results come one after the other */
};

static void result_take(void *arg, const char *kernel, double error, double allowed)
{
    struct results *r = arg;
    r->n++;
    if (!r->last || strcmp(r->last, kernel) != 0) {
        free(r->last);
        r->last = mem_strdup(kernel);
        r->n_kernels++;
    }
    if (!(error <= allowed))
        line("wrong: %s, off by %g where rounding may make it %g", kernel, error,
             allowed);
}

static int test(const struct env *env, struct err *err)
{
    struct results r = { 0 };
    struct err ignored;
    int device = env->opt.device > 0 ? (int)env->opt.device : 0;
    out_printf("testing the kernels of device %d\n", device);
    out_flush(&ignored);
    int rc = device_test(device, result_take, &r, err);
    if (rc == 0)
        line("%zu kernels with %zu results are right", r.n_kernels, r.n);
    free(r.last);
    return rc;
}

/* ---- speed -------------------------------------------------------------------- */

static int bandwidth(const struct env *env, struct err *err)
{
    double speed;
    if (device_bandwidth((int)env->opt.device, &speed, err) < 0)
        return -1;
    out_printf("device %lld reads %.1f GB/s\n", (long long)env->opt.device, speed * 1e-9);
    return 0;
}

/* ---- the command ------------------------------------------------------------- */

int cmd_devices(struct env *env, struct err *err)
{
    struct device_info *list = mem_array(DEVICES, sizeof *list);
    size_t n = 0;
    int chosen = -1;
    int rc = device_list(list, DEVICES, &n, &chosen, err);
    if (rc == 0 && n == 0)
        rc = err_set(err, "no Vulkan device was found: install the Vulkan driver of your "
                          "GPU, or Mesa's drivers, which can also run on the CPU");
    for (size_t i = 0; rc == 0 && i < n && i < DEVICES; i++)
        device_print(&list[i], (int)i + 1, (int)i == chosen);
    if (rc == 0)
        out_printf(chosen >= 0 ? "* is used unless --device names another\n"
                               : "none of them can run a model\n");
    free(list);
    if (chosen >= 0 && env->opt.device <= 0)
        env->opt.device = chosen + 1;
    if (rc == 0 && chosen >= 0 && env->opt.bandwidth)
        rc = bandwidth(env, err);
    if (rc == 0 && chosen >= 0 && env->opt.test)
        rc = test(env, err);
    return rc == 0 && chosen < 0 ? EXIT_FAILED : rc;
}
