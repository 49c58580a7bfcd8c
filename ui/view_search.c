/* view_search.c - words in, hits out. The caller searches; hits are copied. */
#include "ui/view.h"

#include "base/mem.h"
#include "base/sanitize.h"
#include "ui/theme.h"

#include <stdlib.h>
#include <string.h>

void search_release(struct search_state *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->hits[i].title);
        free(s->hits[i].snippet);
    }
    free(s->hits);
    *s = (struct search_state){ 0 };
}

void search_set(struct search_state *s, const struct ui_hit *hits, size_t n)
{
    bool asked = s->asked;
    search_release(s);
    s->asked = asked;
    s->hits = mem_array(n, sizeof *s->hits);
    for (; s->n < n; s->n++) {
        const struct ui_hit *h = &hits[s->n];
        s->hits[s->n] = (struct search_hit){ h->chat_id, h->message_id,
                                             mem_strdup(h->title ? h->title : ""),
                                             mem_strdup(h->snippet ? h->snippet : "") };
    }
}

/* A snippet is drawn in pieces: \x02 starts a match, \x03 ends it. */
static void draw_snippet(struct core *c, const char *s, int row, int col, int end)
{
    bool match = false;
    while (*s && col < end) {
        size_t n = strcspn(s, match ? "\x03" : "\x02");
        struct buf b = BUF_INIT;
        sanitize_line(&b, s, n);
        col = screen_put(&c->screen, span(row, col, end), buf_cstr(&b), b.len,
                         match ? STYLE_MATCH : STYLE_DIM);
        buf_release(&b);
        s += n;
        if (*s) {
            s++;
            match = !match;
        }
    }
}

static void draw_hit(struct core *c, size_t i, int row, struct rect r)
{
    const struct search_hit *h = &c->search.hits[i];
    int end = r.col + r.cols;
    bool selected = i == c->search.selected;
    struct buf title = BUF_INIT;
    sanitize_line(&title, h->title, strlen(h->title));
    if (title.len == 0)
        buf_str(&title, "(untitled)");
    screen_put(&c->screen, span(row, r.col, end), title.v, title.len,
               selected ? STYLE_SELECTED : STYLE_TEXT);
    buf_release(&title);
    if (row + 1 < r.row + r.rows)
        draw_snippet(c, h->snippet, row + 1, r.col + 2, end);
}

static void draw(struct core *c, const struct ui_model *m, struct rect r)
{
    struct search_state *s = &c->search;
    size_t room = r.rows >= 2 ? (size_t)r.rows / 2 : 1;
    (void)m;
    s->rows = (int)room;
    if (s->selected < s->top)
        s->top = s->selected;
    if (s->selected >= s->top + room)
        s->top = s->selected - room + 1;
    for (size_t i = 0; i < room && s->top + i < s->n; i++)
        draw_hit(c, s->top + i, r.row + (int)i * 2, r);
    if (s->n == 0)
        screen_str(&c->screen, span(r.row, r.col, r.col + r.cols),
                   s->asked && c->line.text.len
                       ? "nothing found"
                       : "type words to find in all conversations",
                   STYLE_DIM);
}

static void ask(struct core *c, struct ui_intent *out)
{
    *out = (struct ui_intent){ .kind = UI_SEARCH,
                               .text = mem_strdup(buf_cstr(&c->line.text)) };
    c->search.asked = true;
}

static void typed(struct core *c, struct ui_intent *out)
{
    if (c->line.text.len > 0)
        ask(c, out);
    else
        search_release(&c->search);
}

static void move(struct search_state *s, int64_t by)
{
    int64_t at = (int64_t)s->selected + by, last = (int64_t)s->n - 1;
    s->selected = (size_t)(at < 0 || last < 0 ? 0 : at > last ? last : at);
}

static void open_hit(struct core *c, struct ui_intent *out)
{
    const struct search_hit *h = &c->search.hits[c->search.selected];
    *out = (struct ui_intent){ .kind = UI_OPEN,
                               .id = h->chat_id,
                               .message_id = h->message_id };
    transcript_show(&c->transcript, h->chat_id, h->message_id);
    core_show(c, &chat_view);
}

static void act(struct core *c, enum action a, struct ui_intent *out)
{
    struct search_state *s = &c->search;
    switch (a) {
    case ACT_ESCAPE:
        core_show(c, &chat_view);
        break;
    case ACT_ENTER:
        if (s->selected < s->n)
            open_hit(c, out);
        else if (c->line.text.len > 0)
            ask(c, out);
        break;
    case ACT_UP:
    case ACT_LINE_UP:
        move(s, -1);
        break;
    case ACT_DOWN:
    case ACT_LINE_DOWN:
        move(s, 1);
        break;
    case ACT_PAGE_UP:
        move(s, -s->rows);
        break;
    case ACT_PAGE_DOWN:
        move(s, s->rows);
        break;
    case ACT_HOME:
    case ACT_TOP:
        s->selected = 0;
        break;
    case ACT_END:
    case ACT_BOTTOM:
        move(s, (int64_t)s->n);
        break;
    default:
        break;
    }
}

/* A hit takes two rows. */
static void click(struct core *c, int row, struct ui_intent *out)
{
    struct search_state *s = &c->search;
    size_t i = s->top + (size_t)row / 2;
    if (i >= s->n)
        return;
    if (i == s->selected)
        act(c, ACT_ENTER, out);
    else
        s->selected = i;
}

const struct view_ops search_view = {
    .place = IN_SEARCH,
    .title = "Search",
    .draw = draw,
    .act = act,
    .click = click,
    .typed = typed,
};
