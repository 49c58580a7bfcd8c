/* core.c - the views put together: which one has the keys, what a key does, and
 * how a screen is composed. Knows no terminal. */
#include "ui/view.h"

#include "base/mem.h"
#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/status.h"
#include "ui/theme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIT_WINDOW_MS 2000

static void remember_lines(struct editor *e, const char *history)
{
    while (history && *history) {
        size_t n = strcspn(history, "\n");
        char *entry = mem_strndup(history, n);
        editor_remember(e, entry);
        free(entry);
        history += n + (history[n] == '\n');
    }
}

void core_init(struct core *c, const struct ui_params *p)
{
    *c = (struct core){ .view = &chat_view, .interrupt_ms = -QUIT_WINDOW_MS };
    editor_init(&c->editor);
    editor_init(&c->line);
    transcript_init(&c->transcript);
    remember_lines(&c->editor, p->history);
    c->commands = mem_strdup(p->commands ? p->commands : "");
}

void core_release(struct core *c)
{
    screen_release(&c->screen);
    decode_release(&c->keys);
    editor_release(&c->editor);
    editor_release(&c->line);
    transcript_release(&c->transcript);
    list_release(&c->list);
    search_release(&c->search);
    free(c->commands);
}

void core_show(struct core *c, const struct view_ops *view)
{
    c->view = view;
    c->stale = true;
    c->list.mode = LIST_BROWSE;
    c->help_top = 0;
    search_release(&c->search);
    core_line_set(c, "");
}

void core_notice(struct core *c, const char *text)
{
    snprintf(c->notice, sizeof c->notice, "%s", text);
}

void core_line_set(struct core *c, const char *text)
{
    editor_release(&c->line);
    editor_set(&c->line, text);
}

/* ---- keys --------------------------------------------------------------- */

static struct editor *active(struct core *c)
{
    return c->view == &chat_view ? &c->editor : &c->line;
}

static void changed(struct core *c, struct ui_intent *out)
{
    if (c->view->typed)
        c->view->typed(c, out);
}

/* One-line inputs take no line breaks. */
static bool insert(struct core *c, const char *s, size_t n)
{
    if (c->view == &help_view || c->list.mode == LIST_CONFIRM)
        return true;
    if (c->view == &chat_view)
        return editor_insert(&c->editor, s, n);
    char *line = mem_strndup(s, n);
    for (size_t i = 0; i < n; i++)
        if (line[i] == '\n' || line[i] == '\t')
            line[i] = ' ';
    bool ok = editor_insert(&c->line, line, n);
    free(line);
    return ok;
}

static void paste(struct core *c, struct ui_intent *out)
{
    if (!insert(c, buf_cstr(&c->keys.paste), c->keys.paste.len))
        core_notice(c, "the input is full: the paste was not taken");
    else if (c->keys.paste_cut)
        core_notice(c, "the paste was cut at 4 MiB");
    changed(c, out);
}

static bool edit_action(struct editor *e, enum action a)
{
    static const struct {
        unsigned char kind; /* 1: move, 2: erase, 3: kill */
        unsigned char motion;
    } edits[ACT_COUNT] = {
        [ACT_LEFT] = { 1, TO_LEFT },
        [ACT_RIGHT] = { 1, TO_RIGHT },
        [ACT_WORD_LEFT] = { 1, TO_WORD_LEFT },
        [ACT_WORD_RIGHT] = { 1, TO_WORD_RIGHT },
        [ACT_LINE_START] = { 1, TO_LINE_START },
        [ACT_LINE_END] = { 1, TO_LINE_END },
        [ACT_ERASE_LEFT] = { 2, TO_LEFT },
        [ACT_ERASE_RIGHT] = { 2, TO_RIGHT },
        [ACT_KILL_WORD_LEFT] = { 3, TO_WORD_LEFT },
        [ACT_KILL_WORD_RIGHT] = { 3, TO_WORD_RIGHT },
        [ACT_KILL_LINE_END] = { 3, TO_LINE_END },
        [ACT_KILL_LINE_START] = { 3, TO_LINE_START },
    };
    enum motion m = (enum motion)edits[a].motion;
    switch (edits[a].kind) {
    case 1:
        editor_move(e, m);
        return true;
    case 2:
        editor_erase(e, m);
        return true;
    case 3:
        editor_kill(e, m);
        return true;
    default:
        break;
    }
    if (a == ACT_YANK)
        editor_yank(e);
    else if (a == ACT_UNDO)
        editor_undo(e);
    else if (a == ACT_REDO)
        editor_redo(e);
    else
        return false;
    return true;
}

