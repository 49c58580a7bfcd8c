/* view_chat.c - the conversation: sending, editing, versions, scrolling, and the
 * slash commands that concern the front end alone. */
#include "ui/view.h"

#include "base/mem.h"
#include "ui/theme.h"

#include <stdlib.h>
#include <string.h>

static void draw_welcome(struct core *c, struct rect r)
{
    static const char *const lines[] = {
        "Tern",
        "",
        "Type a message and press Enter.",
        "F1 shows the keys, Ctrl+O the conversations, Ctrl+D leaves.",
    };
    for (int i = 0; i < 4 && i < r.rows; i++)
        screen_str(&c->screen, span(r.row + i, r.col, r.col + r.cols), lines[i],
                   i == 0 ? STYLE_TITLE : STYLE_DIM);
}

static void draw(struct core *c, const struct ui_model *m, struct rect r)
{
    struct buf fold_key = BUF_INIT;
    keymap_keys(&c->keymap, ACT_THINKING, 1, &fold_key);
    struct transcript_model tm = {
        .chat_id = m->chat ? m->chat->id : 0,
        .messages = m->messages,
        .n = m->n_messages,
        .n_queued = m->n_queued,
        .live = m->status.phase == PHASE_PREFILL || m->status.phase == PHASE_DECODE,
        .waiting = m->waiting,
        .fold_key = buf_cstr(&fold_key),
    };
    transcript_draw(&c->transcript, &tm, &c->screen, r);
    buf_release(&fold_key);
    if (m->n_messages == 0)
        draw_welcome(c, r);
}

static void set_theme(struct core *c, const char *name)
{
    int theme = theme_find(name);
    if (theme < 0) {
        core_notice(c, "themes: 16, dark, light, none");
        return;
    }
    c->theme = (enum theme)theme;
    c->wants |= WANT_THEME;
}

/* What stands after a command of this name; NULL if it is another one. */
static const char *argument(const char *s, const char *name)
{
    size_t n = strlen(name);
    if (strncmp(s, name, n) != 0 || (s[n] && s[n] != ' '))
        return NULL;
    return s + n + strspn(s + n, " ");
}

/* Opens a view with words in its input, as if they had been typed. */
static void show_with(struct core *c, const struct view_ops *view, const char *words,
                      struct ui_intent *out)
{
    core_show(c, view);
    core_line_set(c, words);
    if (*words)
        view->typed(c, out);
    if (view == &models_view)
        out->kind = UI_MODELS;
}

static void copy_command(struct core *c, const char *path)
{
    free(c->save_path);
    c->save_path = *path ? mem_strdup(path) : NULL;
    c->copy_wanted = COPY_MESSAGE;
    c->stale = true;
}

/* Commands of the front end; true if the text was one. words is the caller's copy. */
static bool local_command(struct core *c, const char *s, struct ui_intent *out)
{
    const char *words;
    if (argument(s, "/help"))
        core_show(c, &help_view);
    else if (argument(s, "/list"))
        core_show(c, &list_view);
    else if ((words = argument(s, "/search")))
        show_with(c, &search_view, words, out);
    else if ((words = argument(s, "/find")))
        show_with(c, &find_view, words, out);
    else if ((words = argument(s, "/theme")))
        set_theme(c, words);
    else if ((words = argument(s, "/copy")))
        copy_command(c, words);
    else if ((words = argument(s, "/model")) && !*words)
        show_with(c, &models_view, words, out);
    else if (argument(s, "/quit"))
        out->kind = UI_QUIT;
    else if (argument(s, "/new"))
        out->kind = UI_NEW;
    else
        return false;
    return true;
}

/* A slash starts a command only when a word follows: "/usr/bin" is text. Only one
 * command takes several lines. */
static bool is_command(const char *s)
{
    size_t n = strspn(s + (*s == '/'), "abcdefghijklmnopqrstuvwxyz-");
    return *s == '/' && n > 0 && (s[1 + n] == 0 || s[1 + n] == ' ') &&
           (!strchr(s, '\n') || !strncmp(s, "/system ", 8));
}

static void take_input(struct core *c, struct ui_intent *out)
{
    free(c->sent);
    c->sent = mem_strdup(buf_cstr(&c->editor.text));
    out->text = input_text(c);
    editor_remember(&c->editor, c->sent);
    editor_set(&c->editor, "");
    c->attach_skip = SIZE_MAX;
    transcript_to_end(&c->transcript);
}

void chat_enter(struct core *c, struct ui_intent *out)
{
    const char *s = buf_cstr(&c->editor.text);
    if (s[strspn(s, " \t\n")] == 0)
        return;
    if (is_command(s) && !c->editing) {
        if (local_command(c, s, out)) {
            editor_remember(&c->editor, s);
            editor_set(&c->editor, "");
        } else {
            out->kind = UI_COMMAND;
            take_input(c, out);
        }
        return;
    }
    if (input_attach_next(c, out))
        return;
    if (c->generating && c->editing) {
        core_notice(c, "the answer is still being written: Esc stops it");
        return;
    }
    out->kind = c->editing ? UI_EDIT : UI_SEND;
    out->id = c->editing;
    c->editing = 0;
    take_input(c, out);
}

static void escape(struct core *c, struct ui_intent *out)
{
    if (c->editor.mark != SIZE_MAX) {
        c->editor.mark = SIZE_MAX;
    } else if (c->editing) {
        c->editing = 0;
        editor_set(&c->editor, "");
    } else if (c->generating) {
        out->kind = UI_STOP;
    } else {
        c->transcript.selected = 0;
    }
}

/* Answer again: the selected answer, else the last one; or a question for the first
 * time. */
