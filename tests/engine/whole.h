/* whole.h - a model on a device with the validation layers on, for tests of
 * whole passes. Every failure ends the test. */
#ifndef TESTS_ENGINE_WHOLE_H
#define TESTS_ENGINE_WHOLE_H

#include "base/mem.h"
#include "engine/engine.h"
#include "tests/engine/drivers.h"
#include "tests/json.h"
#include "tests/test.h"

struct whole {
    struct model *model;
    struct engine *engine;
    uint32_t n_vocab;
};

#define OK(call, err)                                                          \
    do {                                                                       \
        if ((call) < 0) {                                                      \
            printf("# %s:%d: %s: %s\n", __FILE__, __LINE__, #call,             \
                   (err)->text);                                               \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/* Chunks and single tokens are made with the same arithmetic, bit for bit, unless
 * tiles are asked for. */
static inline struct whole whole_open_tiles(const char *path, enum math_path math,
                                            enum tile_path tiles)
{
    struct whole w = { 0 };
    struct err err = { "" };
    OK(model_open(&w.model, path, &err), &err);
    struct engine_params p = { .math = math, .tiles = tiles, .validate = drivers_validate() };
    OK(engine_open(&w.engine, w.model, &p, &err), &err);
    w.n_vocab = model_info(w.model)->n_vocab;
    return w;
}

static inline struct whole whole_open(const char *path, enum math_path math)
{
    return whole_open_tiles(path, math, TILES_NONE);
}

/* Fails the test if the validation layers said anything. */
static inline void whole_close(struct whole *w)
{
    struct engine_info info;
    engine_info(w->engine, &info);
    CHECK(info.validation_errors == 0);
    engine_close(w->engine);
    model_close(w->model);
}

static inline struct session *whole_session(const struct whole *w,
                                            const struct session_params *p)
{
    struct session *s;
    struct err err = { "" };
    OK(session_open(&s, w->engine, p, &err), &err);
    return s;
}

/* Whether logits of a chunk and of single tokens agree: bit for bit on a CPU,
 * whose kernels add in the same order for both; elsewhere rows are shared out
 * otherwise, and it is a small part of their range. */
static inline bool whole_agree(const struct whole *w, const float *a, const float *b)
{
    struct engine_info info;
    engine_info(w->engine, &info);
    if (!strcmp(info.device.kind, "cpu"))
        return !memcmp(a, b, w->n_vocab * sizeof *a);
    float low = b[0], high = b[0], worst = 0;
    for (uint32_t i = 0; i < w->n_vocab; i++) {
        float d = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
        low = b[i] < low ? b[i] : low;
        high = b[i] > high ? b[i] : high;
        worst = d > worst || d != d ? d : worst;
    }
    bool near = worst <= 0.01f * (high - low);
    if (!near)
        printf("# off by %g of %g\n", (double)worst, (double)(high - low));
    return near;
}

/* A prompt, then n greedy ids with `steps` a submit. Returns the number of ids:
 * fewer after a stop. */
static inline size_t whole_greedy(struct session *s, const int32_t *prompt, size_t n_prompt,
                                  size_t n, uint32_t steps, int32_t *ids)
{
    struct err err = { "" };
    struct sampler_params greedy = { 0 };
    OK(session_sync(s, prompt, n_prompt, NULL, NULL, &err), &err);
    size_t made = 0;
    while (made < n) {
        uint32_t want = steps < n - made ? steps : (uint32_t)(n - made);
        size_t got;
        int32_t step[DECODE_MAX_STEPS];
        OK(session_decode(s, want, &greedy, step, &got, &err), &err);
        memcpy(ids + made, step, got * sizeof *ids);
        made += got;
        if (got < want)
            break;
    }
    return made;
}

/* A prompt and its first greedy id, with the logits that it was taken from. */
static inline int32_t whole_first(struct session *s, const int32_t *prompt,
                                  size_t n_prompt, float *logits)
{
    struct err err = { "" };
    int32_t id = -1;
    whole_greedy(s, prompt, n_prompt, 1, 1, &id);
    OK(session_logits(s, logits, &err), &err);
    return id;
}

/* The integers of a JSON array; malloced. */
static inline int32_t *json_ids(const struct json *a)
{
    int32_t *ids = mem_array(a->n, sizeof *ids);
    for (size_t i = 0; i < a->n; i++)
        ids[i] = (int32_t)json_number(json_at(a, i));
    return ids;
}

#endif
