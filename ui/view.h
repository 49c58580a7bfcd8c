/* view.h - the state of the front end and the table of its views. Inner header
 * of ui/; nothing here touches a terminal, so that tests drive all of it. */
#ifndef UI_VIEW_H
#define UI_VIEW_H

#include "ui/complete.h"
#include "ui/editor.h"
#include "ui/input.h"
#include "ui/keys.h"
#include "ui/layout.h"
#include "ui/pills.h"
#include "ui/screen.h"
#include "ui/theme.h"
#include "ui/transcript.h"
#include "ui/ui.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;

/* A full-body view. Keys that edit text or are the same everywhere are done by
 * core.c; act gets the rest. */
struct view_ops {
    enum key_place place;
    const char *title; /* NULL: that of the conversation */
    void (*draw)(struct core *c, const struct ui_model *m, struct rect body);
    void (*act)(struct core *c, enum action a, struct ui_intent *out);
    /* A click into the body, its rows from 0; NULL: does not matter. */
    void (*click)(struct core *c, int row, struct ui_intent *out);
    /* The text of the one-line input changed; NULL: does not matter. */
    void (*typed)(struct core *c, struct ui_intent *out);
};

extern const struct view_ops chat_view, find_view, list_view, search_view, models_view,
    help_view;

enum list_mode { LIST_BROWSE, LIST_RENAME, LIST_CONFIRM };

struct list_item {
    int64_t id;
    char *title; /* one line, sanitised */
};

struct list_state {
    enum list_mode mode;
    struct list_item *items; /* those that pass the filter, as drawn last */
    size_t n;
    int64_t selected, current; /* chat ids */
    size_t top;
    int move; /* asked for, done at the next draw */
    int rows;
};

struct search_hit {
    int64_t chat_id, message_id;
    char *title, *snippet;
};

struct search_state {
    struct search_hit *hits;
    size_t n, selected, top;
    bool asked; /* for the words in the input */
    int rows;
};

struct models_state {
    char *selected;         /* path, or NULL */
    bool runs, asks, asked; /* of the selected one; the question was put */
    size_t n, top, at;
    int move; /* asked for, done at the next draw */
    int rows;
};

enum core_copy { COPY_NOTHING, COPY_MESSAGE, COPY_CODE, COPY_SELECTION };

enum core_want { WANT_SUSPEND = 1, WANT_REPAINT = 2, WANT_MOUSE = 4, WANT_THEME = 8 };

struct core {
    struct screen screen;
    void (*answer)(void *user, const struct key *k); /* gets the terminal's answers */
    void *answer_user;
    struct layout layout;
    struct decoder keys;
    struct keymap keymap;
    const struct view_ops *view;
    struct editor editor; /* the message */
    struct editor line;   /* filter, title, search words */
    struct input input, line_input;
    struct pills pills; /* in the message */
    char *sent;         /* what was sent last, as it stood in the input, or NULL */
    struct completion completion;   /* candidates that Tab goes through */
    size_t candidate;               /* the one in the input, SIZE_MAX: none yet */
    bool attaching;                 /* look for the next @file */
    size_t attach_at, attach_bytes; /* the @file that was asked for */
    size_t attach_skip;             /* one that could not be had, SIZE_MAX: none */
    struct transcript transcript;
    struct list_state list;
    struct search_state search;
    struct models_state models;
    int help_top;
    char *commands; /* the caller's lines of the help screen */
    char *words;    /* and what may come after them */
    int64_t now_ms;
    int64_t interrupt_ms; /* last Ctrl+C on an empty input */
    char notice[160];     /* the UI's own, until the next key */
    int64_t editing;      /* message that the input is a new version of */
    int64_t edit_told;    /* of which the caller knows */
    bool edits_answer;    /* it is none of the user's */
    int64_t edit_wanted;  /* message whose text the next draw fetches, -1: the last */
    enum core_copy copy_wanted; /* the next draw fetches the text */
    size_t copy_back;           /* code blocks to go back from the last one */
    struct buf clipboard;       /* for the owner of the terminal to hand over */
    bool no_clipboard;          /* the terminal has none: files instead */
    bool saving;                /* clipboard goes to a file */
    char *save_path;            /* named by the user, or NULL */
    /* what keys must know of the last model */
    bool generating;
    size_t n_queued;
    int64_t last_answer, last_versions; /* message ids, 0: none; or what lacks one */
    enum role selected_role;
    unsigned wants;   /* of core_want; the owner of the terminal acts */
    enum theme theme; /* for WANT_THEME */
    bool dirty;       /* something changed that ui_draw would show */
    bool stale;       /* what keys act on is known after the next draw */
};

void core_init(struct core *c, const struct ui_params *p);
void core_release(struct core *c);
/* Draws everything into c->screen at its size. */
void core_draw(struct core *c, const struct ui_model *m, int rows, int cols);
/* Decodes what was fed to c->keys; see ui_next. */
bool core_next(struct core *c, int64_t now_ms, struct ui_intent *out);
/* See ui_timeout_ms. */
int core_timeout_ms(const struct core *c, int64_t now_ms);

/* ---- for the views ------------------------------------------------------ */

void core_show(struct core *c, const struct view_ops *view);
void core_notice(struct core *c, const char *text);
/* What stands before the input. */
const char *core_prompt(const struct core *c);
/* The editor that typed text goes to. */
struct editor *core_editor(struct core *c);
/* Empties the one-line input and puts text there. */
void core_line_set(struct core *c, const char *text);
/* Sends, or asks for, what the message input holds. */
void chat_enter(struct core *c, struct ui_intent *out);
/* ---- the message input (view_input.c) ---- */
/* Asks for the next file that an @ names; false if there is none. */
bool input_attach_next(struct core *c, struct ui_intent *out);
/* The file is there, or (label NULL) cannot be had. */
void input_attach(struct core *c, const char *label, const char *text);
/* A paste: long ones become a pill, whose label the caller completes. */
bool input_paste(struct core *c, const char *s, size_t n, struct ui_intent *out);
void input_complete(struct core *c, int delta);
void input_complete_end(struct core *c);
/* Puts the text of the pill at the cursor, else of the last one, into the input. */
void input_open_pill(struct core *c);
/* What the input holds, pills as their texts; malloced. */
char *input_text(const struct core *c);
void input_set(struct core *c, const char *text);
void list_release(struct list_state *l);
void search_release(struct search_state *s);
void models_release(struct models_state *s);
void search_set(struct search_state *s, const struct ui_hit *hits, size_t n);

#endif
