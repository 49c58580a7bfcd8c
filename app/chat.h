/* chat.h - what happens to a conversation: sending, answering, regenerating,
 * editing, switching branches. Turns wishes of a front end into rows of the
 * store and requests to the worker. The full-screen program, line mode and
 * `tern run` share it.
 * Thread-safety: one thread. */
#ifndef APP_CHAT_H
#define APP_CHAT_H

#include "base/err.h"
#include "base/log.h"
#include "base/record.h"

#include "storage/store.h"

#include "app/answer.h"
#include "app/lock.h"
#include "app/settings.h"
#include "app/title.h"
#include "app/worker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum model_phase { MODEL_NONE, MODEL_LOADING, MODEL_READY, MODEL_UNUSABLE };

/* The fields are for reading; they change in the functions below only. */
struct conversation {
    struct store *store;
    struct worker *worker;
    struct lock *lock;
    struct log *log;
    enum titles titles;
    struct chat_settings settings;     /* of the shown conversation (setup.h): these */
    struct chat_settings base;         /* over those of the configuration */
    const struct preset_list *presets; /* lent, or NULL */
    char *preset, *default_preset;     /* names or NULL: of the shown one, of new ones */
    struct buf own;                    /* lines of the shown one */
    char *forced;                      /* lines of the command line, or NULL */

    struct chat chat;         /* shown; id 0: a new one, not stored yet */
    struct message_list path; /* its stored branch, with room for one more */
    bool shared;              /* another program has it open too */

    enum model_phase phase;
    char *model_path;
    char *model_name;          /* "" while unknown */
    char *problem;             /* why there is no model, NULL while there is */
    const struct model *model; /* lent by the worker, NULL unless MODEL_READY */
    struct engine_info engine;
    uint32_t ctx_tokens;
    uint64_t load_done, load_total;

    struct answer answer; /* running, or the last one */
    bool stale;           /* path is to be read again: it lacks the answer */
    int64_t waiting_leaf; /* a message to be answered once there is a model, 0 */
    char **queue;         /* texts that wait for the end of the answer (queue.h) */
    size_t n_queue;
    bool hold_queue;     /* the user stopped the answer before them */
    bool has_draft;      /* the store keeps them, or what was typed */
    int64_t undone_leaf; /* what conversation_redo goes back to, 0: nothing */
    uint32_t variant;    /* how many answers that message has already */
    uint32_t ctx_used;
    uint64_t snapshot_bytes;
    bool save_failed; /* the last try to save the answer did */

    char *keep_root;     /* folder of kept timelines (prefix.h), NULL: none are */
    uint64_t keep_bytes; /* that they may take */
    bool keeping;        /* one is being written */
    char *last_command;  /* that was given just before, or NULL (slash.h) */
    char *notice;        /* for the user, one line, or NULL */
};

/* Shows a new conversation, with every setting left to the model. store, worker,
 * lock and log stay the caller's; the last two may be NULL. */
void conversation_init(struct conversation *c, struct store *st, struct worker *w);
void conversation_release(struct conversation *c);

/* ---- model --------------------------------------------------------------- */

void conversation_load(struct conversation *c, const char *path);
/* There is none to load. */
void conversation_no_model(struct conversation *c, const char *reason);
/* Takes one event of the worker. True if something to show has changed. */
bool conversation_event(struct conversation *c, const struct worker_event *e);

/* ---- what is shown -------------------------------------------------------- */

/* Shows a stored conversation; 0: a new, empty one. A running answer goes on. */
int conversation_show(struct conversation *c, int64_t chat_id, struct err *err);
/* The same, with the branch that holds a message (0: any). */
int conversation_show_message(struct conversation *c, int64_t chat_id, int64_t message_id,
                              struct err *err);
/* The branch, with the answer that is being written at its end, and n_queue texts
 * that wait after it. Lent until the next call of any function here. */
const struct message *conversation_messages(struct conversation *c, size_t *n);

/* ---- actions: -1 with the reason if nothing was done ---------------------- */

/* The message is durable when this returns 0, before anything is evaluated. It
 * is answered at once, or when the model is loaded. */
int conversation_send(struct conversation *c, const char *text, size_t bytes,
                      struct err *err);
/* A new answer to the same message, beside the old one; or the first answer to
 * a user message that has none. */
int conversation_regenerate(struct conversation *c, int64_t id, struct err *err);
/* A new version of a message, beside the old one: one of the user's is answered, an
 * answer stands as it is, and a system prompt takes the conversation with it. */
int conversation_edit(struct conversation *c, int64_t id, const char *text, size_t bytes,
                      struct err *err);
/* Shows the version `delta` further on of a turn, with its newest branch. */
int conversation_sibling(struct conversation *c, int64_t id, int delta, struct err *err);
void conversation_stop(struct conversation *c);

/* ---- branches (branch.c) --------------------------------------------------- */

/* The last answer goes on where it ends. */
int conversation_continue(struct conversation *c, struct err *err);
/* Takes the last message of the user and what came after it off the shown branch;
 * *text is the message, malloced. Nothing is deleted. */
int conversation_undo(struct conversation *c, char **text, struct err *err);
/* Shows again what was taken off last, else the newest that follows. */
int conversation_redo(struct conversation *c, struct err *err);
/* Shows a new conversation that is the branch up to a message, 0: all of it. */
int conversation_fork(struct conversation *c, int64_t id, struct err *err);
/* Another system prompt, or none, for the shown conversation: what was said is
 * there again below it, and is all read again with the next message. */
int conversation_set_system(struct conversation *c, const char *text, struct err *err);
/* What the model would have to read again after the first `keep` messages. */
struct reading {
    size_t tokens;
    double seconds; /* as fast as of late; 0: not known */
};
struct reading conversation_reading(const struct conversation *c, size_t keep);
/* A new version of a message is being written: a notice comes if sending that will
 * read so much again that it takes a while. */
void conversation_editing(struct conversation *c, int64_t id);

/* ---- more -------------------------------------------------------------------- */

/* Removes a conversation; a new one is shown if it was this. */
int conversation_delete(struct conversation *c, int64_t chat_id, struct err *err);
int conversation_rename(struct conversation *c, int64_t chat_id, const char *title,
                        struct err *err);

/* Whether an answer is being written or waited for. conversation_stop ends both. */
bool conversation_busy(const struct conversation *c);
/* Saves what is due. Milliseconds until the next call is, -1: nothing is. */
int conversation_tick(struct conversation *c, uint64_t now_ns);
/* Stops the answer, waits at most timeout_ms for its end and saves it. */
int conversation_finish(struct conversation *c, int timeout_ms, struct err *err);
/* Replaces the notice; NULL removes it. */
void conversation_notice(struct conversation *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
