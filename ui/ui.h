/* ui.h - the full-screen front end; the only header of ui/ that app/ includes.
 *
 * The UI owns the terminal. It draws plain records that the caller lends for
 * one call and turns keys into intents; it knows neither engine nor store.
 * Thread-safety: one thread. */
#ifndef UI_UI_H
#define UI_UI_H

#include "base/buf.h"
#include "base/err.h"
#include "base/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ui;

struct ui_params {
    bool mouse;
    const char *theme;    /* of ui_themes; NULL: "16" */
    const char *history;  /* newline-separated earlier inputs, oldest first, or NULL */
    const char *commands; /* lines "/name ARGUMENT  help" of slash commands, or NULL */
    const char *keys;     /* lines "action = keys" that replace the usual ones, or NULL */
    const char *words;    /* lines "/name word word" of what may come after, or NULL */
};

/* Takes over the terminal. Fails with a clear line where it cannot (no tty,
 * TERM=dumb or without cursor addressing): the caller then uses line mode. */
int ui_open(struct ui **out, const struct ui_params *p, struct err *err);
/* The names of the themes, separated by ", "; whether a name is one of them. */
const char *ui_themes(void);
bool ui_is_theme(const char *name);
/* Restores the terminal. NULL is fine. */
void ui_close(struct ui *ui);
/* Whether a line "action = keys" can be used. */
int ui_keys_check(const char *action, const char *keys, struct err *err);
/* What can be done with keys, one after the other; false at the end. keys is the
 * caller's, and emptied first; lines are the params' keys. */
struct ui_key_row {
    const char *action, *help; /* help "": not worth a line */
};
bool ui_key_row(size_t i, const char *lines, struct ui_key_row *row, struct buf *keys);
/* Writes the fixed byte string that undoes every mode the UI sets, and the
 * saved termios. Async-signal-safe; for crash handlers. */
void ui_emergency_restore(void);

/* ---- what is drawn ------------------------------------------------------ */

enum ui_phase { PHASE_LOADING, PHASE_IDLE, PHASE_PREFILL, PHASE_DECODE, PHASE_ERROR };

struct ui_status {
    enum ui_phase phase;
    const char *model, *device;     /* names; sanitised by the UI */
    const char *note;               /* slow paths, engine errors; "" or NULL: none */
    uint64_t load_done, load_total; /* bytes, while loading */
    uint32_t prefill_done, prefill_total, reused; /* tokens */
    uint32_t generated; /* tokens of the running or last answer */
    uint32_t ctx_used, ctx_tokens;
    double ttft_ms, prefill_tps, decode_tps; /* 0: not known */
    uint64_t snapshot_bytes, device_bytes;   /* host memory; the device's */
    const float *rates; /* tokens a second of late, oldest first, for a small graph */
    size_t n_rates;
};

struct ui_model_file {
    const char *path, *name, *summary; /* foreign text, a line each */
    const char *info;                  /* lines */
    bool runs, current;
};

struct ui_model {
    const struct chat *chat;        /* NULL: none yet */
    const struct message *messages; /* the shown branch; the last one may grow */
    size_t n_messages;              /* between calls, its text only by appending */
    size_t n_queued;                /* of these, at the end: not sent yet */
    bool waiting;                   /* the last one, for a model to answer it */
    const struct chat *chats;       /* the conversation list */
    size_t n_chats;
    struct ui_status status;
    const struct ui_model_file *files; /* for the list of models */
    size_t n_files;
    bool scanning_files;
    const char *notice; /* one line above the input, or NULL */
    const char *setup;  /* what differs from the usual settings, or NULL */
};

/* Redraws what changed. Cost does not depend on the conversation's length. */
void ui_draw(struct ui *ui, const struct ui_model *m);

/* ---- what the user wants ------------------------------------------------ */

#define UI_INTENTS(X)                                                               \
    X(NONE)                                                                         \
    X(REDRAW)  /* view state changed: call ui_draw */                               \
    X(SEND)    /* text: the message */                                              \
    X(UNQUEUE) /* back into the input: what was queued last */                      \
    X(STOP)    /* end the running answer */                                         \
    X(QUIT)                                                                         \
    X(NEW)        /* start a conversation */                                        \
    X(OPEN)       /* id: chat, message_id: one to show on its branch, or 0 */       \
    X(RENAME)     /* id: chat, text: title */                                       \
    X(DELETE)     /* id: chat; already confirmed */                                 \
    X(PIN)        /* id: chat, to be pinned, or not any more if it is */            \
    X(REGENERATE) /* id: the assistant message, or one of the user's without one */ \
    X(EDIT)       /* id: the user message, text: its new version */                 \
    X(EDITING)    /* id: a new version of this is being written now */              \
    X(SIBLING)    /* id: message, delta: -1 or +1 */                                \
    X(SEARCH)     /* text: words; answer with ui_set_hits */                        \
    X(MODELS)     /* ui_model.files are wanted */                                   \
    X(MODEL)      /* text: the file of a model to load */                           \
    X(SAVE)       /* text: for a file; path, NULL: wherever it is out of the way */ \
    X(COMMAND)    /* text: a slash command that the UI does not handle */           \
    X(ATTACH)     /* text: a file for the message; answer with ui_attach */         \
    X(LABEL)      /* text: of a long paste, id; answer with ui_label */             \
    X(EDITOR)     /* text: to be edited elsewhere; answer with ui_set_input */
#define UI_INTENT_ROW(name) UI_##name,
enum ui_intent_kind { UI_INTENTS(UI_INTENT_ROW) };
#undef UI_INTENT_ROW

struct ui_intent {
    enum ui_intent_kind kind;
    int64_t id;
    int64_t message_id;
    int delta;
    char *text, *path; /* malloced, or NULL; the caller frees them */
};

/* File descriptor to poll for input. */
int ui_fd(const struct ui *ui);
/* Reads what the terminal has, without blocking. Returns true and fills intent
 * while there is something to tell; call until it returns false. */
bool ui_next(struct ui *ui, struct ui_intent *intent);
/* Milliseconds until ui_next must be called although no input came (an ESC or
 * a paste that waits for its end; keys that wait for a ui_draw after a REDRAW),
 * -1: no need. */
int ui_timeout_ms(const struct ui *ui);
/* Puts text into the input box (a message that could not be sent). */
void ui_set_input(struct ui *ui, const char *text);
/* Puts a long text into the message, shown as its label; label NULL: what was asked
 * for with UI_ATTACH cannot be had. */
void ui_attach(struct ui *ui, const char *label, const char *text);
void ui_label(struct ui *ui, int64_t id, const char *label);
/* What the input box holds; malloced. */
char *ui_input(const struct ui *ui);

struct ui_hit {
    int64_t chat_id, message_id;
    const char *title, *snippet; /* matches between \x02 and \x03 */
};
/* Shows search results; copied. */
void ui_set_hits(struct ui *ui, const struct ui_hit *hits, size_t n);
/* Leaves the terminal for a while (Ctrl+Z, external editor) and comes back. */
void ui_suspend(struct ui *ui);
void ui_resume(struct ui *ui);

#endif
