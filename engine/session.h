/* session.h - inside of a session, for engine/ only.
 *
 * Invariants: ids.len is evaluated or evaluated + 1 (one token pending); rows
 * [0, evaluated) of every KV cache and the recurrent state belong to exactly
 * ids[0, evaluated). */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include "engine/delta_chunk.h"
#include "engine/device_model.h"
#include "engine/gpu.h"

/* The planes of an activation vector, engine/kernel.h. */
struct planes {
    struct gpu_buffer x, s, ss;
};

/* Scratch for the tokens of one pass. */
struct scratch {
    struct gpu_buffer residual;  /* f32[t][n_embd] */
    struct planes input;         /* of n_embd: what a layer's products read */
    struct planes mixed;         /* of the widest mixer or FFN result */
    struct planes rotated;       /* of the widest input of a rotated matrix */
    struct gpu_buffer proj;      /* f32[t][proj stride]; with experts also
                                  * f32[t][n_embd], the shared one's result */
    struct gpu_buffer parts;     /* of split products; see engine/kernel.h */
    struct gpu_buffer halves, factors; /* see KERNEL_TO_HALF; with tiles */
    struct gpu_buffer q;         /* f32[t][n_head][head_dim] */
    struct gpu_buffer partials;  /* f32[t][n_head][splits][head_dim + 2] */
    struct gpu_buffer logits;    /* f32[n_vocab] */
    struct gpu_buffer delta[DELTA_SCRATCH]; /* of the chunked delta rule */
    /* with experts: planes of what each chosen one makes, t * n_expert_used
     * vectors of n_ff_expert; f32[t][n_expert + 1]; see KERNEL_SELECT */
    struct planes experts;
    struct gpu_buffer router, selection;
    struct gpu_buffer groups, expert_out; /* with tiles: see KERNEL_GROUP, COMBINE */
};

struct state_layout {
    uint64_t matrix_bytes;  /* of one recurrent layer */
    uint64_t history_bytes; /* both sides of its conv history */
    uint64_t layer_bytes;
    uint64_t bytes;
};

/* What a recorded list computes. */
struct pass {
    uint32_t tokens; /* at most; ctl.n_tokens says how many */
    uint32_t splits; /* of the KV history in each attention layer */
    bool head;       /* with logits and a sampled id; tokens is then 1 */
};

struct snapshot {
    size_t pos;      /* tokens evaluated */
    uint32_t side;
    void *state;     /* state_layout.bytes */
};

struct session {
    struct engine *engine;
    struct session_params params;
    struct gpu_buffer ctl, out, counts, rope, state;
    struct gpu_buffer *kv;   /* per attention layer: keys, then values */
    uint32_t n_kv;
    struct scratch scratch;
    struct state_layout layout;
    struct gpu_commands *decode, *prefill;
    struct pass decode_pass, prefill_pass; /* as recorded; tokens 0: none */
    struct tokens ids;
    size_t evaluated;
    uint32_t side;           /* current half of the conv histories */
    bool has_logits;
    bool unknown;            /* a pass failed: the state must be made anew */
    struct snapshot *snapshots; /* ascending positions */
    size_t n_snapshots;
    uint64_t weights_hash;   /* 0: not known yet; see snapshot_file.h */
};

/* Whether any prefix of the timeline can be gone back to: no layer is recurrent. */
bool session_rewinds(const struct session *s);
/* Bytes of one layer's keys (values take as many). */
uint64_t session_kv_plane_bytes(const struct session *s);
/* Most tiles of experts of a pass. */
uint32_t session_group_tiles(const struct engine *e, uint32_t tokens);
/* Fewest splits of a history of `depth` positions: what a prefill pass uses. */
uint32_t session_least_splits(const struct session *s, size_t depth);
/* What session_open chooses where nothing was asked for. */
void session_defaults(struct session_params *p, const struct engine *e);
/* Bytes that session_memory_open takes with these parameters, added to out. */
void session_memory_plan(const struct session *s, struct model_memory *out);
/* Whether the device has room for them (memory.c). */
int session_check_memory(const struct session *s, struct err *err);
/* Allocates and clears everything a pass needs (session_memory.c). */
int session_memory_open(struct session *s, struct err *err);
void session_memory_close(struct session *s);

/* Records the kernels of a pass (forward.c). */
int forward_record(struct session *s, struct gpu_commands *c, const struct pass *p,
                   struct err *err);

/* Saves the state after `evaluated` tokens if the budget allows (snapshot.c);
 * making room drops the middle ones first. */
int snapshot_keep(struct session *s, struct err *err);
/* Goes back to the newest snapshot at or before pos, or to the start; sets
 * evaluated and drops snapshots beyond it. */
int snapshot_rewind(struct session *s, size_t pos, struct err *err);
/* Drops the snapshots beyond pos; the timeline has become another one there. */
void snapshot_forget(struct session *s, size_t pos);
void snapshot_release(struct session *s);

#endif
