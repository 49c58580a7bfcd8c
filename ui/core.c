/* core.c - the views put together: which one has the keys, and what a key does.
 * Screens are composed in compose.c. Knows no terminal. */
#include "ui/view.h"

#include "base/mem.h"
#include "base/utf8.h"

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

/* Lines "action = keys"; those that are wrong were told of before (ui_keys_check). */
static void bind_keys(struct core *c, const char *lines)
{
    while (lines && *lines) {
        size_t n = strcspn(lines, "\n");
        char *line = mem_strndup(lines, n), *equals = strstr(line, " = ");
        if (equals) {
            *equals = 0;
            keymap_bind(&c->keymap, line, equals + 3, NULL);
        }
        free(line);
        lines += n + (lines[n] == '\n');
    }
}

void core_init(struct core *c, const struct ui_params *p)
{
    *c = (struct core){ .view = &chat_view, .interrupt_ms = -QUIT_WINDOW_MS };
    editor_init(&c->editor);
    editor_init(&c->line);
    c->editor.pills = &c->pills;
    c->candidate = c->attach_skip = SIZE_MAX;
    transcript_init(&c->transcript);
    remember_lines(&c->editor, p->history);
    keymap_init(&c->keymap);
    bind_keys(c, p->keys);
    c->commands = mem_strdup(p->commands ? p->commands : "");
    c->words = mem_strdup(p->words ? p->words : "");
}

void core_release(struct core *c)
{
    screen_release(&c->screen);
    decode_release(&c->keys);
    keymap_release(&c->keymap);
    editor_release(&c->editor);
    editor_release(&c->line);
    transcript_release(&c->transcript);
    list_release(&c->list);
    search_release(&c->search);
    models_release(&c->models);
    free(c->commands);
    free(c->words);
    free(c->sent);
    pills_release(&c->pills);
    complete_release(&c->completion);
    buf_release(&c->clipboard);
    free(c->save_path);
}

void core_show(struct core *c, const struct view_ops *view)
{
    c->view = view;
    c->stale = true;
    c->list.mode = LIST_BROWSE;
    c->help_top = 0;
    search_release(&c->search);
    models_release(&c->models);
    core_line_set(c, "");
    if (view != &find_view)
        transcript_words(&c->transcript, NULL);
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

struct editor *core_editor(struct core *c)
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
    const char *s = buf_cstr(&c->keys.paste);
    size_t n = c->keys.paste.len;
    bool taken = c->view == &chat_view ? input_paste(c, s, n, out) : insert(c, s, n);
    if (!taken)
        core_notice(c, "the input is full: the paste was not taken");
    else if (c->keys.paste_cut)
        core_notice(c, "the paste was cut at 4 MiB");
    changed(c, out);
}

static void select_all(struct editor *e)
{
    editor_move(e, TO_START);
    editor_select(e, TO_END);
}

static bool edit_action(struct editor *e, enum action a)
{
    static const struct {
        unsigned char kind; /* 1: move, 2: erase, 3: kill, 4: select */
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
        [ACT_SELECT_LEFT] = { 4, TO_LEFT },
        [ACT_SELECT_RIGHT] = { 4, TO_RIGHT },
        [ACT_SELECT_WORD_LEFT] = { 4, TO_WORD_LEFT },
        [ACT_SELECT_WORD_RIGHT] = { 4, TO_WORD_RIGHT },
        [ACT_SELECT_LINE_START] = { 4, TO_LINE_START },
        [ACT_SELECT_LINE_END] = { 4, TO_LINE_END },
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
    case 4:
        editor_select(e, m);
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
    else if (a == ACT_CUT)
        editor_cut(e);
    else if (a == ACT_SELECT_ALL)
        select_all(e);
    else
        return false;
    return true;
}

/* Ctrl+C: stops, else clears, else asks for a second press, else quits. */
static void interrupt(struct core *c, struct ui_intent *out)
{
    struct editor *e = core_editor(c);
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
    struct editor *e = core_editor(c);
    if (e->text.len > 0) {
        if (e->cursor == e->text.len)
            core_notice(c, "the input is not empty: Ctrl+C clears it");
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

static bool in_rect(struct rect r, int row, int col)
{
    return row >= r.row && row < r.row + r.rows && col >= r.col && col < r.col + r.cols;
}

/* Into the input: the cursor; onto the rule, whose mark counts unseen lines: the end;
 * into the body: whatever the view makes of it. */
static void click(struct core *c, const struct key *k, struct ui_intent *out)
{
    int row = k->value[0] - 1, col = k->value[1] - 1;
    const struct layout *l = &c->layout;
    struct editor *e = core_editor(c);
    if (in_rect(l->input, row, col) && c->view != &help_view) {
        const struct input *in = e == &c->editor ? &c->input : &c->line_input;
        editor_place(e, input_at(in, e, core_prompt(c), l->input, row, col), -1);
    } else if (in_rect(l->rule, row, col) && !c->view->title) {
        transcript_to_end(&c->transcript);
    } else if (in_rect(l->body, row, col) && c->view->click) {
        c->view->click(c, row - l->body.row, out);
    }
}

static void handle_key(struct core *c, const struct key *k, struct ui_intent *out)
{
    c->dirty = true;
    c->notice[0] = 0;
    if (k->code == K_PASTE) {
        paste(c, out);
        return;
    }
    if (k->code == K_CLICK) {
        click(c, k, out);
        return;
    }
    if (types(k) && c->view != &help_view && c->list.mode != LIST_CONFIRM) {
        char s[4];
        size_t n = utf8_encode(k->cp, s);
        input_complete_end(c);
        if (!pills_in(s, n) && !insert(c, s, n))
            core_notice(c, "the input is full");
        changed(c, out);
        return;
    }
    enum action a = keymap_action(&c->keymap, k, c->view->place);
    if (a != ACT_COMPLETE && a != ACT_COMPLETE_BACK)
        input_complete_end(c);
    if (a != ACT_COPY_CODE)
        c->copy_back = 0;
    if (a != ACT_INTERRUPT)
        c->interrupt_ms = -QUIT_WINDOW_MS;
    if (c->list.mode == LIST_CONFIRM && types(k) && (k->cp == 'y' || k->cp == 'Y'))
        a = ACT_ENTER;
    else if (c->list.mode == LIST_CONFIRM && a != ACT_SUSPEND && a != ACT_REPAINT)
        a = ACT_ESCAPE;
    if (a == ACT_NONE || common_action(c, a, out))
        return;
    if (edit_action(core_editor(c), a))
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
    if (out->kind == UI_NONE && c->saving) {
        *out = (struct ui_intent){ .kind = UI_SAVE,
                                   .text = mem_strdup(buf_cstr(&c->clipboard)),
                                   .path = c->save_path };
        c->saving = false;
        c->save_path = NULL;
        buf_truncate(&c->clipboard, 0);
    }
    if (out->kind == UI_NONE && c->editing != c->edit_told) {
        c->edit_told = c->editing;
        if (c->editing)
            *out = (struct ui_intent){ .kind = UI_EDITING, .id = c->editing };
    }
    if (out->kind == UI_NONE && c->attaching) {
        c->attaching = false;
        input_attach_next(c, out);
    }
    if (out->kind == UI_NONE && c->dirty) {
        c->dirty = false;
        out->kind = UI_REDRAW;
    }
    return out->kind != UI_NONE;
}

int core_timeout_ms(const struct core *c, int64_t now_ms)
{
    if (c->saving || c->editing != c->edit_told ||
        (c->stale && c->keys.at < c->keys.in.len))
        return 0;
    return decode_timeout_ms(&c->keys, now_ms);
}
