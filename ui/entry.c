/* entry.c - a message as lines.
 *
 * Invariant: after entry_sync, lines[] describes text wrapped at look->width,
 * and the entry belongs to the message by id, time and role. A message without
 * an id yet keeps its entry while its text only grows. */
#include "ui/entry.h"

#include "base/sanitize.h"
#include "ui/status.h"
#include "ui/theme.h"

#include <string.h>
#include <time.h>

void entry_release(struct entry *e)
{
    markdown_release(&e->thinking);
    markdown_release(&e->body);
    *e = (struct entry){ 0 };
}

static bool belongs(const struct entry *e, const struct message *m)
{
    return e->used && e->id == m->id && e->created_ms == m->created_ms &&
           e->role == m->role && e->body.fed <= m->text_bytes &&
           e->thinking.fed <= m->thinking_bytes;
}

static void start(struct entry *e, const struct message *m)
{
    entry_release(e);
    e->used = true;
    e->id = m->id;
    e->created_ms = m->created_ms;
    e->role = m->role;
    e->thinking.style = STYLE_THINKING;
    e->body.style = m->role == ROLE_SYSTEM ? STYLE_DIM : STYLE_TEXT;
    e->body.plain = m->role != ROLE_ASSISTANT;
}

/* Code points of the thinking text, counted as it grows. */
static void count_thinking(struct entry *e, const struct message *m)
{
    for (; e->thinking_counted < m->thinking_bytes; e->thinking_counted++)
        e->thinking_chars +=
            ((unsigned char)m->thinking[e->thinking_counted] & 0xC0) != 0x80;
}

static const char *state_mark(const struct message *m, const struct entry_look *look)
{
    if (look->queued)
        return "[queued: sent after the answer; Up takes it back]";
    if (look->waiting)
        return "[answered as soon as there is a model]";
    if (look->unanswered)
        return "[no answer yet: /retry asks for one]";
    switch (m->state) {
    case STATE_PARTIAL:
        return look->live ? NULL : "[incomplete: the answer was interrupted]";
    case STATE_STOPPED:
        return "[stopped]";
    case STATE_LENGTH:
        return "[cut: the token limit was reached]";
    case STATE_FAILED:
        return "[failed: this is the text so far]";
    default:
        return NULL;
    }
}

size_t entry_sync(struct entry *e, const struct message *m, const struct entry_look *look)
{
    bool final = !look->live, thinks = m->thinking && m->thinking_bytes > 0;
    size_t total = 0;
    if (!belongs(e, m))
        start(e, m);
    markdown_feed(&e->body, m->text, m->text_bytes, final);
    if (thinks) {
        count_thinking(e, m);
        if (look->thinking)
            markdown_feed(&e->thinking, m->thinking, m->thinking_bytes, final);
    }
    e->lines[PART_GAP] = !look->first;
    e->lines[PART_LABEL] = 1;
    e->lines[PART_FOLD] = thinks;
    e->lines[PART_THINKING] =
        thinks && look->thinking ? text_wrap(&e->thinking.text, look->width) : 0;
    e->lines[PART_BODY] = text_wrap(&e->body.text, look->width);
    e->lines[PART_MARK] = state_mark(m, look) != NULL;
    for (int i = 0; i < PART_COUNT; i++)
        total += e->lines[i];
    return total;
}

/* The part that holds a line, and the line's number within it. */
static enum entry_part part_of(const struct entry *e, size_t *line)
{
    for (int i = 0; i < PART_COUNT; i++) {
        if (*line < e->lines[i])
            return (enum entry_part)i;
        *line -= e->lines[i];
    }
    *line = 0;
    return PART_COUNT;
}

struct place entry_place(const struct entry *e, size_t line)
{
    struct place p = { .part = part_of(e, &line) };
    if (p.part == PART_BODY)
        p.pos = text_line_pos(&e->body.text, line);
    else if (p.part == PART_THINKING)
        p.pos = text_line_pos(&e->thinking.text, line);
    return p;
}

size_t entry_line(const struct entry *e, struct place p)
{
    size_t before = 0;
    for (int i = 0; i < (int)p.part && i < PART_COUNT; i++)
        before += e->lines[i];
    if (p.part == PART_BODY && e->lines[PART_BODY])
        before += text_line_at(&e->body.text, p.pos);
    else if (p.part == PART_THINKING && e->lines[PART_THINKING])
        before += text_line_at(&e->thinking.text, p.pos);
    return before;
}

