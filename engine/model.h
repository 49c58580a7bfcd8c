/* model.h - inside of an opened model, for engine/ only: hyper-parameters and
 * tensors by role. Each shape was checked against the hyper-parameters. */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include "engine/engine.h"
#include "engine/gguf.h"
#include "engine/rope.h"
#include "engine/rotation.h"

struct vocab;
struct template;

enum {
    MODEL_MAX_LAYERS = 1000,
    MODEL_MAX_HEADS = 1024,
    MODEL_MAX_HEAD_DIM = 256,
    MODEL_STATE_DIM = 128, /* of a delta-net head: keys and values alike */
    MODEL_CONV_KERNEL = 4
};

/* How an architecture differs from the others. For text all of them turn the
 * same pairs by the same angles, so rotation is not among the differences. */
enum arch_id { ARCH_QWEN35, ARCH_QWEN35MOE, ARCH_QWEN3NEXT, ARCH_QWEN3, ARCH_COUNT };
struct arch {
    enum arch_id id;
    const char *name;
    bool moe;           /* experts instead of a dense FFN */
    bool grouped_heads; /* value head j reads key head j / (n_v / n_k), not
                         * j mod n_k */
    bool fused_ba;      /* beta and alpha come from one product, ssm_ba */
    bool plain;         /* attention layers only, and no gate on their result */
};

struct hparams {
    const struct arch *arch;
    uint32_t n_layer;             /* decoder layers, MTP blocks excluded */
    uint32_t n_recurrent, n_attention; /* of these */
    uint32_t n_embd, n_vocab, ctx_tokens;
    float rms_eps;
    uint32_t n_ff;                /* dense FFN width, 0 with experts */
    /* attention layers */
    uint32_t n_head, n_head_kv, head_dim;
    uint32_t q_width;             /* rows of a head in attn_q: its query, and its
                                   * gate unless the architecture is plain */
    uint32_t rope_dims;
    float rope_base, attn_scale;  /* attn_scale is never 0 */
    struct rope_scaling scaling;
    /* recurrent layers */
    uint32_t conv_kernel, state_dim;
    uint32_t n_k_heads, n_v_heads;
    uint32_t key_dim, value_dim;  /* heads * state_dim */
    uint32_t conv_dim;            /* 2 * key_dim + value_dim */
    bool grouped_heads;           /* of this file; see struct arch */
    /* experts; 0 in dense models */
    uint32_t n_expert, n_expert_used, n_ff_expert, n_ff_shared;
    float expert_scale;
};

/* Shapes {ne0, ne1, ...}; E n_embd, K key_dim, VD value_dim, D head_dim. Roles
 * that a layer does not have are NULL. */
struct layer {
    bool recurrent;
    const struct tensor *attn_norm, *post_norm; /* {E} */
    /* recurrent */
    const struct tensor *qkv;      /* {E, 2K + VD} rows: q, k, v heads */
    const struct tensor *gate;     /* {E, VD} */
    const struct tensor *ssm_in;   /* {E, 2K + 2VD} instead of qkv and gate */
    const struct tensor *conv1d;   /* {4, 2K + VD}, tap 3 is the newest */
    const struct tensor *dt, *a;   /* {n_v}; a holds -exp(A_log) */
    const struct tensor *alpha, *beta; /* {E, n_v} */
    const struct tensor *ba;       /* {E, 2 n_v} instead of alpha and beta */
    const struct tensor *ssm_norm; /* {128} */
    const struct tensor *ssm_out;  /* {VD, E} */
    /* attention */
    const struct tensor *q;        /* {E, q_width n_head}: a head's q, its gate */
    const struct tensor *k, *v;    /* {E, D n_head_kv} */
    const struct tensor *o;        /* {D n_head, E} */
    const struct tensor *q_norm, *k_norm; /* {D} */
    /* dense FFN */
    const struct tensor *ffn_gate, *ffn_up; /* {E, n_ff} */
    const struct tensor *ffn_down;          /* {n_ff, E} */
    /* experts, X of width M, the shared one of width S */
    const struct tensor *router;                /* {E, X} */
    const struct tensor *gate_exps, *up_exps;   /* {E, M, X} */
    const struct tensor *gate_up_exps;          /* {E, 2M, X} instead of both */
    const struct tensor *down_exps;             /* {M, E, X} */
    const struct tensor *shared_router;         /* {E} */
    const struct tensor *gate_shexp, *up_shexp; /* {E, S} */
    const struct tensor *down_shexp;            /* {S, E} */
};

struct weights {
    const struct tensor *token_embd;  /* {E, n_vocab} */
    const struct tensor *output_norm; /* {E} */
    const struct tensor *output;      /* {E, n_vocab}; token_embd when tied */
    struct layer *layers;             /* n_layer */
    struct rotation rotation;         /* of tensors that are marked as rotated */
    struct tensor **views;            /* parts of fused tensors, and those with */
    size_t n_views;                   /* a factor or rotated */
};

struct model {
    struct model_info info;
    struct gguf *file;
    bool complete;       /* hp and w hold a whole decoder, also when refused */
    struct hparams hp;
    struct weights w;
    struct vocab *vocab;   /* NULL: the file has none that is understood */
    struct template *tmpl; /* NULL without vocab */
    char *architecture, *name, *quantisation, *refusal, *aside; /* text of info */
};

/* The row of an architecture name, NULL for another name. */
const struct arch *arch_find(const char *name, size_t bytes);
/* Name of a key of the architecture: "qwen35.SUFFIX". */
enum { MODEL_KEY_BYTES = 128 };
void model_key(char key[MODEL_KEY_BYTES], const struct arch *arch, const char *suffix);
/* Scaling of the rotation; results as below. */
int rope_scaling_read(struct rope_scaling *s, const struct gguf *g,
                      const struct arch *arch, struct err *err);
/* Hyper-parameters from the keys, all bounds checked: 1, 0 with the reason in
 * err for what Tern cannot run, -1 with the reason for a malformed file. */
int hparams_read(struct hparams *hp, const struct gguf *g, const struct arch *arch,
                 struct err *err);
/* Finds and checks every tensor of the decoder; same results. */
int weights_find(struct weights *w, struct hparams *hp, const struct gguf *g,
                 struct err *err);
void weights_release(struct weights *w);
/* Whether the device can run the tensor formats and layers found: 1, or 0 with
 * the reason in err. */
int weights_runnable(const struct weights *w, const struct hparams *hp,
                     const struct gguf *g, struct err *err);
/* Whether a tensor is part of the decoder: not vision, audio, MTP. */
bool tensor_is_decoder(const struct tensor *t, uint32_t n_layer);

#endif
