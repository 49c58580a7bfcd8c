/* view_input.c - what the message input can hold besides typed text: long pastes
 * and files as pills, and names that Tab completes. */
#include "ui/view.h"

#include "base/mem.h"
#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/status.h"

#include <stdlib.h>
#include <string.h>

/* A paste of so much is shown as a label: it would push everything else away. */
enum { PILL_LINES = 10, PILL_TEXT_BYTES = 2000 };

char *input_text(const struct core *c)
{
    struct buf b = BUF_INIT;
    const struct buf *text = &c->editor.text;
    pills_expand(&c->pills, buf_cstr(text), text->len, &b);
    return buf_detach(&b);
}

/* Whether this is what was sent last, its pills as their texts. */
static bool was_sent(const struct core *c, const char *text)
{
    struct buf b = BUF_INIT;
    if (!c->sent)
        return false;
    pills_expand(&c->pills, c->sent, strlen(c->sent), &b);
    bool same = !strcmp(buf_cstr(&b), text);
    buf_release(&b);
    return same;
}

void input_set(struct core *c, const char *text)
{
    struct buf b = BUF_INIT;
    if (was_sent(c, text))
        buf_str(&b, c->sent);
    else
        pills_clean(text, strlen(text), &b);
    editor_set(&c->editor, buf_cstr(&b));
    buf_release(&b);
}

/* ---- pills ------------------------------------------------------------------ */

static size_t lines_of(const char *s, size_t n)
{
    size_t lines = n > 0 && s[n - 1] != '\n';
    for (size_t i = 0; i < n; i++)
        lines += s[i] == '\n';
    return lines;
}

static bool pill_insert(struct core *c, const char *label, const char *s, size_t n)
{
    char pill[PILL_BYTES];
    return pills_add(&c->pills, label, s, n, pill) &&
           editor_insert(&c->editor, pill, PILL_BYTES);
}

bool input_paste(struct core *c, const char *s, size_t n, struct ui_intent *out)
{
    struct buf label = BUF_INIT;
    size_t lines = lines_of(s, n);
    bool strange = pills_in(s, n); /* would be taken for a pill */
    if (lines < PILL_LINES && n < PILL_TEXT_BYTES && !strange)
        return editor_insert(&c->editor, s, n);
    buf_str(&label, "pasted: ");
    status_number(&label, lines);
    buf_str(&label, lines == 1 ? " line, " : " lines, ");
    status_number(&label, n);
    buf_str(&label, " bytes");
    bool taken = pill_insert(c, label.v, s, n);
    if (taken) {
        core_notice(c, "Alt+V shows the paste as text");
        *out = (struct ui_intent){ .kind = UI_LABEL,
                                   .id = (int64_t)c->pills.n - 1,
                                   .text = mem_strndup(s, n) };
    }
    buf_release(&label);
    return taken;
}

/* Where the pill is that is meant: at the cursor, before it, else the last one. */
static size_t pill_place(const struct core *c)
{
    const struct buf *t = &c->editor.text;
    size_t cursor = c->editor.cursor;
    if (pills_at(&c->pills, buf_cstr(t) + cursor, t->len - cursor))
        return cursor;
    if (cursor >= PILL_BYTES &&
        pills_at(&c->pills, t->v + cursor - PILL_BYTES, PILL_BYTES))
        return cursor - PILL_BYTES;
    for (size_t at = t->len; at-- > 0;)
        if (pills_at(&c->pills, t->v + at, t->len - at))
            return at;
    return SIZE_MAX;
}

void input_open_pill(struct core *c)
{
    size_t at = pill_place(c);
    struct buf b = BUF_INIT;
    if (at == SIZE_MAX) {
        core_notice(c, "there is no long paste or file in the input");
        return;
    }
    const struct pill *p = pills_at(&c->pills, c->editor.text.v + at, PILL_BYTES);
    pills_clean(buf_cstr(&p->text), p->text.len, &b);
    if (c->editor.text.len + b.len > EDITOR_BYTES_MAX)
        core_notice(c, "the input is full");
    else
        editor_replace(&c->editor, at, PILL_BYTES, buf_cstr(&b), b.len);
    buf_release(&b);
}

