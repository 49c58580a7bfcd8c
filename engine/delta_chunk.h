/* delta_chunk.h - the chunked delta rule: a recurrent mixer for many tokens at
 * once, as four dispatches one after the other (engine/kernel.h DELTA_CONV,
 * DELTA_SOLVE, DELTA_SCAN, DELTA_EMIT). The same result as the DELTA kernel,
 * but for rounding, and the same state and conv history left behind. */
#ifndef ENGINE_DELTA_CHUNK_H
#define ENGINE_DELTA_CHUNK_H

#include "engine/kernel.h"
#include "engine/tune.h"

/* Scratch memory between the steps (shaders/delta_chunk.glsl). */
enum delta_scratch {
    DELTA_KQ,
    DELTA_K,
    DELTA_V,
    DELTA_SOLVED,
    DELTA_PACE,
    DELTA_SCRATCH
};
/* Bytes of each for up to `tokens` tokens. */
void delta_chunk_scratch(const struct delta_tuning *t, const struct push_delta *p,
                         uint32_t tokens, uint64_t bytes[DELTA_SCRATCH]);

/* Workgroup memory, in bytes, of the step that needs most. */
uint32_t delta_chunk_shared(const struct delta_tuning *t, const struct push_delta *p);

/* What a mixer works on; see DELTA in engine/kernel.h. */
struct delta_spans {
    struct gpu_span ctl, proj, history, taps, dt, a, norm, state;
    struct gpu_span x, s, ss; /* the planes that it makes */
    struct gpu_span scratch[DELTA_SCRATCH];
};

struct delta_step {
    const struct gpu_module *module;
    uint32_t spec[TUNING_SPEC], n_spec;
    struct gpu_dispatch dispatch; /* all but the kernel; push is the caller's */
};

enum { DELTA_STEPS = 4 };
/* The steps of a pass of up to `tokens` tokens, in order. p must outlive their
 * recording. */
void delta_chunk_steps(struct delta_step steps[DELTA_STEPS], const struct delta_tuning *t,
                       const struct push_delta *p, const struct delta_spans *spans,
                       uint32_t tokens, bool int8);

#endif
