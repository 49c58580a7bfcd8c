/* transcript.c - scrolling over lazily laid out messages.
 *
 * Invariants after a draw: while not following, `top` names a line that exists
 * and is not below the last screenful; `place` of an anchor is up to date. */
#include "ui/transcript.h"

#include "base/mem.h"
#include "ui/match.h"
#include "ui/theme.h"

#include <stdlib.h>
#include <string.h>

/* Entries kept laid out around the visible ones before others are dropped. */
#define KEEP_AROUND 200

/* One draw: the model, and how wide its lines are. */
struct pass {
    struct transcript *t;
    const struct transcript_model *m;
    int width;
};

void transcript_init(struct transcript *t)
{
    *t = (struct transcript){ .follow = true, .found_pos = SIZE_MAX };
}

static void drop(struct transcript *t, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < t->n; i++)
        entry_release(&t->entries[i]);
}

void transcript_release(struct transcript *t)
{
    drop(t, 0, t->n);
    free(t->entries);
    free(t->words);
    free(t->shows);
    transcript_init(t);
}

void transcript_scroll(struct transcript *t, int lines)
{
    if (abs(t->scroll) < 1000000)
        t->scroll += lines;
}

void transcript_page(struct transcript *t, int pages)
{
    transcript_scroll(t, pages * (t->rows > 2 ? t->rows - 1 : 1));
}

void transcript_to_top(struct transcript *t)
{
    t->to_top = true;
    t->scroll = t->jump = 0;
}

void transcript_to_end(struct transcript *t)
{
    t->follow = true;
    t->to_top = false;
    t->scroll = t->jump = 0;
    t->selected = t->show = 0;
}

void transcript_jump(struct transcript *t, int delta)
{
    t->jump += delta;
}

void transcript_show(struct transcript *t, int64_t chat_id, int64_t message_id)
{
    t->show_chat = chat_id;
    t->show = message_id;
}

void transcript_words(struct transcript *t, const char *words)
{
    free(t->words);
    t->words = words && *words ? mem_strdup(words) : NULL;
    t->found_pos = SIZE_MAX;
    t->nothing_found = false;
    t->find = 0;
}

void transcript_find(struct transcript *t, int delta)
{
    t->find = delta;
}

static struct entry_look look_of(const struct pass *p, size_t i)
{
    const struct message *m = &p->m->messages[i];
    bool last = i + 1 + p->m->n_queued == p->m->n, asked = m->role == ROLE_USER;
    return (struct entry_look){
        .width = p->width,
        .thinking = p->t->thinking,
        .figures = p->t->figures,
        .live = last && p->m->live && m->role == ROLE_ASSISTANT,
        .unanswered = last && asked && !p->m->live,
        .waiting = last && asked && p->m->waiting,
        .fold_key = p->m->fold_key,
        .queued = i + p->m->n_queued >= p->m->n,
        .first = i == 0,
        .selected = p->t->selected != 0 && p->t->selected == m->id,
    };
}

/* Number of lines of message i, laid out on demand. */
static size_t height(const struct pass *p, size_t i)
{
    struct entry_look look = look_of(p, i);
    return entry_sync(&p->t->entries[i], &p->m->messages[i], &look);
}

static void set_count(struct transcript *t, size_t n)
{
    drop(t, n, t->n);
    if (n > t->cap) {
        t->cap = t->cap * 2 > n ? t->cap * 2 : n;
        t->entries = mem_regrow(t->entries, t->cap, sizeof *t->entries);
    }
    if (n > t->n)
        memset(t->entries + t->n, 0, (n - t->n) * sizeof *t->entries);
    t->n = n;
}

/* The anchor that shows the last screenful. */
static struct anchor last_screen(const struct pass *p, int rows)
{
    struct anchor a = { 0 };
    size_t need = rows > 0 ? (size_t)rows : 1;
    for (size_t i = p->m->n; i-- > 0;) {
        size_t h = height(p, i);
        if (h >= need)
            return (struct anchor){ .message = i, .line = h - need };
        need -= h;
    }
    return a;
}

static bool at_or_after(struct anchor a, struct anchor b)
{
    return a.message > b.message || (a.message == b.message && a.line >= b.line);
}

