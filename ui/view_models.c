/* view_models.c - the model files: filter as you type, what the chosen one holds below
 * the list, Enter loads it. Another model reads the shown conversation anew: that is
 * said before. */
#include "ui/view.h"

#include "base/mem.h"
#include "base/sanitize.h"
#include "ui/match.h"
#include "ui/theme.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_COLS = 34, INFO_ROWS_MIN = 4 };

void models_release(struct models_state *s)
{
    free(s->selected);
    *s = (struct models_state){ 0 };
}

static bool fits(const struct core *c, const struct ui_model_file *f)
{
    const char *filter = buf_cstr(&c->line.text);
    size_t bytes;
    return !*filter ||
           match_next(f->name, strlen(f->name), filter, 0, &bytes) != NO_MATCH ||
           match_next(f->path, strlen(f->path), filter, 0, &bytes) != NO_MATCH;
}

/* The i-th that passes the filter; NULL: there are no so many. */
static const struct ui_model_file *file_at(const struct core *c, const struct ui_model *m,
                                           size_t i)
{
    for (size_t k = 0; k < m->n_files; k++)
        if (fits(c, &m->files[k]) && i-- == 0)
            return &m->files[k];
    return NULL;
}

static size_t count(const struct core *c, const struct ui_model *m)
{
    size_t n = 0;
    for (size_t k = 0; k < m->n_files; k++)
        n += fits(c, &m->files[k]);
    return n;
}

/* Where the selection is, moved as asked; it starts at the model in use. */
static size_t select_file(struct core *c, const struct ui_model *m, size_t n)
{
    struct models_state *s = &c->models;
    size_t at = 0, used = 0;
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        const struct ui_model_file *f = file_at(c, m, i);
        if (f->current)
            used = i;
        if (s->selected && !strcmp(f->path, s->selected)) {
            at = i;
            found = true;
        }
    }
    int64_t want = (int64_t)(found ? at : used) + s->move;
    s->move = 0;
    return want < 0 ? 0 : (size_t)want >= n ? n - 1 : (size_t)want;
}

static void note_file(struct models_state *s, const struct ui_model_file *f, bool asks)
{
    char *path = mem_strdup(f->path);
    free(s->selected);
    s->selected = path;
    s->runs = f->runs;
    s->asks = asks && !f->current;
}

static void draw_file(struct core *c, const struct ui_model_file *f, int row,
                      struct rect r, bool selected)
{
    struct buf b = BUF_INIT;
    int end = r.col + r.cols, name_end = r.cols >= 60 ? r.col + NAME_COLS : end;
    uint16_t style = f->runs ? STYLE_TEXT : STYLE_DIM;
    screen_str(&c->screen, span(row, r.col, end), f->current ? "* " : "  ",
               STYLE_LIST_MARK);
    sanitize_line(&b, f->name, strlen(f->name));
    screen_put(&c->screen, span(row, r.col + 2, name_end), buf_cstr(&b), b.len, style);
    buf_truncate(&b, 0);
    sanitize_line(&b, f->summary, strlen(f->summary));
    if (name_end < end)
        screen_put(&c->screen, span(row, name_end + 1, end), buf_cstr(&b), b.len,
                   STYLE_DIM);
    if (selected)
        screen_restyle(&c->screen, span(row, r.col, end), STYLE_SELECTED);
    buf_release(&b);
}

static void draw_info(struct core *c, const char *info, struct rect r)
{
    for (int row = 0; row < r.rows && *info; row++) {
        size_t n = strcspn(info, "\n");
        struct buf b = BUF_INIT;
        sanitize_line(&b, info, n);
        screen_put(&c->screen, span(r.row + row, r.col, r.col + r.cols), buf_cstr(&b),
                   b.len, STYLE_TEXT);
        buf_release(&b);
        info += n + (info[n] == '\n');
    }
}

static int lines_of(const char *s)
{
    int lines = 0;
    for (; *s; s++)
        lines += *s == '\n' || !s[1];
    return lines;
}

