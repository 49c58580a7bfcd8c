/* selftest.c - the table of parts, and what they share. */
#include "engine/selftest_rig.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static void (*const parts[])(struct rig *r) = {
    selftest_products, selftest_delta,    selftest_attention,
    selftest_experts,  selftest_rotation, selftest_sample,
};

/* ---- rig ----------------------------------------------------------------- */

float rig_value(struct rig *r)
{
    r->noise = r->noise * 1664525u + 1013904223u;
    return (float)(r->noise >> 8) / (float)(1 << 23) - 1.0f;
}

float *rig_values(struct rig *r, size_t n, float scale)
{
    float *v = mem_array(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = scale * rig_value(r);
    return v;
}

static void rig_clear(struct rig *r)
{
    for (uint32_t i = 0; i < r->n_buffers; i++)
        gpu_buffer_close(&r->buffers[i], r->gpu);
    r->n_buffers = 0;
    arena_release(&r->arena);
    r->session = (struct session){ .engine = &r->engine };
}

void rig_begin(struct rig *r, uint32_t tokens)
{
    rig_clear(r);
    arena_init(&r->arena, r->gpu, 0);
    r->noise = 20240229;
    r->pass = (struct pass){ .tokens = tokens, .splits = 1 };
    r->rec = (struct recorder){ .s = &r->session,
                                .e = &r->engine,
                                .hp = &r->model.hp,
                                .c = r->list,
                                .pass = &r->pass,
                                .err = r->err };
    const struct ctl_block ctl = { .pos = 0, .n_tokens = tokens };
    r->session.ctl = rig_buffer(r, &ctl, sizeof ctl);
    if (r->rc == 0)
        r->rc = gpu_record_begin(r->list, r->err);
}

struct gpu_buffer rig_buffer(struct rig *r, const void *data, uint64_t bytes)
{
    struct gpu_buffer none = { 0 };
    if (r->rc < 0)
        return none;
    if (r->n_buffers == RIG_BUFFERS) {
        r->rc = err_set(r->err, "self-test: too many buffers");
        return none;
    }
    struct gpu_buffer *b = &r->buffers[r->n_buffers];
    if (gpu_buffer_open(b, r->gpu, bytes, GPU_DEVICE, "self-test", r->err) < 0) {
        r->rc = -1;
        return none;
    }
    r->n_buffers++;
    r->rc = gpu_fill(r->gpu, gpu_span_all(b), UINT32_MAX, r->err);
    if (r->rc == 0 && data)
        r->rc = gpu_upload(r->gpu, gpu_span_at(b, 0, bytes), data, r->err);
    return *b;
}

struct gpu_span rig_span(struct rig *r, const void *data, uint64_t bytes)
{
    uint32_t at = r->n_buffers;
    rig_buffer(r, data, bytes);
    struct gpu_span span = { 0 };
    if (r->rc == 0)
        span = gpu_span_all(&r->buffers[at]);
    return span;
}

void rig_run(struct rig *r)
{
    if (r->rc == 0)
        r->rc = gpu_record_end(r->list, r->err);
    if (r->rc == 0)
        r->rc = gpu_submit(r->gpu, &r->list, 1, 1, r->err);
    if (r->rc == 0)
        r->rc = gpu_wait(r->gpu, 0, r->err);
}

void rig_read(struct rig *r, const struct gpu_buffer *b, void *to, uint64_t bytes)
{
    memset(to, 0, bytes);
    if (r->rc == 0)
        r->rc = gpu_download(r->gpu, to, gpu_span_at(b, 0, bytes), r->err);
    if (fault_hit(FAULT_DEVICE_WRONG))
        ((uint8_t *)to)[11] ^= 0x40; /* of a float: an exponent far off */
}

void rig_compare(struct rig *r, const char *kernel, const float *got, const float *want,
                 size_t n, double allowed)
{
    double sum = 0, worst = 0;
    size_t at = 0;
    if (r->rc < 0)
        return;
    for (size_t i = 0; i < n; i++)
        sum += (double)want[i] * want[i];
    const double rms = sqrt(sum / (double)n);
    for (size_t i = 0; i < n; i++) {
        double off = fabs((double)got[i] - want[i]);
        double error = off == 0 ? 0 : off / (fabs((double)want[i]) + rms);
        if (!(error <= worst)) { /* NaN is the worst */
            worst = isnan(error) ? INFINITY : error;
            at = i;
        }
    }
    if (r->each)
        r->each(r->arg, kernel, worst, allowed);
    if (worst <= allowed)
        return;
    if (!r->n_wrong++)
        err_set(&r->wrong, "kernel %s computes %g instead of %g", kernel, (double)got[at],
                (double)want[at]);
}

/* ---- all of it ------------------------------------------------------------- */

static void rig_open(struct rig *r, const struct engine *e)
{
    r->gpu = e->gpu;
    r->engine = (struct engine){ .model = &r->model,
                                 .gpu = e->gpu,
                                 .pipelines = e->pipelines,
                                 .tune = e->tune,
                                 .tiles = e->tiles };
    r->model.hp.arch = &r->arch;
    r->model.hp.rms_eps = 1e-6f;
    r->rc = gpu_commands_open(&r->list, r->gpu, r->err);
}

int selftest_run(struct engine *e, const struct selftest_scope *scope,
                 device_test_fn *each, void *arg, struct err *err)
{
    const struct device_info *info = gpu_info(e->gpu);
    struct rig *r = mem_zalloc(sizeof *r);
    *r = (struct rig){ .scope = scope, .each = each, .arg = arg, .err = err };
    rig_open(r, e);
    for (size_t i = 0; r->rc == 0 && i < sizeof parts / sizeof *parts; i++)
        parts[i](r);
    rig_clear(r);
    gpu_commands_close(r->list);
    e->pipelines = r->engine.pipelines;
    int rc = r->rc;
    if (rc == 0 && r->n_wrong)
        rc = err_set(err,
                     "%s (driver %s) computes wrongly and is not used: %s%s; update the "
                     "driver, or choose another device (see tern devices)",
                     info->name, info->driver, r->wrong.text,
                     r->n_wrong > 1 ? ", and it is not the only one" : "");
    free(r);
    return rc;
}

/* ---- for a model ------------------------------------------------------------ */

static void format_add(struct selftest_scope *s, const struct matrix *m)
{
    if (m->rows)
        s->formats |= 1u << m->format;
}

struct selftest_scope selftest_scope_of(const struct engine *e)
{
    const struct device_weights *w = &e->weights;
    const struct hparams *hp = &e->model->hp;
    struct selftest_scope s = { .floats = !e->int8,
                                .int8 = e->int8,
                                .recurrent = hp->n_recurrent > 0,
                                .attention = hp->n_attention > 0,
                                .experts = hp->arch->moe,
                                .rotation = w->n_signs > 0 };
    format_add(&s, &w->embed);
    format_add(&s, &w->output);
    for (uint32_t i = 0; i < w->n_layers; i++) {
        const struct device_layer *ly = &w->layers[i];
        for (uint32_t k = 0; k < ly->n_proj; k++)
            format_add(&s, &ly->proj[k].m);
        format_add(&s, &ly->out);
        format_add(&s, &ly->gate_up);
        format_add(&s, &ly->down);
        format_add(&s, &ly->shared_gate_up);
        format_add(&s, &ly->shared_down);
    }
    return s;
}

/* Everything that a result depends on: device, driver, kernels, and what is tested. */
static uint64_t identity(const struct engine *e, const struct selftest_scope *s)
{
    const struct device_info *d = gpu_info(e->gpu);
    const uint32_t numbers[] = { d->api_version, d->vendor_id, d->subgroup_size,
                                 s->formats,     s->floats,    s->int8,
                                 s->recurrent,   s->attention, s->experts,
                                 s->rotation,    e->tiles };
    uint64_t all = XXH3_64bits_withSeed(d->name, strlen(d->name), kernel_fingerprint());
    all = XXH3_64bits_withSeed(d->driver, strlen(d->driver), all);
    return XXH3_64bits_withSeed(numbers, sizeof numbers, all);
}

int selftest_once(struct engine *e, const char *folder, bool may_write, struct err *err)
{
    const struct selftest_scope scope = selftest_scope_of(e);
    struct buf path = BUF_INIT, text = BUF_INIT;
    struct err reason = { "" };
    int rc = 0;
    buf_printf(&path, "%s/%016" PRIx64, folder, identity(e, &scope));
    bool known = access(path.v, F_OK) == 0;
    if (!known)
        rc = selftest_run(e, &scope, NULL, NULL, err);
    buf_printf(&text, "every kernel was right on %s\n", gpu_info(e->gpu)->name);
    if (!known && rc == 0 && may_write &&
        (file_mkdirs(folder, 0700, &reason) < 0 ||
         file_write_atomic(path.v, text.v, text.len, &reason) < 0) &&
        !e->note[0])
        snprintf(e->note, sizeof e->note, "the device is tested at each start: %.180s",
                 reason.text);
    buf_release(&path);
    buf_release(&text);
    return rc;
}

/* ---- for a device ------------------------------------------------------------ */

int device_test(int device, device_test_fn *each, void *arg, struct err *err)
{
    struct engine e = { 0 };
    const struct gpu_params p = { .device = device };
    if (gpu_open(&e.gpu, &p, err) < 0)
        return -1;
    const struct device_info *info = gpu_info(e.gpu);
    const struct selftest_scope all = { .formats = UINT32_MAX,
                                        .floats = true,
                                        .int8 = info->int_dot,
                                        .recurrent = true,
                                        .attention = true,
                                        .experts = true,
                                        .rotation = true };
    tuning_choose(&e.tune, info);
    e.tiles = info->coopmat && info->f16 ? TILES_MATRIX : TILES_NONE;
    pipelines_init(&e.pipelines, e.gpu);
    int rc = selftest_run(&e, &all, each, arg, err);
    pipelines_release(&e.pipelines);
    gpu_close(e.gpu);
    return rc;
}