static struct anchor move(const struct pass *p, struct anchor a, int lines)
{
    for (; lines < 0; lines++) {
        if (a.line > 0) {
            a.line--;
        } else if (a.message > 0) {
            a.message--;
            a.line = height(p, a.message) - 1;
        }
    }
    for (; lines > 0; lines--) {
        if (a.line + 1 < height(p, a.message)) {
            a.line++;
        } else if (a.message + 1 < p->m->n) {
            a.message++;
            a.line = 0;
        }
    }
    return a;
}

static void note_place(const struct pass *p, struct anchor *a)
{
    a->place = entry_place(&p->t->entries[a->message], a->line);
}

/* Finds an anchor's line again after its message changed its shape. */
static void settle(const struct pass *p, struct anchor *a)
{
    if (a->message >= p->m->n) {
        *a = (struct anchor){ .message = p->m->n - 1 };
    } else {
        size_t h = height(p, a->message);
        a->line = entry_line(&p->t->entries[a->message], a->place);
        if (a->line >= h)
            a->line = h - 1;
    }
    note_place(p, a);
}

static size_t index_of(const struct transcript_model *m, int64_t id)
{
    for (size_t i = m->n; id != 0 && i-- > 0;)
        if (m->messages[i].id == id)
            return i;
    return SIZE_MAX;
}

/* Puts the label of message i at the top. */
static void place_at(const struct pass *p, size_t i)
{
    p->t->follow = false;
    p->t->top = (struct anchor){ .message = i, .line = i > 0 };
    p->t->selected = p->m->messages[i].id;
}

static void do_jump(const struct pass *p)
{
    struct transcript *t = p->t;
    size_t at = index_of(p->m, t->selected);
    for (; t->jump != 0; t->jump += t->jump < 0 ? 1 : -1) {
        if (t->jump < 0)
            at = at == SIZE_MAX ? p->m->n - 1 : at > 0 ? at - 1 : 0;
        else
            at = at == SIZE_MAX || at + 1 >= p->m->n ? SIZE_MAX : at + 1;
    }
    if (at == SIZE_MAX)
        transcript_to_end(t);
    else
        place_at(p, at);
}

/* A match in message i: the last before, or the first after, a place in its drawn
 * text; from SIZE_MAX: of all. */
static size_t match_in(const struct pass *p, size_t i, int delta, size_t from)
{
    const struct message *m = &p->m->messages[i];
    size_t bytes;
    /* Not laid out unless the source has it. */
    if (match_next(m->text, m->text_bytes, p->t->words, 0, &bytes) == NO_MATCH)
        return NO_MATCH;
    height(p, i);
    const struct buf *b = &p->t->entries[i].body.text.bytes;
    if (delta < 0)
        return match_prev(buf_cstr(b), b->len, p->t->words, from, &bytes);
    return match_next(buf_cstr(b), b->len, p->t->words, from == SIZE_MAX ? 0 : from + 1,
                      &bytes);
}

static void show_match(const struct pass *p, size_t i, size_t pos)
{
    struct transcript *t = p->t;
    struct place place = { .part = PART_BODY, .pos = pos };
    t->found_message = i;
    t->found_pos = pos;
    t->follow = false;
    t->top = (struct anchor){ .message = i, .line = entry_line(&t->entries[i], place) };
    t->top = move(p, t->top, -t->rows / 3);
}

/* From the match shown last, or from the end upwards. */
static void do_find(const struct pass *p)
{
    struct transcript *t = p->t;
    int delta = t->find;
    size_t from = t->found_pos;
    size_t i =
        from == SIZE_MAX || t->found_message >= p->m->n ? p->m->n - 1 : t->found_message;
    t->find = 0;
    for (size_t tried = 0; t->words && tried <= p->m->n; tried++, from = SIZE_MAX) {
        size_t pos = match_in(p, i, delta, from);
        if (pos != NO_MATCH) {
            show_match(p, i, pos);
            t->nothing_found = false;
            return;
        }
        i = delta < 0 ? (i + p->m->n - 1) % p->m->n : (i + 1) % p->m->n;
    }
    t->nothing_found = t->words != NULL;
}

/* Marks the words where they stand in one row. */
static void mark_row(const struct transcript *t, struct screen *s, struct span at)
{
    struct buf b = BUF_INIT;
    int *cols = mem_array((size_t)(at.end - at.col) * CELL_BYTES + 1, sizeof *cols);
    for (int col = at.col; col < at.end; col++) {
        const struct cell *c = screen_cell(s, at.row, col);
        for (size_t k = 0; k < c->len; k++)
            cols[b.len + k] = col;
        buf_add(&b, c->bytes, c->len);
    }
    cols[b.len] = at.end;
    for (size_t from = 0, n;
         (from = match_next(buf_cstr(&b), b.len, t->words, from, &n)) != NO_MATCH;
         from += n)
        screen_restyle(s, span(at.row, cols[from], cols[from + n]), STYLE_MATCH);
    buf_release(&b);
    free(cols);
}