/* ---- files -------------------------------------------------------------------- */

bool input_attach_next(struct core *c, struct ui_intent *out)
{
    const struct buf *t = &c->editor.text;
    const char *s = buf_cstr(t);
    for (size_t at = 0; at < t->len; at++) {
        if (s[at] != '@' || at == c->attach_skip ||
            (at > 0 && !strchr(" \t\n(", s[at - 1])))
            continue;
        char *path = complete_reference(s + at, t->len - at, &c->attach_bytes);
        if (!path)
            continue;
        c->attach_at = at;
        *out = (struct ui_intent){ .kind = UI_ATTACH, .text = path };
        return true;
    }
    c->attach_bytes = 0;
    return false;
}

static void new_line(struct core *c)
{
    size_t cursor = c->editor.cursor;
    if (cursor > 0 && c->editor.text.v[cursor - 1] != '\n')
        editor_insert(&c->editor, "\n", 1);
}

void input_attach(struct core *c, const char *label, const char *text)
{
    struct buf b = BUF_INIT;
    if (!label) {
        c->attach_skip = c->attach_bytes ? c->attach_at : SIZE_MAX;
        c->attach_bytes = 0;
        return;
    }
    if (c->attach_bytes)
        editor_replace(&c->editor, c->attach_at, c->attach_bytes, "", 0);
    new_line(c);
    if (!pill_insert(c, label, text, strlen(text)))
        core_notice(c, "the input is full");
    buf_printf(&b, "%s; Enter sends", label);
    core_notice(c, b.v);
    buf_release(&b);
    c->attaching = c->attach_bytes > 0;
    c->attach_bytes = 0;
}

/* ---- completion ------------------------------------------------------------------ */

void input_complete_end(struct core *c)
{
    complete_release(&c->completion);
    c->candidate = SIZE_MAX;
}

/* The text between start and end becomes this. */
static void put(struct core *c, const char *s, size_t n)
{
    struct completion *k = &c->completion;
    editor_place(&c->editor, k->end, -1);
    editor_replace(&c->editor, k->start, k->end - k->start, s, n);
    k->end = k->start + n;
}

static void show_candidates(struct core *c)
{
    const struct completion *k = &c->completion;
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < k->n && b.len < sizeof c->notice; i++) {
        buf_str(&b, i ? "  " : "");
        sanitize_line(&b, k->v[i], strlen(k->v[i]));
    }
    if (b.len >= sizeof c->notice)
        buf_truncate(&b, utf8_complete(b.v, sizeof c->notice - 1));
    core_notice(c, buf_cstr(&b));
    buf_release(&b);
}

static void step(struct core *c, int delta)
{
    struct completion *k = &c->completion;
    if (c->candidate == SIZE_MAX)
        c->candidate = delta > 0 ? 0 : k->n - 1;
    else
        c->candidate = (c->candidate + (delta > 0 ? 1 : k->n - 1)) % k->n;
    put(c, k->v[c->candidate], strlen(k->v[c->candidate]));
    show_candidates(c);
}

void input_complete(struct core *c, int delta)
{
    struct completion *k = &c->completion;
    if (k->n) {
        step(c, delta);
        return;
    }
    if (!complete(k, buf_cstr(&c->editor.text), c->editor.cursor, c->commands, c->words))
        return;
    size_t typed = k->end - k->start;
    if (k->n == 1) {
        put(c, k->v[0], strlen(k->v[0]));
        input_complete_end(c);
    } else if (k->common > typed) {
        put(c, k->v[0], k->common);
        show_candidates(c);
        complete_release(k);
    } else {
        step(c, delta);
    }
}
