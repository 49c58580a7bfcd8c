/* push.h - what host and shaders agree on: push constants and the control
 * block. Read by C and by GLSL; all members are 4 bytes wide, so that std430
 * and C lay them out alike. */
#ifndef SHADERS_PUSH_H
#define SHADERS_PUSH_H

#ifndef GL_core_profile
#include <stdint.h>
typedef uint32_t uint;
#endif

#define ACT_BLOCK   32  /* values that share one int8 activation scale */
#define HALF_COLS   64  /* f16 activations: a token's are padded to a multiple */
#define STATE_DIM   128 /* keys and values of one delta-net head */
#define CTL_MAX_IDS 64  /* decode steps a submit */
#define CTL_MAX_EOG 16  /* ids that end a generation */
#define CTL_MAX_TOK 512 /* prefill tokens a submit */
#define SAMPLE_MAX_K 256
#define SELECT_MAX_EXPERTS 512
#define SELECT_MAX_SLOTS 16 /* experts a token */

/* The control block: one per session, in device memory that the host writes
 * between submits. Kernels read it; only `sample` advances it. */
struct ctl_block {
    uint pos;       /* position of the first token of this pass */
    uint n_tokens;  /* tokens of this pass, 1..CTL_MAX_TOK */
    uint side;      /* which half of the conv history holds the current rows */
    uint stop;      /* nonzero: every kernel returns at once */
    uint n_out;     /* ids written to out_block so far */
    uint n_eog;
    uint top_k;     /* 1..SAMPLE_MAX_K; 1 is greedy */
    uint seed_lo, seed_hi;
    float inv_temperature;
    float top_p, min_p;             /* 1 and 0 are off */
    float repeat_penalty;           /* 1 is off */
    float presence_penalty, frequency_penalty; /* 0 is off */
    uint n_vocab;
    uint eog[CTL_MAX_EOG];
    uint tokens[CTL_MAX_TOK];       /* input ids of this pass */
};

/* What the host reads back, in host-cached memory. */
struct out_block {
    uint n_out;
    uint stop;
    uint ids[CTL_MAX_IDS];
};

/* Gathers rows of the embedding into the residual stream. */
struct push_embed {
    uint cols;        /* n_embd */
    uint units;       /* 16-byte code units a row */
};

/* y[t][r] = factor(t) * sum_c W[r][c] * act[t][c], then an epilogue. */
struct push_product {
    uint rows;        /* matrix rows */
    uint cols;        /* matrix columns, a multiple of ACT_BLOCK */
    uint units;       /* 16-byte code units a row */
    float eps;        /* of the RMS norm */
    uint out_stride;  /* floats from one token to the next in out */
    uint out_offset;  /* first float of row 0 */
    uint list_at;     /* tiles of experts: see push_group */
};

/* Activation planes to f16. */
struct push_half {
    uint cols;        /* a multiple of ACT_BLOCK */
    float eps;        /* of the RMS norm */
    uint vectors;     /* a token */
};

/* A buffer read for its speed. */
struct push_read {
    uint units;       /* of 16 bytes */
};

/* The products of a chunk with its experts: what they share of the work. Words
 * of `groups`: how many tiles; from GROUP_HEAD on for each expert, first pair in
 * the list, pairs; from list_at on the list, of token * slots + slot. */
#define GROUP_HEAD 4
#define GROUP_TILE 4
struct push_group {
    uint experts;
    uint list_at;
};

struct push_combine {
    uint cols;        /* n_embd */
};

/* What activations that are to be rotated come from, spec constant 2. */
#define ROTATE_STREAM 0 /* the residual stream, times a norm's weights */
#define ROTATE_FLOATS 1 /* a plane of f32 */
#define ROTATE_HEADS  2 /* the same, with an RMS factor for STATE_DIM columns each */
#define ROTATE_SWIGLU 3 /* f32 in blocks of 32 gate, 32 up */
struct push_rotate {
    uint cols;        /* a multiple of 1024 */
    float eps;        /* of the RMS norm */
    uint n_k, n_v;    /* not 0: heads go from tiled to grouped order */
};

/* Causal convolution, gates and the delta rule, one v head slice a group. */
struct push_delta {
    uint n_k, n_v;       /* heads */
    uint conv_dim;       /* 2 * n_k * STATE_DIM + n_v * STATE_DIM */
    uint proj_stride;    /* floats a token of proj: qkv | z | beta | alpha */
    uint z_offset, beta_offset, alpha_offset;
    uint ba_grouped;     /* 1: beta/alpha rows interleaved per k head */
    uint grouped_heads;  /* 1: v head j reads k head j / (n_v / n_k) */
    float eps;
};

/* q/k norm, RoPE, K/V write. */
struct push_qk {
    uint n_head, n_head_kv;
    uint proj_stride;    /* floats a token of proj: (q|gate per head) | k | v */
    uint q_width;        /* of these, one head's q and gate: 2 * D, or D without */
    uint k_offset, v_offset;
    uint rope_pairs;     /* rotated dims / 2 */
    float eps;
};

/* Choice of the experts of a token. */
struct push_select {
    uint experts;
    float scale;         /* of their weights */
};

struct push_attend {
    uint n_head, n_head_kv;
    uint splits;
    float scale;
};

struct push_merge {
    uint n_head;
    uint splits;
    uint proj_stride;    /* the gate of head a is at proj + a * q_width + D */
    uint q_width;        /* D: there is none */
};

struct push_sample {
    uint advance;        /* 1: pos, tokens[0] and side move to the next token */
};

#endif