static void draw_empty(struct core *c, const struct ui_model *m, struct rect r)
{
    const char *text = m->n_files          ? "nothing fits the filter"
                       : m->scanning_files ? "looking for models ..."
                                           : "no model found: models = FOLDER in the "
                                             "configuration says where they are";
    screen_str(&c->screen, span(r.row, r.col, r.col + r.cols), text, STYLE_DIM);
}

static void draw(struct core *c, const struct ui_model *m, struct rect r)
{
    struct models_state *s = &c->models;
    size_t n = count(c, m);
    s->n = n;
    if (n == 0) {
        free(s->selected);
        s->selected = NULL;
        draw_empty(c, m, r);
        return;
    }
    size_t at = select_file(c, m, n);
    const struct ui_model_file *chosen = file_at(c, m, at);
    note_file(s, chosen, m->n_messages > 0);
    int info = lines_of(chosen->info) + 1; /* and an empty row above */
    int list = r.rows - info >= INFO_ROWS_MIN ? r.rows - info : r.rows;
    if (list == r.rows && r.rows >= 3 * INFO_ROWS_MIN)
        list = r.rows / 2;
    s->rows = list;
    s->at = at;
    if (at < s->top)
        s->top = at;
    if (at >= s->top + (size_t)list)
        s->top = at - (size_t)list + 1;
    for (int row = 0; row < list && s->top + (size_t)row < n; row++)
        draw_file(c, file_at(c, m, s->top + (size_t)row), r.row + row, r,
                  s->top + (size_t)row == at);
    if (list < r.rows)
        draw_info(c, chosen->info,
                  (struct rect){ r.row + list + 1, r.col, r.rows - list - 1, r.cols });
    if (!c->notice[0] && !m->scanning_files)
        core_notice(c, "Enter loads the model, Esc goes back");
}

static void enter(struct core *c, struct ui_intent *out)
{
    struct models_state *s = &c->models;
    if (!s->selected)
        return;
    if (!s->runs) {
        core_notice(c, "Tern does not run it; the reason stands below");
    } else if (s->asks && !s->asked) {
        s->asked = true;
        core_notice(c, "it reads this conversation anew: nothing that was read carries "
                       "over. Enter once more loads it");
    } else {
        *out = (struct ui_intent){ .kind = UI_MODEL, .text = mem_strdup(s->selected) };
        core_show(c, &chat_view);
    }
}

static void act(struct core *c, enum action a, struct ui_intent *out)
{
    struct models_state *s = &c->models;
    int page = s->rows > 1 ? s->rows - 1 : 1, all = (int)s->n;
    c->stale = true;
    if (a == ACT_ENTER) {
        enter(c, out);
        return;
    }
    s->asked = false;
    switch (a) {
    case ACT_ESCAPE:
    case ACT_MODELS:
        core_show(c, &chat_view);
        break;
    case ACT_UP:
    case ACT_LINE_UP:
        s->move--;
        break;
    case ACT_DOWN:
    case ACT_LINE_DOWN:
        s->move++;
        break;
    case ACT_PAGE_UP:
        s->move -= page;
        break;
    case ACT_PAGE_DOWN:
        s->move += page;
        break;
    case ACT_HOME:
    case ACT_TOP:
        s->move -= all;
        break;
    case ACT_END:
    case ACT_BOTTOM:
        s->move += all;
        break;
    default:
        break;
    }
}

static void typed(struct core *c, struct ui_intent *out)
{
    (void)out;
    c->models.asked = false;
    c->stale = true;
}

static void click(struct core *c, int row, struct ui_intent *out)
{
    struct models_state *s = &c->models;
    if (row >= s->rows || s->top + (size_t)row >= s->n)
        return;
    if (s->top + (size_t)row == s->at)
        act(c, ACT_ENTER, out);
    else
        s->move = (int)(s->top + (size_t)row) - (int)s->at;
    c->stale = true;
}

const struct view_ops models_view = {
    .place = IN_MODELS,
    .title = "Models",
    .draw = draw,
    .act = act,
    .click = click,
    .typed = typed,
};