/* Ctrl+C: stops, else clears, else asks for a second press, else quits. */
static void interrupt(struct core *c, struct ui_intent *out)
{
    struct editor *e = active(c);
    if (c->generating) {
        out->kind = UI_STOP;
    } else if (c->view != &chat_view) {
        core_show(c, &chat_view);
    } else if (e->text.len > 0) {
        editor_remember(e, buf_cstr(&e->text));
        editor_set(e, "");
        c->editing = 0;
        core_notice(c, "input cleared; Up brings it back");
    } else if (c->now_ms - c->interrupt_ms <= QUIT_WINDOW_MS) {
        out->kind = UI_QUIT;
    } else {
        c->interrupt_ms = c->now_ms;
        core_notice(c, "press Ctrl+C again to quit");
    }
}

static void end_of_input(struct core *c, struct ui_intent *out)
{
    struct editor *e = active(c);
    if (e->text.len > 0) {
        editor_erase(e, TO_RIGHT);
        changed(c, out);
    } else if (c->view == &chat_view) {
        out->kind = UI_QUIT;
    } else {
        core_show(c, &chat_view);
    }
}

static void toggle(struct core *c, const struct view_ops *view)
{
    core_show(c, c->view == view ? &chat_view : view);
}

static bool common_action(struct core *c, enum action a, struct ui_intent *out)
{
    switch (a) {
    case ACT_INTERRUPT:
        interrupt(c, out);
        return true;
    case ACT_END_OF_INPUT:
        end_of_input(c, out);
        return true;
    case ACT_SUSPEND:
        c->wants |= WANT_SUSPEND;
        return true;
    case ACT_REPAINT:
        c->wants |= WANT_REPAINT;
        return true;
    case ACT_MOUSE:
        c->wants |= WANT_MOUSE;
        return true;
    case ACT_HELP:
        toggle(c, &help_view);
        return true;
    case ACT_LIST:
        toggle(c, &list_view);
        return true;
    case ACT_SEARCH:
        toggle(c, &search_view);
        return true;
    case ACT_NEW:
        core_show(c, &chat_view);
        out->kind = UI_NEW;
        return true;
    default:
        return false;
    }
}

/* Keys that type: plain characters, also with Shift. */
static bool types(const struct key *k)
{
    return k->code == K_CHAR && !(k->mods & (MOD_CTRL | MOD_ALT));
}

static void handle_key(struct core *c, const struct key *k, struct ui_intent *out)
{
    c->dirty = true;
    c->notice[0] = 0;
    if (k->code == K_PASTE) {
        paste(c, out);
        return;
    }
    if (types(k) && c->view != &help_view && c->list.mode != LIST_CONFIRM) {
        char s[4];
        if (!insert(c, s, utf8_encode(k->cp, s)))
            core_notice(c, "the input is full");
        changed(c, out);
        return;
    }
    enum action a = keys_action(k, c->view->place);
    if (a != ACT_INTERRUPT)
        c->interrupt_ms = -QUIT_WINDOW_MS;
    if (c->list.mode == LIST_CONFIRM && types(k) && (k->cp == 'y' || k->cp == 'Y'))
        a = ACT_ENTER;
    else if (c->list.mode == LIST_CONFIRM && a != ACT_SUSPEND && a != ACT_REPAINT)
        a = ACT_ESCAPE;
    if (a == ACT_NONE || common_action(c, a, out))
        return;
    if (edit_action(active(c), a))
        changed(c, out);
    else
        c->view->act(c, a, out);
}

bool core_next(struct core *c, int64_t now_ms, struct ui_intent *out)
{
    struct key k;
    *out = (struct ui_intent){ .kind = UI_NONE };
    c->now_ms = now_ms;
    while (out->kind == UI_NONE && !c->stale && decode_next(&c->keys, now_ms, &k)) {
        if (k.code < K_MODE)
            handle_key(c, &k, out);
        else if (c->answer)
            c->answer(c->answer_user, &k);
    }
    if (out->kind == UI_NONE && c->dirty) {
        c->dirty = false;
        out->kind = UI_REDRAW;
    }
    return out->kind != UI_NONE;
}

int core_timeout_ms(const struct core *c, int64_t now_ms)
{
    if (c->stale && c->keys.at < c->keys.in.len)
        return 0;
    return decode_timeout_ms(&c->keys, now_ms);
}

/* ---- drawing ------------------------------------------------------------ */

static void draw_title(struct core *c, const struct ui_model *m, struct rect r)
{
    if (r.rows == 0)
        return;
    struct buf b = BUF_INIT;
    const char *title =
        m->chat && m->chat->title[0] ? m->chat->title : "new conversation";
    if (c->view != &chat_view)
        title = c->view->title;
    sanitize_line(&b, title, strlen(title));
    screen_put(&c->screen, span(r.row, r.col, r.col + r.cols), b.v, b.len, STYLE_TITLE);
    buf_release(&b);
}

/* The rule between body and input carries a notice on the left and the count
 * of unseen lines on the right. Without a rule they cover the body's last row,
 * while there is something to tell. */