struct place entry_end(const struct entry *e)
{
    struct place p = { .part = PART_COUNT };
    while (p.part > PART_LABEL && e->lines[p.part - 1] == 0)
        p.part--;
    p.part--;
    if (p.part == PART_BODY && e->body.text.bytes.len > 0)
        p.pos = e->body.text.bytes.len - 1;
    else if (p.part == PART_THINKING && e->thinking.text.bytes.len > 0)
        p.pos = e->thinking.text.bytes.len - 1;
    return p;
}

/* What an answer cost, and who wrote it; when a message was written. */
static void add_figures(struct buf *b, const struct message *m)
{
    const struct message_stats *f = &m->stats;
    char when[32];
    time_t t = (time_t)(m->created_ms / 1000);
    struct tm tm;
    if (m->created_ms && localtime_r(&t, &tm) &&
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm))
        buf_printf(b, "  %s", when);
    if (f->generated_tokens) {
        buf_str(b, "  ");
        status_number(b, f->generated_tokens);
        buf_str(b, f->generated_tokens == 1 ? " token" : " tokens");
        if (f->decode_tps > 0)
            buf_printf(b, f->decode_tps < 100 ? " at %.1f/s" : " at %.0f/s",
                       f->decode_tps);
        buf_str(b, ", first after ");
        status_time(b, f->ttft_ms);
        buf_str(b, ", read ");
        status_number(b, f->evaluated_tokens);
        buf_str(b, " and reused ");
        status_number(b, f->reused_tokens);
    }
    if (m->model && *m->model) {
        buf_str(b, "  ");
        sanitize_line(b, m->model, strlen(m->model));
    }
}

static void draw_label(const struct message *m, const struct entry_look *look,
                       struct screen *s, struct span at)
{
    static const struct {
        const char *text;
        uint16_t style;
    } labels[] = {
        [ROLE_SYSTEM] = { "System", STYLE_SYSTEM },
        [ROLE_USER] = { "You", STYLE_USER },
        [ROLE_ASSISTANT] = { "Assistant", STYLE_ASSISTANT },
    };
    enum role role = m->role < ROLE_COUNT ? m->role : ROLE_SYSTEM;
    uint16_t style = look->selected ? STYLE_SELECTED : labels[role].style;
    struct buf b = BUF_INIT;
    at.col = screen_str(s, at, labels[role].text, style);
    if (m->siblings > 1)
        buf_printf(&b, "  version %u of %u", m->sibling_index + 1, m->siblings);
    if (look->figures || look->selected)
        add_figures(&b, m);
    screen_put(s, at, buf_cstr(&b), b.len, STYLE_DIM);
    buf_release(&b);
}

static void draw_fold(const struct entry *e, const struct message *m,
                      const struct entry_look *look, struct screen *s, struct span at)
{
    struct buf b = BUF_INIT;
    bool thinking_now = look->live && m->text_bytes == 0;
    buf_str(&b, look->thinking ? "\xE2\x96\xBE " : "\xE2\x96\xB8 ");
    if (m->stats.thinking_tokens) {
        buf_str(&b, thinking_now ? "Thinking for " : "Thought for ");
        status_time(&b, m->stats.thinking_ms);
        buf_str(&b, ", ");
        status_number(&b, m->stats.thinking_tokens);
        buf_str(&b, m->stats.thinking_tokens == 1 ? " token" : " tokens");
    } else {
        buf_str(&b, thinking_now ? "Thinking: " : "Thought: ");
        status_number(&b, e->thinking_chars);
        buf_str(&b, e->thinking_chars == 1 ? " character" : " characters");
    }
    if (look->fold_key && *look->fold_key)
        buf_printf(&b, " (%s %s)", look->fold_key, look->thinking ? "folds" : "shows");
    screen_put(s, at, b.v, b.len, STYLE_THINKING);
    buf_release(&b);
}

void entry_draw(const struct entry *e, const struct message *m,
                const struct entry_look *look, size_t line, struct screen *s,
                struct span at)
{
    const char *mark;
    switch (part_of(e, &line)) {
    case PART_LABEL:
        draw_label(m, look, s, at);
        break;
    case PART_FOLD:
        draw_fold(e, m, look, s, at);
        break;
    case PART_THINKING:
        text_draw(&e->thinking.text, line, s, at);
        break;
    case PART_BODY:
        text_draw(&e->body.text, line, s, at);
        break;
    case PART_MARK:
        mark = state_mark(m, look);
        screen_str(s, at, mark ? mark : "", STYLE_STATE);
        break;
    default:
        break;
    }
}
