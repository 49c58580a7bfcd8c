/* engine.h - language models on a Vulkan device; the only header of engine/
 * that app/ includes.
 *
 *   model    an opened GGUF file: metadata, vocabulary, chat template. Needs
 *            no device; a file without weights can still tokenise.
 *   engine   a model's weights on a device: immutable, shared by sessions.
 *   session  one token timeline with its KV rows and recurrent state.
 *
 * Functions return 0, or -1 with the reason in err. Nothing here prints. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/record.h"
#include "base/tokens.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;
struct engine;
struct session;

/* ---- model ------------------------------------------------------------- */

/* How much a model is to reason, where its template knows degrees of it. */
enum effort { EFFORT_DEFAULT, EFFORT_LOW, EFFORT_MEDIUM, EFFORT_XHIGH, EFFORT_COUNT };

struct model_info {
    const char *path, *architecture, *name; /* as in the file: hostile text */
    const char *family;      /* chat template family: "chatml", "qwen3.5", ... */
    const char *quantisation; /* mix by bytes: "Q2_0 68%, Q8_0 31%, F32 1%" */
    const char *refusal;     /* NULL if Tern chats with it, else one line: why
                              * not; of several reasons the first */
    const char *assumed;     /* NULL, or one line: what had to be assumed about the
                              * chat format */
    const char *aside;       /* NULL, or one line: what of the file is not used */
    bool computes;           /* the device can run its weights, be it without
                              * text: the vocabulary may be what is refused */
    bool thinking_default;   /* the template starts in thinking mode */
    bool has_thinking;       /* the template can open an answer with thinking */
    enum effort effort;      /* it has degrees of thinking, and this is the usual one;
                              * else EFFORT_DEFAULT */
    uint64_t file_bytes, weight_bytes, n_params;
    uint32_t n_layers, n_recurrent, n_attention; /* decoder layers */
    uint32_t n_embd, n_vocab, n_expert, n_expert_used;
    uint32_t ctx_tokens;     /* trained context */
    uint32_t kv_bytes_per_token; /* f16 keys and values, all layers */
    uint64_t state_bytes;    /* recurrent state of one timeline */
    uint32_t n_tensors, n_metadata;
    const char *tokenizer_id; /* hex fingerprint of vocabulary and merges */
};

/* Maps the file and checks it whole. A file that holds a vocabulary but no
 * runnable weights opens; info->refusal then says why it cannot chat. */
int model_open(struct model **out, const char *path, struct err *err);
void model_close(struct model *m);
/* -1 with the reason once another program has cut the file short: texts of tokens
 * lie in it. Thread-safety: any thread. */
int model_check(const struct model *m, struct err *err);
/* Owned by the model. Thread-safety: read-only after opening, any thread. */
const struct model_info *model_info(const struct model *m);

/* Device bytes that a model and one timeline take. */
struct model_memory {
    uint64_t weights;
    uint64_t kv, state; /* of the timeline */
    uint64_t scratch;   /* what passes work with */
};
/* With a context of so many tokens (0: as session_open chooses), f16 keys and
 * values, on a usual GPU. For a file without a whole decoder only the bytes of its
 * weights. */
void model_memory(const struct model *m, uint32_t ctx_tokens, struct model_memory *out);

enum { TOKENIZE_SPECIAL = 1 /* control-token text becomes control tokens */ };
/* Appends the ids of bytes [text, text+bytes). Any bytes are accepted. */
void model_tokenize(const struct model *m, const char *text, size_t bytes,
                    unsigned flags, struct tokens *out);
/* Appends the bytes of one token; a code point may span tokens. Control
 * tokens add nothing unless flags has TOKENIZE_SPECIAL. */
void model_detokenize(const struct model *m, int32_t id, unsigned flags,
                      struct buf *out);
/* Whether this id ends a generation. */
bool model_is_end(const struct model *m, int32_t id);
/* Ids of <think> and </think>, or -1. */
int32_t model_think_begin(const struct model *m);
int32_t model_think_end(const struct model *m);

/* One turn of a conversation. With ids, these are used as they are (the whole
 * turn as it was evaluated) and text is ignored. */
struct turn {
    enum role role;
    const char *text;
    size_t text_bytes;
    const char *thinking; /* reasoning before an answer, or NULL: left out */
    size_t thinking_bytes;
    const int32_t *ids;
    size_t n_ids;
};
struct render_params {
    bool thinking;       /* how the answer starts, where the model can choose */
    bool generate;       /* end with the header of an assistant turn */
    enum effort effort;  /* of thinking, where the template knows degrees */
};
/* Appends the prompt's ids; starts[i] (n_turns + 1 entries, may be NULL) gets
 * the position in out where turn i begins, starts[n_turns] where the answer's
 * header does. Control-token text inside turns is ordinary text. */
int model_render(const struct model *m, const struct turn *turns, size_t n_turns,
                 const struct render_params *p, struct tokens *out, size_t *starts,
                 struct err *err);

/* ---- devices ----------------------------------------------------------- */

