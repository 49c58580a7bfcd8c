/* fake_engine.h - engine.h without a model: the answers come from a script, at
 * a given speed, so that tests of the front end are exact and need no device.
 * A token is a byte (id = byte + FAKE_BYTE) or one of the control ids below.
 * Set `fake` before a worker starts; read what was seen after it has answered. */
#ifndef TESTS_APP_FAKE_ENGINE_H
#define TESTS_APP_FAKE_ENGINE_H

#include "engine/engine.h"

enum {
    FAKE_END_OF_TEXT,
    FAKE_START,
    FAKE_END,
    FAKE_THINK,
    FAKE_END_THINK,
    FAKE_SYSTEM,
    FAKE_USER,
    FAKE_ASSISTANT,
    FAKE_BYTE = 16,
    FAKE_VOCAB = FAKE_BYTE + 256,
    FAKE_PROMPTS = 64,
};

struct fake_script {
    /* Given. An answer may hold "<think>" and "</think>"; the same ones again
     * after the last. Without any it is "ok". */
    const char *answers[8];
    double step_s, prefill_s, load_s; /* a token; a token; a model */
    double write_s;                   /* a timeline to disk */
    uint32_t kv_bytes, state_bytes;   /* of a token, of a state */
    uint32_t ctx_tokens, chunk_tokens;
    bool opens_thinking; /* the header of an answer ends in <think> */
    bool has_effort;     /* "effort N " begins a system turn when one is asked for */
    const char *model_fails, *engine_fails, *refusal;
    bool model_cut; /* by another program, in use */
    unsigned decode_fails_at, session_fails_at, engine_fails_at; /* nth call; 0: never */
    const char *model_name;                                      /* NULL: "Fake" */
    bool named_by_file; /* a model has its file's name; "bad" in it: cannot be read,
                         * "odd": is refused */

    /* Seen. */
    struct tokens prompts[FAKE_PROMPTS];
    unsigned n_prompts, n_decodes, n_sessions, n_engines, n_models;
    unsigned n_writes;   /* of timelines */
    atomic_uint n_reads; /* that found one; may be looked at meanwhile */
    unsigned max_steps;
    struct sampler_params sampler;
    enum effort effort; /* of the last prompt */
};

extern struct fake_script fake;

/* Another script, in a program that has used one. */
static inline void fake_begin(struct fake_script s)
{
    for (size_t i = 0; i < FAKE_PROMPTS; i++)
        tokens_release(&fake.prompts[i]);
    fake = s;
}

#endif
