/* record.h - the plain data that store, front end and commands exchange.
 * Text is UTF-8 as it was typed or generated, never sanitised in storage. */
#ifndef BASE_RECORD_H
#define BASE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROLES(X) X(SYSTEM, "system") X(USER, "user") X(ASSISTANT, "assistant")
#define STATES(X)                                                              \
    X(COMPLETE, "complete") /* nothing more will come */                       \
    X(PARTIAL, "partial")   /* being written, or the program died meanwhile */ \
    X(STOPPED, "stopped")   /* the user ended it */                            \
    X(LENGTH, "length")     /* a token limit ended it */                       \
    X(FAILED, "failed")     /* the engine failed; the text so far is kept */

#define ROLE_ROW(name, text)  ROLE_##name,
#define STATE_ROW(name, text) STATE_##name,
enum role { ROLES(ROLE_ROW) ROLE_COUNT };
enum message_state { STATES(STATE_ROW) STATE_COUNT };
#undef ROLE_ROW
#undef STATE_ROW

/* What an answer cost. Zero where it does not apply. */
struct message_stats {
    uint32_t prompt_tokens;    /* length of the whole prompt */
    uint32_t reused_tokens;    /* of these, not evaluated again */
    uint32_t evaluated_tokens; /* of these, evaluated for this answer */
    uint32_t generated_tokens; /* new tokens, thinking included */
    double ttft_ms;            /* request to first token */
    double prefill_tps;        /* evaluated tokens a second */
    double decode_tps;         /* generated tokens a second after the first */
    uint32_t thinking_tokens;  /* of those generated */
    double thinking_ms;        /* from the first of these to the last */
};

/* One node of a conversation's tree. */
struct message {
    int64_t id; /* 0 while not stored */
    int64_t chat_id;
    int64_t parent_id; /* 0: a root */
    enum role role;
    enum message_state state;
    int64_t created_ms; /* since 1970, UTC */
    char *text;         /* visible text, NUL-terminated, never NULL */
    size_t text_bytes;
    char *thinking; /* reasoning text or NULL */
    size_t thinking_bytes;
    int32_t *ids; /* exact token ids of the whole turn as evaluated, or
                   * NULL; they belong to the tokenizer of ids_model */
    size_t n_ids;
    char *ids_model; /* fingerprint of the tokenizer of ids, or NULL */
    char *model;     /* name of the model that wrote it, or NULL */
    struct message_stats stats;
    uint32_t siblings, sibling_index; /* versions of this turn, 0-based index */
};

struct message_list {
    struct message *v;
    size_t len;
};

/* Who gave a conversation its title; a later one may replace an earlier one's. */
enum title_source { TITLE_FIRST_MESSAGE, TITLE_MODEL, TITLE_USER };

struct chat {
    int64_t id;
    char *title; /* never NULL, may be empty */
    char *model; /* name of the last model used, may be empty, never NULL */
    int64_t created_ms, updated_ms;
    int64_t leaf_id;     /* message at the end of the shown branch, 0: none */
    uint32_t n_messages; /* on all branches */
    uint64_t n_bytes;    /* of their texts */
    bool pinned;
    enum title_source title_source;
    /* Only where one chat is asked for, else NULL. */
    char *model_path; /* file of the last model used, may be empty */
    char *settings;   /* of this conversation alone, as app/preset.h has them */
    char *draft;      /* typed and not sent yet */
};

struct chat_list {
    struct chat *v;
    size_t len;
};

/* Names as stored and printed; NULL-safe reverse look-up returns -1. */
const char *role_name(enum role r);
const char *state_name(enum message_state s);
int role_from_name(const char *name);
int state_from_name(const char *name);

void message_release(struct message *m);
void message_list_release(struct message_list *l);
void chat_release(struct chat *c);
void chat_list_release(struct chat_list *l);

#endif
