/* weights.h - a model's weights on the device, in the order of their use. */
#ifndef ENGINE_WEIGHTS_H
#define ENGINE_WEIGHTS_H

#include "engine/model.h"
#include "engine/pack.h"

enum { PROJ_MAX = 4 };

/* One projection matrix of a layer's input and where its rows land in proj. */
struct projection {
    struct matrix m;
    uint32_t offset; /* floats */
};

struct device_layer {
    bool recurrent;
    struct gpu_span attn_norm, post_norm; /* f32[n_embd] */
    struct projection proj[PROJ_MAX];     /* tensors of one format are joined */
    uint32_t n_proj;
    struct matrix out, gate_up, down;     /* with experts: rows of all of them */
    /* experts */
    struct matrix router;                 /* f32: a row an expert, the shared gate */
    struct matrix shared_gate_up, shared_down;
    /* recurrent */
    struct gpu_span conv1d, dt, a, ssm_norm;
    /* attention */
    struct gpu_span q_norm, k_norm;
};

/* Where the parts of a projection's result start, in floats. */
struct proj_layout {
    uint32_t stride;
    uint32_t z, beta, alpha; /* recurrent; qkv is at 0 */
    uint32_t k, v;           /* attention; the heads' q and gates are at 0 */
};

struct device_weights {
    struct arena arena;
    struct matrix embed;
    struct matrix output;           /* the same spans as embed when tied */
    struct gpu_span output_norm;
    struct proj_layout recurrent, attention;
    struct device_layer *layers;
    uint32_t n_layers;
    struct gpu_span signs[ROTATION_MAX_WIDTHS]; /* by width, as they were needed */
    uint32_t n_signs;
};

struct weights_progress {
    void (*tell)(void *arg, uint64_t done_bytes, uint64_t total_bytes); /* or NULL */
    void *arg;
};

/* Repacks and uploads every tensor of the decoder. */
int device_weights_open(struct device_weights *w, struct gpu *gpu, const struct model *m,
                        const struct weights_progress *progress, struct err *err);
void device_weights_close(struct device_weights *w);
/* Device bytes that the weights of a model fill, and that are allocated for them,
 * which is somewhat more. */
uint64_t device_weights_bytes(const struct model *m);
uint64_t device_weights_allocation(const struct model *m);
/* Where the parts of projections start; device_weights_open does it too. */
void device_weights_layout(struct device_weights *w, const struct hparams *hp);

#endif
