/* view_list.c - the conversations: filter as you type, open, rename in place,
 * delete after a question. Items are copied at each draw, because keys come
 * when the caller's list is not at hand. */
#include "ui/view.h"

#include "base/mem.h"
#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/status.h"
#include "ui/theme.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

static void forget_items(struct list_state *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].title);
    free(l->items);
    l->items = NULL;
    l->n = 0;
}

void list_release(struct list_state *l)
{
    forget_items(l);
    *l = (struct list_state){ 0 };
}

/* Compares without case, code point by code point. */
static bool starts_with(const char *s, const char *word)
{
    while (*word) {
        uint32_t a = 0, b = 0;
        s += utf8_decode(s, strlen(s), &a);
        word += utf8_decode(word, strlen(word), &b);
        if (utf8proc_tolower((utf8proc_int32_t)a) !=
            utf8proc_tolower((utf8proc_int32_t)b))
            return false;
    }
    return true;
}

static bool contains(const char *s, const char *word)
{
    for (;; s++) {
        if (((unsigned char)*s & 0xC0) != 0x80 && starts_with(s, word))
            return true;
        if (*s == 0)
            return false;
    }
}

static void collect(struct core *c, const struct ui_model *m)
{
    struct list_state *l = &c->list;
    const char *filter = l->mode == LIST_BROWSE ? buf_cstr(&c->line.text) : "";
    if (l->mode != LIST_BROWSE && l->n > 0)
        return; /* the list stands still while it asks something */
    forget_items(l);
    l->items = mem_array(m->n_chats, sizeof *l->items);
    for (size_t i = 0; i < m->n_chats; i++) {
        const struct chat *chat = &m->chats[i];
        struct buf title = BUF_INIT;
        sanitize_line(&title, chat->title, strlen(chat->title));
        if (title.len == 0)
            buf_str(&title, "(untitled)");
        if (contains(title.v, filter))
            l->items[l->n++] = (struct list_item){ chat->id, buf_detach(&title) };
        buf_release(&title);
    }
}

static size_t index_of(const struct list_state *l, int64_t id)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].id == id)
            return i;
    return SIZE_MAX;
}

/* Moves the selection as asked and keeps it on an item and on the screen. */
static size_t select_item(struct list_state *l, int rows)
{
    size_t at = index_of(l, l->selected);
    if (at == SIZE_MAX)
        at = index_of(l, l->current);
    if (at == SIZE_MAX)
        at = 0;
    int64_t want = (int64_t)at + l->move;
    l->move = 0;
    l->rows = rows;
    if (l->n == 0)
        return 0;
    at = want < 0 ? 0 : (size_t)want >= l->n ? l->n - 1 : (size_t)want;
    l->selected = l->items[at].id;
    if (at < l->top)
        l->top = at;
    if (at >= l->top + (size_t)rows)
        l->top = at - (size_t)rows + 1;
    return at;
}

static const struct chat *chat_of(const struct ui_model *m, int64_t id)
{
    for (size_t i = 0; i < m->n_chats; i++)
        if (m->chats[i].id == id)
            return &m->chats[i];
    return NULL;
}

/* What stands in the columns on the right, in the order in which it goes when
 * there is less room. */
enum { COL_DATE = 18, COL_COUNT = 8, COL_SIZE = 9, COL_MODEL = 20 };

static int details_cols(int cols)
{
    return cols < 50    ? 0
           : cols < 70  ? COL_DATE + COL_COUNT
           : cols < 100 ? COL_DATE + COL_COUNT + COL_SIZE
                        : COL_DATE + COL_COUNT + COL_SIZE + COL_MODEL;
}

static void put_right(struct core *c, struct span at, const struct buf *b)
{
    int col = at.end - (int)utf8_width(buf_cstr(b), b->len);
    at.col = col > at.col ? col : at.col;
    screen_put(&c->screen, at, buf_cstr(b), b->len, STYLE_DIM);
}

static void draw_details(struct core *c, const struct chat *chat, int row, int col,
                         int end)
{
    struct buf b = BUF_INIT;
    char when[32];
    time_t t = (time_t)(chat->updated_ms / 1000);
    struct tm tm;
    if (end - col >= COL_DATE + COL_COUNT + COL_SIZE + COL_MODEL) {
        sanitize_line(&b, chat->model, strlen(chat->model));
        screen_put(&c->screen, span(row, col + 2, col + COL_MODEL), buf_cstr(&b), b.len,
                   STYLE_DIM);
        col += COL_MODEL;
    }
    buf_truncate(&b, 0);
    if (end - col >= COL_DATE + COL_COUNT + COL_SIZE) {
        status_size(&b, chat->n_bytes);
        put_right(c, span(row, col, col + COL_SIZE), &b);
        col += COL_SIZE;
    }
    buf_truncate(&b, 0);
    buf_printf(&b, "%" PRIu32, chat->n_messages);
    put_right(c, span(row, col, col + COL_COUNT), &b);
    buf_truncate(&b, 0);
    if (localtime_r(&t, &tm) && strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm))
        buf_str(&b, when);
    put_right(c, span(row, end - COL_DATE, end), &b);
    buf_release(&b);
}