/* Carries out what was asked for since the last draw. */
static void do_requests(const struct pass *p, struct anchor last)
{
    struct transcript *t = p->t;
    if (t->follow)
        t->top = last;
    if (t->to_top) {
        t->top = (struct anchor){ 0 };
        t->follow = false;
    }
    if (t->show != 0 && t->show_chat == p->m->chat_id) {
        size_t shown = index_of(p->m, t->show);
        if (shown != SIZE_MAX)
            place_at(p, shown);
        t->show = 0;
    }
    if (t->jump != 0)
        do_jump(p);
    if (t->find != 0)
        do_find(p);
    if (t->scroll != 0) {
        t->top = move(p, t->top, t->scroll);
        t->follow = false;
    }
    t->to_top = false;
    t->scroll = 0;
}

/* Everything up to the end counts as seen. */
static void see_all(const struct pass *p)
{
    struct transcript *t = p->t;
    t->seen_message = p->m->n - 1;
    height(p, t->seen_message);
    t->seen = entry_end(&t->entries[t->seen_message]);
    t->new_lines = 0;
}

static void count_new(const struct pass *p)
{
    struct transcript *t = p->t;
    if (t->seen_message >= p->m->n) {
        see_all(p);
        return;
    }
    size_t h = height(p, t->seen_message);
    size_t line = entry_line(&t->entries[t->seen_message], t->seen);
    t->new_lines = line + 1 < h ? h - 1 - line : 0;
    for (size_t i = t->seen_message + 1; i < p->m->n; i++)
        t->new_lines += height(p, i);
}

/* Memory stays bounded when somebody reads through a very long conversation. */
static void drop_far(struct transcript *t, size_t first, size_t last)
{
    size_t step = KEEP_AROUND;
    if (first > step && t->entries[first - step - 1].used)
        drop(t, 0, first - step);
    if (last + 2 * step < t->n && t->entries[last + step].used)
        drop(t, last + step, t->n - step); /* the end is looked at by every draw */
}

static size_t draw_lines(const struct pass *p, struct screen *s, struct rect r)
{
    size_t i = p->t->top.message, line = p->t->top.line;
    for (int row = 0; row < r.rows && i < p->m->n; row++) {
        struct entry_look look = look_of(p, i);
        size_t h = height(p, i);
        p->t->shows[row] =
            (struct row_shows){ p->m->messages[i].id,
                                entry_place(&p->t->entries[i], line).part };
        entry_draw(&p->t->entries[i], &p->m->messages[i], &look, line, s,
                   span(r.row + row, r.col, r.col + r.cols));
        if (++line >= h) {
            i++;
            line = 0;
        }
    }
    return i;
}

void transcript_draw(struct transcript *t, const struct transcript_model *m,
                     struct screen *s, struct rect r)
{
    struct pass p = { .t = t, .m = m, .width = r.cols > 0 ? r.cols : 1 };
    if (t->chat_id != m->chat_id) {
        int64_t show = t->show;
        t->found_pos = SIZE_MAX;
        drop(t, 0, t->n);
        transcript_to_end(t);
        t->show = show;
        t->chat_id = m->chat_id;
    }
    set_count(t, m->n);
    t->rows = r.rows;
    t->shows = mem_regrow(t->shows, (size_t)r.rows + 1, sizeof *t->shows);
    memset(t->shows, 0, ((size_t)r.rows + 1) * sizeof *t->shows);
    t->new_lines = 0;
    if (m->n == 0) {
        t->follow = true;
        return;
    }
    if (t->follow)
        see_all(&p);
    else
        settle(&p, &t->top);
    struct anchor last = last_screen(&p, r.rows);
    do_requests(&p, last);
    if (t->follow || at_or_after(t->top, last)) {
        t->follow = true;
        t->top = last;
        see_all(&p);
    } else {
        count_new(&p);
    }
    height(&p, t->top.message);
    note_place(&p, &t->top);
    drop_far(t, t->top.message, draw_lines(&p, s, r));
    for (int row = 0; t->words && row < r.rows; row++)
        mark_row(t, s, span(r.row + row, r.col, r.col + r.cols));
}
