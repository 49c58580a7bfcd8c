/* compose.c - a whole screen from the shown view and the caller's model: title,
 * body, rule, input, status. Also the time to note what keys will need of the
 * model, because it is lent for the draw only. */
#include "ui/view.h"

#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/copy.h"
#include "ui/status.h"
#include "ui/theme.h"

#include <string.h>

static void draw_title(struct core *c, const struct ui_model *m, struct rect r)
{
    if (r.rows == 0)
        return;
    struct buf b = BUF_INIT;
    const char *title =
        m->chat && m->chat->title[0] ? m->chat->title : "new conversation";
    bool shown = !c->view->title;
    if (!shown)
        title = c->view->title;
    sanitize_line(&b, title, strlen(title));
    int end = r.col + r.cols;
    int at = screen_put(&c->screen, span(r.row, r.col, end), b.v, b.len, STYLE_TITLE);
    buf_truncate(&b, 0);
    if (shown && m->setup)
        sanitize_line(&b, m->setup, strlen(m->setup));
    int from = end - (int)utf8_width(buf_cstr(&b), b.len);
    if (b.len && from >= at + 2)
        screen_put(&c->screen, span(r.row, from, end), b.v, b.len, STYLE_DIM);
    buf_release(&b);
}

static bool answering(const struct ui_model *m)
{
    enum ui_phase p = m->status.phase;
    return p == PHASE_PREFILL || p == PHASE_DECODE || (p == PHASE_LOADING && m->waiting);
}

/* What Enter does with what is in the input. */
static void enter_hint(const struct core *c, bool busy, struct buf *out)
{
    const struct buf *text = &c->editor.text;
    if (c->view != &chat_view)
        return;
    if (c->editing) {
        buf_printf(out, "editing: Enter %s a new version, Esc leaves the old one",
                   c->edits_answer ? "keeps" : "sends");
    } else if (text->len && text->v[0] == '/') {
        buf_str(out, "Enter runs a command, Tab completes it");
    } else if (text->len) {
        buf_str(out, busy ? "Enter queues it, " : "Enter sends, ");
        keymap_keys(&c->keymap, ACT_NEWLINE, 1, out);
        buf_str(out, " breaks the line");
    }
}

/* The rule between body and input carries a notice on the left, or else what Enter
 * does, and the count of unseen lines on the right. Without a rule they cover the body's
 * last row, while there is something to tell. */
static void draw_rule(struct core *c, const struct ui_model *m)
{
    struct rect r = c->layout.rule;
    struct buf left = BUF_INIT, right = BUF_INIT;
    bool shown = !c->view->title; /* the conversation is */
    size_t unseen = shown ? c->transcript.new_lines : 0;
    const char *notice = c->notice[0] ? c->notice : m->notice ? m->notice : "";
    uint16_t style = STYLE_NOTICE;
    sanitize_line(&left, notice, strlen(notice));
    if (!left.len && r.rows > 0) {
        enter_hint(c, answering(m), &left);
        if ((int)utf8_width(buf_cstr(&left), left.len) > r.cols)
            buf_truncate(&left, 0);
        style = STYLE_DIM;
    }
    if (unseen > 0)
        buf_printf(&right, "\xE2\x86\x93 %zu new line%s below (End)", unseen,
                   unseen == 1 ? "" : "s");
    else if (shown && !c->transcript.follow)
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
        int at = screen_put(&c->screen, span(r.row, r.col, end), left.v, left.len, style);
        screen_str(&c->screen, span(r.row, at, end), " ", STYLE_RULE);
    }
    if (right.len > 0 && mark > r.col)
        screen_put(&c->screen, span(r.row, mark, end), right.v, right.len, STYLE_NOTICE);
    buf_release(&left);
    buf_release(&right);
}