static void regenerate(struct core *c, struct ui_intent *out)
{
    bool selected = c->transcript.selected && c->selected_role == ROLE_ASSISTANT;
    int64_t id = selected ? c->transcript.selected : c->last_answer;
    if (c->generating)
        core_notice(c, "the answer is still being written: Esc stops it");
    else if (id == 0)
        core_notice(c, "there is no answer yet");
    else
        *out = (struct ui_intent){ .kind = UI_REGENERATE, .id = id };
    if (out->kind == UI_REGENERATE && !selected)
        transcript_to_end(&c->transcript);
}

static void edit(struct core *c)
{
    if (c->generating)
        core_notice(c, "the answer is still being written: Esc stops it");
    else
        c->edit_wanted = c->transcript.selected ? c->transcript.selected : -1;
    c->stale = c->edit_wanted != 0;
}

static void sibling(struct core *c, int delta, struct ui_intent *out)
{
    int64_t id = c->transcript.selected ? c->transcript.selected : c->last_versions;
    if (c->generating)
        core_notice(c, "the answer is still being written: Esc stops it");
    else if (id == 0)
        core_notice(c, "there is no other version");
    else
        *out = (struct ui_intent){ .kind = UI_SIBLING, .id = id, .delta = delta };
}

/* Up and Down: within the text, then back to what is queued, then through earlier
 * inputs. */
static void vertical(struct core *c, int delta, struct ui_intent *out)
{
    if (delta < 0 && c->n_queued && !c->editor.text.len) {
        out->kind = UI_UNQUEUE;
        return;
    }
    const char *prompt = c->editing ? "edit> " : "> ";
    if (!input_move_row(&c->editor, prompt, c->layout.input.cols, delta))
        editor_history(&c->editor, delta);
}

static bool scroll(struct core *c, enum action a)
{
    struct transcript *t = &c->transcript;
    switch (a) {
    case ACT_PAGE_UP:
    case ACT_PAGE_DOWN:
        transcript_page(t, a == ACT_PAGE_UP ? -1 : 1);
        return true;
    case ACT_LINE_UP:
    case ACT_LINE_DOWN:
        transcript_scroll(t, a == ACT_LINE_UP ? -1 : 1);
        return true;
    case ACT_TOP:
        transcript_to_top(t);
        return true;
    case ACT_BOTTOM:
        transcript_to_end(t);
        return true;
    case ACT_MESSAGE_PREV:
    case ACT_MESSAGE_NEXT:
        transcript_jump(t, a == ACT_MESSAGE_PREV ? -1 : 1);
        c->stale = true;
        return true;
    default:
        return false;
    }
}

static void home_end(struct core *c, bool home)
{
    if (c->editor.text.len > 0)
        editor_move(&c->editor, home ? TO_LINE_START : TO_LINE_END);
    else
        scroll(c, home ? ACT_TOP : ACT_BOTTOM);
}

static void act(struct core *c, enum action a, struct ui_intent *out)
{
    if (scroll(c, a))
        return;
    switch (a) {
    case ACT_ENTER:
        chat_enter(c, out);
        break;
    case ACT_NEWLINE:
        if (!editor_insert(&c->editor, "\n", 1))
            core_notice(c, "the input is full");
        break;
    case ACT_ESCAPE:
        escape(c, out);
        break;
    case ACT_REGENERATE:
        regenerate(c, out);
        break;
    case ACT_EDIT:
        edit(c);
        break;
    case ACT_VERSION_PREV:
    case ACT_VERSION_NEXT:
        sibling(c, a == ACT_VERSION_PREV ? -1 : 1, out);
        break;
    case ACT_FIND:
        core_show(c, &find_view);
        break;
    case ACT_MODELS:
        core_show(c, &models_view);
        out->kind = UI_MODELS;
        break;
    case ACT_COMPLETE:
    case ACT_COMPLETE_BACK:
        input_complete(c, a == ACT_COMPLETE ? 1 : -1);
        break;
    case ACT_OPEN_TEXT:
        input_open_pill(c);
        break;
    case ACT_EDITOR:
        *out = (struct ui_intent){ .kind = UI_EDITOR, .text = input_text(c) };
        break;
    case ACT_COPY:
    case ACT_COPY_CODE:
        c->copy_wanted = a == ACT_COPY_CODE           ? COPY_CODE
                         : c->editor.mark != SIZE_MAX ? COPY_SELECTION
                                                      : COPY_MESSAGE;
        c->stale = true;
        break;
    case ACT_THINKING:
        c->transcript.thinking = !c->transcript.thinking;
        break;
    case ACT_FIGURES:
        c->transcript.figures = !c->transcript.figures;
        break;
    case ACT_UP:
    case ACT_DOWN:
        vertical(c, a == ACT_UP ? -1 : 1, out);
        break;
    case ACT_HOME:
    case ACT_END:
        home_end(c, a == ACT_HOME);
        break;
    default:
        break;
    }
}

/* On a line about thinking: folds or shows it; on a label: selects the message, or
 * not any more. */
static void click(struct core *c, int row, struct ui_intent *out)
{
    struct transcript *t = &c->transcript;
    (void)out;
    if (row >= t->rows || !t->shows)
        return;
    if (t->shows[row].part == PART_FOLD)
        t->thinking = !t->thinking;
    else if (t->shows[row].part == PART_LABEL && t->shows[row].message)
        t->selected = t->shows[row].message == t->selected ? 0 : t->shows[row].message;
    c->stale = true;
}

const struct view_ops chat_view = {
    .place = IN_CHAT,
    .title = NULL, /* its own */
    .draw = draw,
    .act = act,
    .click = click,
};
