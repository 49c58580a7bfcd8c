/* selftest_rig.h - what the parts of the self-test share: an engine and a session
 * without a model, in which dispatches are recorded like those of a pass.
 *
 * After a failure of the device all functions do nothing (rc is -1), so that the
 * checks need not look at each call. */
#ifndef ENGINE_SELFTEST_RIG_H
#define ENGINE_SELFTEST_RIG_H

#include "engine/forward.h"
#include "engine/ref_product.h"
#include "engine/selftest.h"

enum { RIG_BUFFERS = 40 };

struct rig {
    struct gpu *gpu;
    struct engine engine; /* pipelines, shapes and kinds of arithmetic are real */
    const struct selftest_scope *scope;
    struct model model;
    struct arch arch;
    struct session session;
    struct pass pass;
    struct recorder rec;
    struct gpu_commands *list;
    struct gpu_buffer buffers[RIG_BUFFERS];
    uint32_t n_buffers;
    struct arena arena;
    uint32_t noise;
    device_test_fn *each;
    void *arg;
    unsigned n_wrong;
    struct err wrong; /* the first kernel that computes wrongly */
    struct err *err;
    int rc;
};

/* In [-1, 1). */
float rig_value(struct rig *r);
/* n of them, times scale; malloced. */
float *rig_values(struct rig *r, size_t n, float scale);
/* Begins a check of a pass of so many tokens: no buffers, no record. */
void rig_begin(struct rig *r, uint32_t tokens);
/* A device buffer that holds data, or NaN where that is NULL; until rig_begin. */
struct gpu_buffer rig_buffer(struct rig *r, const void *data, uint64_t bytes);
struct gpu_span rig_span(struct rig *r, const void *data, uint64_t bytes);
/* Ends the record, runs it, waits. */
void rig_run(struct rig *r);
void rig_read(struct rig *r, const struct gpu_buffer *b, void *to, uint64_t bytes);
/* |got - want| <= allowed * (|want| + rms(want)) for all n, else the kernel computes
 * wrongly. */
void rig_compare(struct rig *r, const char *kernel, const float *got, const float *want,
                 size_t n, double allowed);

/* ---- inputs of products (selftest_data.c) -------------------------------------- */

/* Rows of random blocks in file format, with values of sane sizes; malloced. */
uint8_t *rig_weights(struct rig *r, enum quant type, size_t rows, size_t cols);
struct tensor rig_tensor(enum quant type, const uint8_t *data, size_t rows, size_t cols);
/* The file format that a device format keeps. */
enum quant rig_quant(enum device_format f);

/* Activations of some tokens: values, and their planes as the references and as the
 * device have them. */
struct vectors {
    float *values;           /* [tokens][n] */
    struct ref_planes *host; /* of each token */
    uint8_t *x;
    float *s, *ss;
    size_t n;
    uint32_t tokens;
    bool int8;
};
void vectors_make(struct vectors *v, struct rig *r, size_t n, uint32_t tokens, bool int8);
void vectors_release(struct vectors *v);
void vectors_upload(const struct vectors *v, struct rig *r, struct planes *to);
/* Planes with room for n values in all, and what is in them; malloced. int8 ones are
 * exact to half a step. */
struct planes rig_planes_open(struct rig *r, size_t n);
float *rig_planes(struct rig *r, const struct planes *p, size_t n, bool int8);

/* The parts (selftest_*.c). */
void selftest_products(struct rig *r);
void selftest_delta(struct rig *r);
void selftest_attention(struct rig *r);
void selftest_experts(struct rig *r);
void selftest_sample(struct rig *r);
void selftest_rotation(struct rig *r);

#endif