const char *core_prompt(const struct core *c)
{
    if (c->view == &models_view)
        return "filter> ";
    if (c->view == &list_view)
        return c->list.mode == LIST_RENAME ? "title> " : "filter> ";
    if (c->view == &search_view)
        return "search> ";
    if (c->view == &find_view)
        return "find> ";
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
    c->generating = answering(m);
    c->n_queued = m->n_queued;
    c->last_answer = c->last_versions = 0;
    c->selected_role = ROLE_COUNT;
    c->list.current = m->chat ? m->chat->id : 0;
    for (size_t i = m->n_messages, seen = 0; i-- > 0 && seen < 16; seen++) {
        const struct message *msg = &m->messages[i];
        bool unanswered = msg->role == ROLE_USER && seen == 0;
        if ((msg->role == ROLE_ASSISTANT || unanswered) && !c->last_answer)
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

static const struct message *edited_message(const struct core *c,
                                            const struct ui_model *m)
{
    for (size_t i = m->n_messages; i-- > 0;) {
        const struct message *msg = &m->messages[i];
        if (i + m->n_queued < m->n_messages &&
            (c->edit_wanted < 0 ? msg->role == ROLE_USER : msg->id == c->edit_wanted))
            return msg;
    }
    return NULL;
}

/* Fetches the text of a message that is to be edited. */
static void fetch_edit(struct core *c, const struct ui_model *m)
{
    if (!c->edit_wanted)
        return;
    const struct message *msg = edited_message(c, m);
    c->edit_wanted = 0;
    if (!msg) {
        core_notice(c, "there is no message of yours to edit");
        return;
    }
    if (c->editor.text.len > 0 && !c->editing)
        editor_remember(&c->editor, buf_cstr(&c->editor.text));
    input_set(c, msg->text);
    c->editing = msg->id;
    c->edits_answer = msg->role != ROLE_USER;
}

static const struct message *copied_message(const struct core *c,
                                            const struct ui_model *m)
{
    int64_t selected = c->transcript.selected;
    for (size_t i = m->n_messages; i-- > 0;) {
        const struct message *msg = &m->messages[i];
        if (selected ? msg->id == selected : msg->role == ROLE_ASSISTANT)
            return msg;
    }
    return NULL;
}

/* Appends what was asked for; false where there is none. */
static bool copied_text(struct core *c, const struct ui_model *m, enum core_copy what)
{
    size_t from, n;
    struct buf raw = BUF_INIT;
    if (what == COPY_SELECTION) {
        bool selected = editor_selection(&c->editor, &from, &n);
        if (selected)
            pills_expand(&c->pills, c->editor.text.v + from, n, &raw);
        copy_text(&c->clipboard, buf_cstr(&raw), raw.len);
        buf_release(&raw);
        return selected;
    }
    const struct message *msg = copied_message(c, m);
    if (!msg)
        return false;
    if (what == COPY_CODE)
        return copy_code(&c->clipboard, msg->text, msg->text_bytes, c->copy_back++);
    if (c->save_path)
        buf_add(&c->clipboard, msg->text, msg->text_bytes); /* as it is */
    else
        copy_text(&c->clipboard, msg->text, msg->text_bytes);
    return true;
}

/* Fetches what is to be copied; says what became of it. */
static void fetch_copy(struct core *c, const struct ui_model *m)
{
    static const char *const sent[] = {
        [COPY_MESSAGE] = "message sent to the terminal's clipboard",
        [COPY_CODE] = "code block sent to the terminal's clipboard",
        [COPY_SELECTION] = "selection sent to the terminal's clipboard",
    };
    enum core_copy what = c->copy_wanted;
    if (what == COPY_NOTHING)
        return;
    c->copy_wanted = COPY_NOTHING;
    buf_truncate(&c->clipboard, 0);
    if (!copied_text(c, m, what)) {
        core_notice(c, what == COPY_CODE ? "there is no (other) code block to copy"
                                         : "nothing to copy yet");
        c->copy_back = 0;
        return;
    }
    c->saving = c->save_path || c->no_clipboard || c->clipboard.len > COPY_BYTES_MAX;
    if (!c->saving)
        core_notice(c, sent[what]);
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
    fetch_copy(c, m);
    struct editor *e = core_editor(c);
    const char *prompt = core_prompt(c);
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
