/* editor.c - text editing without a screen.
 *
 * Invariants: cursor <= text.len and lies on a code point boundary; edits
 * [0, n_done) undone in reverse order lead back to the text as it was set;
 * edits [n_done, n_edits) can be redone. All changes go through change(). */
#include "ui/editor.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

struct edit {
    size_t at, cursor; /* where; the cursor before */
    struct buf removed, inserted;
};

static void edit_release(struct edit *d)
{
    buf_release(&d->removed);
    buf_release(&d->inserted);
}

void editor_init(struct editor *e)
{
    *e = (struct editor){ .goal = -1, .mark = SIZE_MAX };
}

void editor_release(struct editor *e)
{
    for (size_t i = 0; i < e->n_edits; i++)
        edit_release(&e->edits[i]);
    for (size_t i = 0; i < e->n_history; i++)
        free(e->history[i]);
    free(e->edits);
    free(e->history);
    free(e->draft);
    buf_release(&e->text);
    buf_release(&e->killed);
    const struct pills *pills = e->pills;
    editor_init(e);
    e->pills = pills;
}

static void splice(struct buf *b, size_t at, size_t removed, const char *s, size_t n)
{
    if (n > removed)
        buf_reserve(b, n - removed);
    if (!b->v)
        return;
    memmove(b->v + at + n, b->v + at + removed, b->len - at - removed);
    if (n > 0)
        memcpy(b->v + at, s, n);
    b->len = b->len - removed + n;
    b->v[b->len] = 0;
}

static struct edit *log_push(struct editor *e)
{
    while (e->n_edits > e->n_done)
        edit_release(&e->edits[--e->n_edits]);
    if (e->n_edits == EDITOR_UNDO_MAX) {
        edit_release(&e->edits[0]);
        memmove(e->edits, e->edits + 1, --e->n_edits * sizeof *e->edits);
    }
    if (e->n_edits == e->cap_edits) {
        e->cap_edits = e->cap_edits ? e->cap_edits * 2 : 16;
        e->edits = mem_regrow(e->edits, e->cap_edits, sizeof *e->edits);
    }
    e->edits[e->n_edits] = (struct edit){ 0 };
    e->n_done = ++e->n_edits;
    return &e->edits[e->n_edits - 1];
}

/* The newest edit where this one only continues it: typing on, within a word. */
static struct edit *log_join(struct editor *e, enum editor_op op, size_t at,
                             size_t removed)
{
    if (op != OP_TYPE || e->last != OP_TYPE || removed > 0 || e->n_done == 0 ||
        e->n_done != e->n_edits)
        return NULL;
    struct edit *d = &e->edits[e->n_edits - 1];
    bool next = d->at + d->inserted.len == at && d->inserted.len > 0;
    bool word_ended = next && at < e->text.len + 1 && at > 0 && e->text.v[at - 1] == ' ';
    return next && !word_ended ? d : NULL;
}

/* Replaces `removed` bytes at `at` and records it. */
static void change(struct editor *e, enum editor_op op, size_t at, size_t removed,
                   const char *s, size_t n)
{
    if (removed == 0 && n == 0)
        return;
    struct edit *d = log_join(e, op, at, removed);
    if (!d) {
        d = log_push(e);
        d->at = at;
        d->cursor = e->cursor;
        if (removed > 0)
            buf_add(&d->removed, e->text.v + at, removed);
    }
    if (n > 0)
        buf_add(&d->inserted, s, n);
    splice(&e->text, at, removed, s, n);
    e->cursor = at + n;
    e->mark = SIZE_MAX;
    e->goal = -1;
    e->last = op;
}

void editor_set(struct editor *e, const char *s)
{
    size_t n = strlen(s);
    if (n > EDITOR_BYTES_MAX)
        n = utf8_complete(s, EDITOR_BYTES_MAX);
    char *copy = mem_strndup(s, n); /* s may be this editor's own text */
    change(e, OP_OTHER, 0, e->text.len, copy, n);
    free(copy);
}

bool editor_insert(struct editor *e, const char *s, size_t n)
{
    size_t from = e->cursor, selected = 0;
    bool replaces = editor_selection(e, &from, &selected);
    if (n > EDITOR_BYTES_MAX || e->text.len - selected > EDITOR_BYTES_MAX - n)
        return false;
    change(e, n <= 4 && !replaces ? OP_TYPE : OP_OTHER, from, selected, s, n);
    return true;
}

