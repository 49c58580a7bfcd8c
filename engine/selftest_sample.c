/* selftest_sample.c - the choice of the next token, greedy and drawn, and the
 * rotation of activations. */
#include "engine/selftest_rig.h"

#include "base/mem.h"
#include "engine/ref.h"
#include "engine/ref_sample.h"
#include "engine/rotation.h"
#include "engine/sample.h"

#include <stdlib.h>
#include <string.h>

/* ---- sampling ------------------------------------------------------------------- */

enum { N_VOCAB = 1000, STEPS = 4 };

/* A few tokens one after the other, and what the timeline remembers of them. */
static void sample_test(struct rig *r, const struct sampler_params *p)
{
    const struct gpu_module *module = kernel_module(KERNEL_SAMPLE);
    static const struct push_sample push = { .advance = 1 };
    uint32_t counts[N_VOCAB] = { 0 }, spec[] = { r->engine.tune.sample_size };
    struct ctl_block ctl = { .n_tokens = 1, .n_vocab = N_VOCAB };
    struct out_block out = { 0 }, got;
    rig_begin(r, 1);
    if (r->rc == 0)
        r->rc = sample_configure(&ctl, p, r->err);
    float *logits = rig_values(r, N_VOCAB, 6);
    counts[17] = 2;
    r->session.ctl = rig_buffer(r, &ctl, sizeof ctl);
    r->session.out = rig_buffer(r, &out, sizeof out);
    struct gpu_dispatch d = { .bind = { [1] = rig_span(r, logits, N_VOCAB * 4),
                                        [2] = rig_span(r, counts, sizeof counts),
                                        [3] = gpu_span_all(&r->session.out) },
                              .push = &push,
                              .groups = { 1, 1, 1 } };
    for (int i = 0; i < STEPS; i++) {
        if (r->rc == 0)
            r->rc = forward_dispatch(&r->rec, &d, module, spec, 1);
        ref_sample(&ctl, &out, logits, counts, true);
    }
    rig_run(r);
    rig_read(r, &r->session.out, &got, sizeof got);
    float ids[2][STEPS];
    for (int i = 0; i < STEPS; i++) {
        ids[0][i] = (float)got.ids[i];
        ids[1][i] = (float)out.ids[i];
    }
    rig_compare(r, module->name, ids[0], ids[1], STEPS, 0);
    free(logits);
}

void selftest_sample(struct rig *r)
{
    sample_test(r, &(struct sampler_params){ .temperature = 0 });
    sample_test(r, &(struct sampler_params){ .temperature = 0.5f,
                                             .top_k = 40,
                                             .top_p = 0.95f,
                                             .presence_penalty = 0.5f,
                                             .seed = 7 });
}

/* ---- rotation -------------------------------------------------------------------- */

enum { WIDE = ROTATION_BLOCK };

/* The stream, times a norm's weights of 1, with signs. */
void selftest_rotation(struct rig *r)
{
    struct scratch *x = &r->session.scratch;
    const char *name = kernel_module(KERNEL_ROTATE)->name;
    float signs[WIDE], ones[WIDE], want[WIDE], squares[WIDE / ACT_BLOCK];
    double in[WIDE], out[WIDE];
    if (!r->scope->rotation)
        return;
    rig_begin(r, 1);
    r->engine.int8 = false;
    float *stream = rig_values(r, WIDE, 2);
    for (int i = 0; i < WIDE; i++) {
        ones[i] = 1;
        signs[i] = rig_value(r) < 0 ? -1 : 1;
        in[i] = (double)stream[i] * signs[i];
        squares[i / ACT_BLOCK] = 1;
    }
    ref_hadamard(in, WIDE, out);
    for (int i = 0; i < WIDE; i++)
        want[i] = (float)out[i];
    x->residual = rig_buffer(r, stream, sizeof want);
    x->input.ss = rig_buffer(r, squares, sizeof squares);
    x->rotated = rig_planes_open(r, WIDE);
    const struct matrix m = { .cols = WIDE, .signs = rig_span(r, signs, sizeof signs) };
    struct gpu_span norm = rig_span(r, ones, sizeof ones);
    if (r->rc == 0)
        r->rc = forward_rotate(&r->rec, &m, ROTATE_STREAM, norm);
    rig_run(r);
    float *got = rig_planes(r, &x->rotated, WIDE, false);
    rig_compare(r, name, got, want, WIDE, 1e-4);
    free(got);
    free(stream);
}
