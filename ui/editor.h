/* editor.h - the text of an input box: cursor, selection, undo, history, kill and
 * yank.
 *
 * No drawing and no keys. Text is UTF-8 as given; the cursor is a byte offset
 * on a code point boundary and moves by grapheme. Thread-safety: none. */
#ifndef UI_EDITOR_H
#define UI_EDITOR_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EDITOR_BYTES_MAX   (8u << 20)
#define EDITOR_UNDO_MAX    500
#define EDITOR_HISTORY_MAX 1000

struct edit;
struct pills;

enum editor_op { OP_OTHER, OP_TYPE, OP_ERASE, OP_KILL, OP_MOVE };

struct editor {
    struct buf text;
    size_t cursor;
    size_t mark;        /* the other end of the selection, SIZE_MAX: none */
    int goal;           /* column that vertical moves aim at, -1: none */
    struct edit *edits; /* undo log: [0, n_done) can be undone */
    size_t n_edits, n_done, cap_edits;
    char **history; /* oldest first */
    size_t n_history, cap_history;
    size_t history_at; /* shown entry; n_history: the draft */
    char *draft;       /* the draft while history is shown */
    struct buf killed;
    const struct pills *pills; /* lent: what single code points stand for, or NULL */
    enum editor_op last;       /* runs of typing undo as one; runs of kills join */
};

enum motion {
    TO_LEFT,
    TO_RIGHT,
    TO_WORD_LEFT,
    TO_WORD_RIGHT,
    TO_LINE_START,
    TO_LINE_END,
    TO_START,
    TO_END,
};

void editor_init(struct editor *e);
void editor_release(struct editor *e);
/* Replaces everything, as one step that can be undone; cursor at the end. */
void editor_set(struct editor *e, const char *s);
/* Inserts at the cursor; false, and nothing done, beyond EDITOR_BYTES_MAX. */
bool editor_insert(struct editor *e, const char *s, size_t n);
void editor_move(struct editor *e, enum motion m);
/* The same, and what the cursor passes is selected, or not any more. */
void editor_select(struct editor *e, enum motion m);
/* What is selected; false for nothing. Typing replaces it, erasing removes it. */
bool editor_selection(const struct editor *e, size_t *from, size_t *n);
/* Takes the selection out and keeps it for editor_yank; false for none. */
bool editor_cut(struct editor *e);
/* Replaces a part; the cursor is after what stands there now. */
void editor_replace(struct editor *e, size_t at, size_t removed, const char *s, size_t n);
/* Places the cursor, for moves that depend on how text is wrapped. */
void editor_place(struct editor *e, size_t cursor, int goal);
/* Removes from the cursor to where the motion leads. */
void editor_erase(struct editor *e, enum motion m);
/* The same, kept for editor_yank; kills in a row are kept together. */
void editor_kill(struct editor *e, enum motion m);
void editor_yank(struct editor *e);
bool editor_undo(struct editor *e);
bool editor_redo(struct editor *e);

/* Remembers a text as the newest history entry (empty or repeated: ignored). */
void editor_remember(struct editor *e, const char *s);
/* Shows the entry before or after the shown one; false at either end. */
bool editor_history(struct editor *e, int delta);

#endif