struct device_info {
    char name[256];        /* from the driver: hostile text */
    char driver[256], kind[16]; /* kind: discrete, integrated, virtual, cpu */
    uint32_t api_version, vendor_id;
    uint64_t memory_bytes; /* of the heap that weights would use */
    uint64_t buffer_bytes; /* largest storage-buffer range */
    uint32_t subgroup_size, shared_bytes, group_size; /* largest workgroup */
    bool int_dot, int64, f16, storage16, coopmat, timestamps, usable;
    char note[256];        /* why not usable, or what is slow */
};
/* Fills up to max entries, *n is the number found (0 is not an error).
 * *chosen gets the index that engine_open would take, -1 for none. */
int device_list(struct device_info *out, size_t max, size_t *n, int *chosen,
                struct err *err);
/* A kernel's result on small inputs against the plain C reference: its largest
 * error, relative to the values, and what rounding may make of it. */
typedef void device_test_fn(void *arg, const char *kernel, double error, double allowed);
/* Tests every kernel on a device (index + 1 in device_list order, 0: the chosen
 * one), in the shapes that passes use there; each, if not NULL, hears of every
 * result. -1 with the reason: the first kernel that computes wrongly, or what
 * failed. */
int device_test(int device, device_test_fn *each, void *arg, struct err *err);

/* Measures how fast a device (as engine_params.device) reads its own memory: the
 * best of half a second of runs over a buffer that no cache holds. Takes the
 * device to itself; the sum of what was read is checked. */
int device_bandwidth(int device, double *bytes_per_second, struct err *err);

/* ---- engine ------------------------------------------------------------ */

enum math_path { MATH_AUTO, MATH_INT8, MATH_FLOAT };

/* How the products of a chunk are made: each token by itself, or in tiles of
 * f16, by plain arithmetic or with cooperative matrices. TILES_NONE is for
 * recurrent mixers too: the same bits as from single tokens. */
enum tile_path { TILES_AUTO, TILES_NONE, TILES_PLAIN, TILES_MATRIX };

struct engine_params {
    int device;            /* index + 1 in device_list order, 0: choose */
    enum math_path math;   /* MATH_AUTO: int8 activations where they help */
    enum tile_path tiles;  /* TILES_AUTO: by device; none with MATH_FLOAT. Others
                            * are for comparing, whatever the chunk's length */
    uint32_t ctx_tokens;   /* of the session to come, the memory of which is checked
                            * for too; 0: as session_open chooses */
    bool validate;         /* load the Vulkan validation layers */
    const char *tested_folder; /* a device that was not tested yet with this driver
                            * and kernels is, and if it computes wrongly refused; in
                            * files here it is remembered. NULL: it is not tested */
    bool tested_read_only; /* nothing is remembered there */
    void (*progress)(void *arg, uint64_t done_bytes, uint64_t total_bytes);
    void *arg;
};
/* Uploads the weights; needs info.computes. m must outlive the engine. Refused
 * with the numbers, before anything is uploaded, if the device's free memory holds
 * no such model and session. */
int engine_open(struct engine **out, const struct model *m,
                const struct engine_params *p, struct err *err);
void engine_close(struct engine *e);

struct engine_info {
    struct device_info device;
    uint64_t device_bytes;   /* allocated now, sessions included */
    const char *math;        /* "int8" or "float" */
    const char *note;        /* slower paths in use and why; "" if none */
    uint32_t validation_errors; /* messages of the validation layers so far */
    bool lost;               /* the device is: only closing works */
};
void engine_info(const struct engine *e, struct engine_info *out);

/* ---- session ----------------------------------------------------------- */

enum kv_type { KV_F16, KV_F32 };

struct session_params {
    uint32_t ctx_tokens;     /* 0: the model's, at most 32,768 */
    enum kv_type kv;
    uint32_t chunk_tokens;   /* prefill tokens a submit; 0: by device */
    uint64_t snapshot_bytes; /* host memory for state snapshots; 0: 1 GiB */
    bool profile;            /* timestamps in every pass, for session_profile */
};
/* Thread-safety: a session belongs to one thread at a time; sessions of one
 * engine may not run at the same time (they share the device queue). */
int session_open(struct session **out, struct engine *e,
                 const struct session_params *p, struct err *err);
void session_close(struct session *s);
/* Runs a chunk and a decode step for nothing, so that the driver compiles the
 * kernels now and not at the first answer; the timeline is empty afterwards. */
int session_warm(struct session *s, struct err *err);
uint32_t session_ctx_tokens(const struct session *s);
/* Most prefill tokens a submit. */
uint32_t session_chunk_tokens(const struct session *s);

