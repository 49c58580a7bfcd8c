/* split.c - sampled ids to answer and reasoning text. */
#include "app/split.h"

#include "base/utf8.h"

#include <string.h>

void splitter_init(struct splitter *s, const struct model *m, const int32_t *header,
                   size_t n)
{
    *s = (struct splitter){ .model = m };
    const int32_t begin = model_think_begin(m), end = model_think_end(m);
    for (size_t i = 0; begin >= 0 && i < n; i++)
        if (header[i] == begin || header[i] == end)
            s->thinking = header[i] == begin;
}

static void text_add(struct splitter *s, const char *bytes, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t step = utf8_decode(bytes + i, n - i, &cp);
        bool newline = cp == '\n';
        bool *begun = &s->begun[s->thinking];
        if (newline && (!*begun || s->thinking)) {
            s->newlines += *begun;
        } else {
            for (; s->newlines; s->newlines--)
                buf_char(out, '\n');
            *begun = true;
            if (cp == 0 || (step == 1 && cp == UTF8_REPLACEMENT))
                buf_str(out, "\xef\xbf\xbd");
            else
                buf_add(out, bytes + i, step);
        }
        i += step;
    }
}

static void held_flush(struct splitter *s, struct buf *out)
{
    text_add(s, buf_cstr(&s->held), s->held.len, out);
    buf_truncate(&s->held, 0);
}

void splitter_add(struct splitter *s, int32_t id, struct buf *text, struct buf *thinking)
{
    struct buf *out = s->thinking ? thinking : text;
    const int32_t begin = model_think_begin(s->model), end = model_think_end(s->model);
    if (id >= 0 && (id == begin || id == end)) {
        held_flush(s, out);
        s->thinking = id == begin;
        s->newlines = 0;
        return;
    }
    model_detokenize(s->model, id, 0, &s->held);
    size_t whole = utf8_complete(buf_cstr(&s->held), s->held.len);
    if (!whole)
        return;
    text_add(s, s->held.v, whole, out);
    size_t rest = s->held.len - whole;
    memmove(s->held.v, s->held.v + whole, rest);
    buf_truncate(&s->held, rest);
}

void splitter_end(struct splitter *s, struct buf *text, struct buf *thinking)
{
    held_flush(s, s->thinking ? thinking : text);
}

void splitter_release(struct splitter *s)
{
    buf_release(&s->held);
}