static void draw_rule(struct core *c, const struct ui_model *m)
{
    struct rect r = c->layout.rule;
    struct buf left = BUF_INIT, right = BUF_INIT;
    size_t unseen = c->view == &chat_view ? c->transcript.new_lines : 0;
    const char *notice = c->notice[0] ? c->notice : m->notice ? m->notice : "";
    sanitize_line(&left, notice, strlen(notice));
    if (unseen > 0)
        buf_printf(&right, "\xE2\x86\x93 %zu new line%s below (End)", unseen,
                   unseen == 1 ? "" : "s");
    else if (c->view == &chat_view && !c->transcript.follow)
        buf_str(&right, "\xE2\x86\x93 more below (End)");
    bool own_row = r.rows > 0;
    if (!own_row)
        r = (struct rect){ c->layout.body.row + c->layout.body.rows - 1, 0, 1,
                           c->screen.cols };
    int end = r.col + r.cols, mark = end - (int)utf8_width(buf_cstr(&right), right.len);
    if (own_row)
        for (int col = r.col; col < end; col++)
            screen_str(&c->screen, span(r.row, col, end), "\xE2\x94\x80", STYLE_RULE);
    if (left.len > 0) {
        int at = screen_put(&c->screen, span(r.row, r.col, end), left.v, left.len,
                            STYLE_NOTICE);
        screen_str(&c->screen, span(r.row, at, end), " ", STYLE_RULE);
    }
    if (right.len > 0 && mark > r.col)
        screen_put(&c->screen, span(r.row, mark, end), right.v, right.len, STYLE_NOTICE);
    buf_release(&left);
    buf_release(&right);
}

static const char *prompt_of(const struct core *c)
{
    if (c->view == &list_view)
        return c->list.mode == LIST_RENAME ? "title> " : "filter> ";
    if (c->view == &search_view)
        return "search> ";
    return c->editing ? "edit> " : "> ";
}

static void draw_status(struct core *c, const struct ui_model *m, struct rect r)
{
    struct buf b = BUF_INIT;
    status_format(&b, &m->status, r.cols);
    screen_fill(&c->screen, span(r.row, r.col, r.col + r.cols), STYLE_STATUS);
    screen_put(&c->screen, span(r.row, r.col, r.col + r.cols), buf_cstr(&b), b.len,
               STYLE_STATUS);
    buf_release(&b);
}

/* Keys come between draws, when no model is at hand. */
static void note_model(struct core *c, const struct ui_model *m)
{
    c->generating = m->status.phase == PHASE_PREFILL || m->status.phase == PHASE_DECODE;
    c->last_answer = c->last_versions = 0;
    c->selected_role = ROLE_COUNT;
    c->list.current = m->chat ? m->chat->id : 0;
    for (size_t i = m->n_messages, seen = 0; i-- > 0 && seen < 16; seen++) {
        const struct message *msg = &m->messages[i];
        if (msg->role == ROLE_ASSISTANT && !c->last_answer)
            c->last_answer = msg->id;
        if (msg->siblings > 1 && !c->last_versions)
            c->last_versions = msg->id;
    }
    for (size_t i = m->n_messages; c->transcript.selected && i-- > 0;) {
        if (m->messages[i].id == c->transcript.selected) {
            c->selected_role = m->messages[i].role;
            break;
        }
    }
}

/* Fetches the text of a message that is to be edited. */
static void fetch_edit(struct core *c, const struct ui_model *m)
{
    for (size_t i = m->n_messages; c->edit_wanted && i-- > 0;) {
        const struct message *msg = &m->messages[i];
        if (msg->role != ROLE_USER || (c->edit_wanted > 0 && msg->id != c->edit_wanted))
            continue;
        if (c->editor.text.len > 0 && !c->editing)
            editor_remember(&c->editor, buf_cstr(&c->editor.text));
        editor_set(&c->editor, msg->text);
        c->editing = msg->id;
        core_notice(c, "editing: Enter sends a new version, Esc leaves the old one");
        break;
    }
    c->edit_wanted = 0;
}

static void draw_tiny(struct core *c)
{
    struct rect r = c->layout.status;
    if (r.rows > 0)
        screen_str(&c->screen, span(r.row, r.col, r.col + r.cols),
                   "tern: window too small", STYLE_TEXT);
}

void core_draw(struct core *c, const struct ui_model *m, int rows, int cols)
{
    screen_resize(&c->screen, rows, cols);
    c->stale = false;
    rows = c->screen.rows;
    cols = c->screen.cols;
    fetch_edit(c, m);
    struct editor *e = active(c);
    const char *prompt = prompt_of(c);
    bool box = c->view != &help_view;
    int wanted = box && cols > 0 ? input_rows(e, prompt, cols, rows / 3 + 1) : 1;
    c->layout = layout_compute(rows, cols, wanted);
    if (c->layout.tiny) {
        note_model(c, m);
        draw_tiny(c);
        return;
    }
    draw_title(c, m, c->layout.title);
    c->view->draw(c, m, c->layout.body);
    draw_rule(c, m);
    if (box)
        input_draw(e == &c->editor ? &c->input : &c->line_input, e, prompt, &c->screen,
                   c->layout.input);
    draw_status(c, m, c->layout.status);
    note_model(c, m);
}
