/* forward.h - recording of passes, for the forward*.c files only. */
#ifndef ENGINE_FORWARD_H
#define ENGINE_FORWARD_H

#include "engine/session.h"

/* What is being recorded; lives as long as one forward_record. */
struct recorder {
    struct session *s;
    struct engine *e;
    const struct hparams *hp;
    struct gpu_commands *c;
    const struct pass *pass;
    struct err *err;
};

/* RMS factor that a product applies to its result, spec constant 5. */
enum norm { NORM_NONE, NORM_ROW, NORM_HEADS };

/* One matrix times the pass's activations. */
struct product {
    const struct matrix *m;
    const struct planes *in, *next; /* next: not for EPILOGUE_STORE */
    enum norm norm;
    enum epilogue epilogue;
    struct gpu_span out;            /* STORE, RESIDUAL */
    struct gpu_span next_norm;      /* RESIDUAL */
    uint32_t out_stride, out_offset;
    bool beside;                    /* writes other rows than the one before */
    const char *label;
};
int forward_product(struct recorder *r, const struct product *p);
/* Whether the pass has tokens enough for tiles; the same product with them. */
bool forward_tiles(const struct recorder *r);
int forward_tile_product(struct recorder *r, const struct product *p);
/* Vectors of cols values to scratch.halves and factors, `vectors` a token. */
int forward_to_half(struct recorder *r, const struct planes *in, uint32_t cols,
                    enum norm norm, uint32_t vectors);

/* Looks the pipeline up, binds the control block, records. */
int forward_dispatch(struct recorder *r, struct gpu_dispatch *d, const struct gpu_module *m,
                     const uint32_t *spec, uint32_t n_spec);
/* Rows a workgroup makes, a multiple of what its epilogue needs. */
uint32_t forward_product_rows(const struct product_tuning *t, enum epilogue e);
/* Binds the three planes from binding `at` on; returns the next binding. */
uint32_t forward_bind_planes(struct gpu_dispatch *d, uint32_t at, const struct planes *p);
uint32_t forward_divide_up(uint32_t a, uint32_t b);

/* Whether the planes that a layer's mixer writes are of int8 (forward_rotate.c). */
bool forward_mixed_int8(const struct recorder *r, const struct device_layer *ly);
/* The input of a rotated matrix, from a ROTATE_x, into scratch.rotated. norm: of
 * the stream. */
int forward_rotate(struct recorder *r, const struct matrix *m, uint32_t source,
                   struct gpu_span norm);
/* Rows of a rotated embedding, in the stream, become what they stand for. */
int forward_unrotate(struct recorder *r, const struct matrix *m, struct gpu_span norm);

/* What stands between the projections and the out product of a recurrent layer
 * (forward_delta.c), number `index` of them. */
int forward_recurrent(struct recorder *r, const struct device_layer *ly, uint32_t index);

/* The feed-forward part of a layer with experts (forward_moe.c); as next_norm
 * the norm of what comes after it. */
int forward_experts(struct recorder *r, const struct device_layer *ly,
                    struct gpu_span next_norm);
/* The same for a pass with tokens enough to make tiles of those that share an
 * expert (forward_moe_tile.c), and its parts that both have. */
bool forward_expert_tiles(const struct recorder *r);
int forward_experts_tiled(struct recorder *r, const struct device_layer *ly,
                          struct gpu_span next_norm);
int forward_choose_experts(struct recorder *r, const struct device_layer *ly);
int forward_shared_gate_up(struct recorder *r, const struct device_layer *ly);
int forward_shared_down(struct recorder *r, const struct device_layer *ly);

#endif