struct sync_result {
    size_t reused, evaluated; /* tokens; reused + evaluated == n - 1 */
    double seconds;
    bool cancelled;           /* what was evaluated stays reusable */
};
struct sync_params {
    const size_t *marks;      /* positions at which to keep a state snapshot, */
    size_t n_marks;           /* ascending */
    void (*progress)(void *arg, size_t done, size_t total);
    void *arg;
    const atomic_bool *cancel; /* looked at between chunks; NULL: never */
};
/* Makes the timeline equal ids[0..n): n - 1 tokens evaluated, the last one
 * pending as the input of the next decode step. Keeps the longest common
 * prefix; a recurrent state cannot be rewound, so a timeline that diverges
 * earlier restarts from the nearest snapshot at or before the divergence. A
 * model without recurrent layers goes back to any position. */
int session_sync(struct session *s, const int32_t *ids, size_t n,
                 const struct sync_params *p, struct sync_result *result,
                 struct err *err);

struct sampler_params {
    float temperature;   /* 0: greedy */
    uint32_t top_k;      /* 0: SAMPLER_MAX_K */
    float top_p, min_p;  /* top_p 0 means 1 */
    float repeat_penalty, presence_penalty, frequency_penalty; /* 0: off */
    uint64_t seed;
};
enum { SAMPLER_MAX_K = 256, DECODE_MAX_STEPS = 64 };
/* What the model's family recommends, with thinking or without; the seed is 0. */
void model_sampling(const struct model *m, bool thinking, struct sampler_params *out);

/* Up to `steps` (1..DECODE_MAX_STEPS) new tokens in one submit; stops after a
 * token that ends generation. ids gets *n_ids tokens; each is in the timeline,
 * the last one pending. The same seed gives the same ids for any division
 * into steps. Fails without effect when the context is full. */
int session_decode(struct session *s, uint32_t steps, const struct sampler_params *p,
                   int32_t *ids, size_t *n_ids, struct err *err);
/* Logits [n_vocab] from which the last id of the last decode was taken,
 * before penalties. */
int session_logits(struct session *s, float *out, struct err *err);
/* Device time of the last chunk, or of the last decoded token, by kind of step. */
struct step_time {
    const char *label; /* static */
    uint32_t steps;    /* dependent ones: each waits for the one before */
    double seconds;
    uint64_t bytes;    /* of weights and caches that they must read */
};
enum profile_pass { PROFILE_PREFILL, PROFILE_DECODE };
enum { PROFILE_MAX_KINDS = 48 };
/* Kinds in the order of their first step; out has room for PROFILE_MAX_KINDS.
 * Fails without session_params.profile, on devices without timestamps, and
 * before the first such pass. */
int session_profile(struct session *s, enum profile_pass pass, struct step_time *out,
                    size_t *n, struct err *err);
/* How many tokens of a prompt session_sync would find evaluated already. */
size_t session_reusable(const struct session *s, const int32_t *ids, size_t n);
/* Tokens in the timeline (the pending one included), and their ids. */
size_t session_tokens(const struct session *s, const int32_t **ids);
/* Host bytes that state snapshots use now. */
uint64_t session_snapshot_bytes(const struct session *s);

/* ---- timelines on disk -------------------------------------------------- */

/* A folder holds one conversation: KV rows in a file that only grows, and a file
 * for the recurrent state of each kept point (snapshot_file.h has the format).
 * Files of another model, KV type or arithmetic lie beside them untouched. */
enum { SESSION_NAME_BYTES = 72 };

struct session_write_params {
    const char *dir;           /* created, 0700, if it is not there */
    size_t pos;                /* tokens to keep; 0: all that were evaluated, else
                                * one of the marks still in memory */
    const atomic_bool *cancel; /* looked at between pieces; NULL: never */
};
struct session_write_result {
    size_t tokens;          /* kept on disk now; 0 unless it succeeded */
    uint64_t kv_bytes, state_bytes; /* sizes of the files */
    uint64_t written_bytes; /* by this call */
    double seconds;
    bool cancelled;
    bool removed;           /* a file that could not be used; reason says which */
    struct err reason;
    char kv_name[SESSION_NAME_BYTES], state_name[SESSION_NAME_BYTES]; /* in dir */
};
/* Appends the rows that the file lacks, then writes the state. After a failure
 * or the death of the program at any moment, what is on disk is usable: whole
 * points only. The timeline itself is not changed. */
int session_write(struct session *s, const struct session_write_params *p,
                  struct session_write_result *result, struct err *err);

struct session_read_params {
    const char *dir;           /* need not exist */
    const int32_t *ids;        /* of a prompt; the last one is left to evaluate */
    size_t n;
    const atomic_bool *cancel;
};
struct session_read_result {
    size_t tokens;       /* the timeline is ids[0, tokens) now; 0: it was left */
    uint64_t bytes;      /* read */
    double seconds;
    unsigned n_removed;  /* files that could not be used */
    struct err reason;   /* which was the first, and why */
};
/* Goes to the deepest point on disk that ids agree with, if session_sync would
 * have to evaluate more without. All that is read is checked, ids one by one. A
 * bad file is removed and costs no more than evaluating: -1 is a failure of the
 * device only. */
int session_read(struct session *s, const struct session_read_params *p,
                 struct session_read_result *result, struct err *err);

#endif