static void draw_item(struct core *c, const struct ui_model *m, size_t i, int row,
                      struct rect r, bool selected)
{
    const struct list_item *item = &c->list.items[i];
    const struct chat *chat = chat_of(m, item->id);
    int end = r.col + r.cols, title_end = end - details_cols(r.cols);
    char marks[] = "   ";
    marks[0] = item->id == c->list.current ? '*' : ' ';
    marks[1] = chat && chat->pinned ? '^' : ' ';
    screen_str(&c->screen, span(row, r.col, end), marks, STYLE_LIST_MARK);
    screen_str(&c->screen, span(row, r.col + 3, title_end), item->title, STYLE_TEXT);
    if (chat && title_end < end)
        draw_details(c, chat, row, title_end, end);
    if (selected)
        screen_restyle(&c->screen, span(row, r.col, end), STYLE_SELECTED);
}

static void draw(struct core *c, const struct ui_model *m, struct rect r)
{
    struct list_state *l = &c->list;
    l->current = m->chat ? m->chat->id : 0;
    collect(c, m);
    size_t at = select_item(l, r.rows);
    if (l->top >= l->n)
        l->top = 0;
    for (int row = 0; row < r.rows && l->top + (size_t)row < l->n; row++) {
        size_t i = l->top + (size_t)row;
        draw_item(c, m, i, r.row + row, r, i == at);
    }
    if (l->n == 0)
        screen_str(&c->screen, span(r.row, r.col, r.col + r.cols),
                   m->n_chats ? "nothing fits the filter" : "no conversations yet",
                   STYLE_DIM);
    bool told = c->notice[0] || (m->notice && m->notice[0]);
    if (!told && l->mode == LIST_BROWSE)
        core_notice(
            c, "Enter opens, F2 renames, Del deletes, Alt+P pins, Ctrl+N starts one");
}

static const struct list_item *selected_item(const struct list_state *l)
{
    size_t at = index_of(l, l->selected);
    return at == SIZE_MAX ? NULL : &l->items[at];
}

static void ask_delete(struct core *c, const struct list_item *item)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "delete \"%.80s\" for good? y/n", item->title);
    buf_truncate(&b, utf8_complete(b.v, b.len));
    c->list.mode = LIST_CONFIRM;
    core_notice(c, b.v);
    buf_release(&b);
}

static void browse(struct core *c, enum action a, const struct list_item *item,
                   struct ui_intent *out)
{
    if (a == ACT_ESCAPE) {
        core_show(c, &chat_view);
    } else if (!item) {
        return;
    } else if (a == ACT_ENTER) {
        *out = (struct ui_intent){ .kind = UI_OPEN, .id = item->id };
        core_show(c, &chat_view);
    } else if (a == ACT_RENAME) {
        core_line_set(c, item->title);
        c->list.mode = LIST_RENAME;
        core_notice(c, "Enter keeps the new title, Esc the old one");
    } else if (a == ACT_REMOVE) {
        ask_delete(c, item);
    } else if (a == ACT_PIN) {
        *out = (struct ui_intent){ .kind = UI_PIN, .id = item->id };
    }
}

/* Renaming and the question before deleting: Enter is yes, Esc no. */
static void answer(struct core *c, enum action a, const struct list_item *item,
                   struct ui_intent *out)
{
    bool rename = c->list.mode == LIST_RENAME;
    if (a != ACT_ENTER && a != ACT_ESCAPE)
        return;
    if (a == ACT_ENTER && item) {
        *out =
            (struct ui_intent){ .kind = rename ? UI_RENAME : UI_DELETE, .id = item->id };
        if (rename)
            out->text = mem_strdup(buf_cstr(&c->line.text));
    }
    c->list.mode = LIST_BROWSE;
    if (rename)
        core_line_set(c, "");
}

static void act(struct core *c, enum action a, struct ui_intent *out)
{
    struct list_state *l = &c->list;
    int page = l->rows > 1 ? l->rows - 1 : 1, all = (int)l->n;
    if (l->mode != LIST_BROWSE) {
        answer(c, a, selected_item(l), out);
        return;
    }
    c->stale = true;
    switch (a) {
    case ACT_UP:
    case ACT_LINE_UP:
        l->move--;
        break;
    case ACT_DOWN:
    case ACT_LINE_DOWN:
        l->move++;
        break;
    case ACT_PAGE_UP:
        l->move -= page;
        break;
    case ACT_PAGE_DOWN:
        l->move += page;
        break;
    case ACT_HOME:
    case ACT_TOP:
        l->move -= all;
        break;
    case ACT_END:
    case ACT_BOTTOM:
        l->move += all;
        break;
    default:
        browse(c, a, selected_item(l), out);
        break;
    }
}

/* A click selects, one on what is selected opens it. */
static void click(struct core *c, int row, struct ui_intent *out)
{
    struct list_state *l = &c->list;
    size_t i = l->top + (size_t)row;
    if (l->mode != LIST_BROWSE || i >= l->n)
        return;
    if (l->items[i].id == l->selected)
        act(c, ACT_ENTER, out);
    else
        l->selected = l->items[i].id;
}

/* The filter decides what is selected. */
static void typed(struct core *c, struct ui_intent *out)
{
    (void)out;
    c->stale = true;
}

const struct view_ops list_view = {
    .place = IN_LIST,
    .title = "Conversations",
    .draw = draw,
    .act = act,
    .click = click,
    .typed = typed,
};
