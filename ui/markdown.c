/* markdown.c - feeds a streamed message through split.c and render.c.
 *
 * Invariant: everything before `closed` in text comes from pieces that are
 * final; what follows it was rendered from `open` and is thrown away by the
 * next feed. Work per feed is bounded by the size of one block. */
#include "ui/markdown.h"

#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/render.h"
#include "ui/theme.h"

#include <string.h>

void markdown_release(struct markdown *md)
{
    text_release(&md->text);
    buf_release(&md->open);
    *md = (struct markdown){ 0 };
}

static void drop_front(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    memmove(b->v, b->v + n, b->len - n);
    buf_truncate(b, b->len - n);
}

static void plain_line(struct markdown *md, const char *s, size_t n)
{
    text_para(&md->text, PARA_FLOW, "", "");
    text_add(&md->text, s, n, md->style);
}

static void feed_plain(struct markdown *md)
{
    size_t at = 0;
    const char *v = buf_cstr(&md->open), *newline;
    while ((newline = memchr(v + at, '\n', md->open.len - at))) {
        size_t end = (size_t)(newline - v);
        plain_line(md, v + at, end - at);
        at = end + 1;
    }
    md->closed = text_mark(&md->text);
    drop_front(&md->open, at);
    if (md->open.len > 0)
        plain_line(md, md->open.v, md->open.len);
}

static size_t without_newline(const char *s, size_t n)
{
    return n > 0 && s[n - 1] == '\n' ? n - 1 : n;
}

static void code_line(struct markdown *md, const char *s, size_t n, int indent)
{
    while (n > 0 && *s == ' ' && indent > 0) {
        s++;
        n--;
        indent--;
    }
    text_para(&md->text, PARA_CODE, "", "");
    highlight_line(&md->code, &md->text, s, n);
}

static void fence_open(struct markdown *md, const char *s, size_t n)
{
    size_t skip;
    split_indent(s, n, &skip);
    char mark = s[skip];
    while (skip < n && s[skip] == mark)
        skip++;
    while (skip < n && s[skip] == ' ')
        skip++;
    render_code_edge(&md->text, s + skip, n - skip, "");
    highlight_begin(&md->code, s + skip, n - skip);
}

static void add_piece(struct markdown *md, const struct split *before, const char *s,
                      const struct piece *p)
{
    size_t n = without_newline(s, p->bytes);
    if (p->kind == PIECE_BLANK) {
        md->blank = md->text.n_paras > 0;
        return;
    }
    if (md->blank)
        text_para(&md->text, PARA_FLOW, "", "");
    md->blank = false;
    switch (p->kind) {
    case PIECE_FENCE_OPEN:
        fence_open(md, s, n);
        break;
    case PIECE_FENCE_LINE:
        code_line(md, s, n, before->fence_indent);
        break;
    case PIECE_FENCE_END:
        render_code_edge(&md->text, "", 0, "");
        break;
    default:
        render_markdown(&md->text, s, p->bytes, md->style, p->ordinal);
        break;
    }
}

/* Renders the pieces of s; returns the bytes that they take. */
static size_t add_pieces(struct markdown *md, struct split *st, const char *s, size_t n,
                         bool final)
{
    size_t at = 0;
    struct piece p;
    struct split before = *st;
    while (split_next(st, s + at, n - at, final, &p)) {
        add_piece(md, &before, s + at, &p);
        before = *st;
        at += p.bytes;
    }
    return at;
}

static void feed_markup(struct markdown *md)
{
    size_t done = add_pieces(md, &md->split, buf_cstr(&md->open), md->open.len, false);
    md->closed = text_mark(&md->text);
    drop_front(&md->open, done);
    struct split st = md->split;
    struct highlight code = md->code;
    bool blank = md->blank;
    add_pieces(md, &st, buf_cstr(&md->open), md->open.len, true);
    md->blank = blank;
    md->code = code;
}

void markdown_feed(struct markdown *md, const char *s, size_t n, bool final)
{
    size_t upto = final ? n : utf8_complete(s, n);
    if (upto <= md->fed)
        return;
    sanitize(&md->open, s + md->fed, upto - md->fed);
    md->fed = upto;
    text_rewind(&md->text, md->closed);
    if (md->plain)
        feed_plain(md);
    else
        feed_markup(md);
}