static size_t line_start(const struct editor *e)
{
    size_t at = e->cursor;
    while (at > 0 && e->text.v[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const struct editor *e)
{
    const char *newline =
        e->text.v ? memchr(e->text.v + e->cursor, '\n', e->text.len - e->cursor) : NULL;
    return newline ? (size_t)(newline - e->text.v) : e->text.len;
}

static size_t target(const struct editor *e, enum motion m)
{
    const char *s = buf_cstr(&e->text);
    size_t n = e->text.len, at = e->cursor;
    switch (m) {
    case TO_LEFT:
        return utf8_grapheme_prev(s, n, at);
    case TO_RIGHT:
        return utf8_grapheme_next(s, n, at);
    case TO_WORD_LEFT:
        return utf8_word_prev(s, n, at);
    case TO_WORD_RIGHT:
        return utf8_word_next(s, n, at);
    case TO_LINE_START:
        return line_start(e);
    case TO_LINE_END:
        return line_end(e);
    case TO_START:
        return 0;
    default:
        return n;
    }
}

void editor_move(struct editor *e, enum motion m)
{
    editor_place(e, target(e, m), -1);
}

void editor_select(struct editor *e, enum motion m)
{
    size_t mark = e->mark != SIZE_MAX ? e->mark : e->cursor;
    editor_place(e, target(e, m), -1);
    e->mark = mark != e->cursor ? mark : SIZE_MAX;
}

bool editor_selection(const struct editor *e, size_t *from, size_t *n)
{
    if (e->mark == SIZE_MAX || e->mark == e->cursor || e->mark > e->text.len)
        return false;
    *from = e->mark < e->cursor ? e->mark : e->cursor;
    *n = (e->mark < e->cursor ? e->cursor : e->mark) - *from;
    return true;
}

void editor_replace(struct editor *e, size_t at, size_t removed, const char *s, size_t n)
{
    change(e, OP_OTHER, at, removed, s, n);
}

void editor_place(struct editor *e, size_t cursor, int goal)
{
    e->cursor = cursor <= e->text.len ? cursor : e->text.len;
    e->mark = SIZE_MAX;
    e->goal = goal;
    e->last = OP_MOVE;
}

/* The range between the cursor and where the motion leads. */
static size_t range(const struct editor *e, enum motion m, size_t *from)
{
    size_t to = target(e, m);
    *from = to < e->cursor ? to : e->cursor;
    return to < e->cursor ? e->cursor - to : to - e->cursor;
}

bool editor_cut(struct editor *e)
{
    size_t from, n;
    if (!editor_selection(e, &from, &n))
        return false;
    buf_truncate(&e->killed, 0);
    buf_add(&e->killed, e->text.v + from, n);
    change(e, OP_OTHER, from, n, NULL, 0);
    return true;
}

void editor_erase(struct editor *e, enum motion m)
{
    size_t from, n;
    if (!editor_selection(e, &from, &n))
        n = range(e, m, &from);
    change(e, OP_ERASE, from, n, NULL, 0);
}

void editor_kill(struct editor *e, enum motion m)
{
    size_t from, n = range(e, m, &from);
    if (n == 0 && m == TO_LINE_END &&
        e->cursor < e->text.len) { /* at the end: the newline */
        from = e->cursor;
        n = 1;
    }
    if (n == 0)
        return;
    if (e->last != OP_KILL)
        buf_truncate(&e->killed, 0);
    bool backwards = from < e->cursor;
    splice(&e->killed, backwards ? 0 : e->killed.len, 0, e->text.v + from, n);
    change(e, OP_KILL, from, n, NULL, 0);
}

void editor_yank(struct editor *e)
{
    if (e->killed.len <= EDITOR_BYTES_MAX - e->text.len)
        change(e, OP_OTHER, e->cursor, 0, e->killed.v, e->killed.len);
}

bool editor_undo(struct editor *e)
{
    if (e->n_done == 0)
        return false;
    const struct edit *d = &e->edits[--e->n_done];
    splice(&e->text, d->at, d->inserted.len, d->removed.v, d->removed.len);
    editor_place(e, d->cursor, -1);
    return true;
}

bool editor_redo(struct editor *e)
{
    if (e->n_done == e->n_edits)
        return false;
    const struct edit *d = &e->edits[e->n_done++];
    splice(&e->text, d->at, d->removed.len, d->inserted.v, d->inserted.len);
    editor_place(e, d->at + d->inserted.len, -1);
    return true;
}

void editor_remember(struct editor *e, const char *s)
{
    bool repeated = e->n_history > 0 && !strcmp(e->history[e->n_history - 1], s);
    if (*s && !repeated) {
        if (e->n_history == EDITOR_HISTORY_MAX) {
            free(e->history[0]);
            memmove(e->history, e->history + 1, --e->n_history * sizeof *e->history);
        }
        if (e->n_history == e->cap_history) {
            e->cap_history = e->cap_history ? e->cap_history * 2 : 16;
            e->history = mem_regrow(e->history, e->cap_history, sizeof *e->history);
        }
        e->history[e->n_history++] = mem_strdup(s);
    }
    e->history_at = e->n_history;
    free(e->draft);
    e->draft = NULL;
}

bool editor_history(struct editor *e, int delta)
{
    if ((delta < 0 && e->history_at == 0) || (delta > 0 && e->history_at == e->n_history))
        return false;
    if (e->history_at == e->n_history) {
        free(e->draft);
        e->draft = mem_strdup(buf_cstr(&e->text));
    }
    e->history_at = delta < 0 ? e->history_at - 1 : e->history_at + 1;
    bool draft = e->history_at == e->n_history;
    editor_set(e, draft ? (e->draft ? e->draft : "") : e->history[e->history_at]);
    return true;
}
