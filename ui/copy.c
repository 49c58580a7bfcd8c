/* copy.c - text for the clipboard. It is the source, not what is drawn: no wrap,
 * no borders. Control characters are left out, because a clipboard is pasted
 * into shells. */
#include "ui/copy.h"

#include "base/utf8.h"
#include "ui/split.h"

#include <string.h>

void copy_text(struct buf *out, const char *text, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(text + i, n - i, &cp);
        bool control =
            (cp < 0x20 && cp != '\n' && cp != '\t') || (cp >= 0x7F && cp <= 0x9F);
        if (!control)
            buf_add(out, text + i, len);
    }
}

/* A count of fenced blocks, collecting one of them on the way. */
struct walk {
    size_t count, want; /* want: from 1; 0 collects none */
    struct buf *out;
};

static void code_line(struct walk *w, const char *s, size_t n, size_t indent)
{
    if (w->count != w->want)
        return;
    while (indent-- > 0 && n > 0 && *s == ' ') {
        s++;
        n--;
    }
    copy_text(w->out, s, n);
}

static size_t fence_length(const char *s, size_t n)
{
    size_t len = 0;
    while (len < n && (s[0] == '`' || s[0] == '~') && s[len] == s[0])
        len++;
    return len >= 3 ? len : 0;
}

/* Fences inside another block, that is, indented under a list item. */
static void walk_block(struct walk *w, const char *s, size_t n)
{
    size_t open = 0, indent = 0;
    char mark = 0;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        const char *newline = memchr(s + at, '\n', n - at);
        bytes = newline ? (size_t)(newline - s) + 1 - at : n - at;
        size_t blanks;
        split_indent(s + at, bytes, &blanks);
        size_t len = fence_length(s + at + blanks, bytes - blanks);
        if (open && len >= open && s[at + blanks] == mark) {
            open = 0;
        } else if (open) {
            code_line(w, s + at, bytes, indent);
        } else if (len > 0) {
            open = len;
            indent = blanks;
            mark = s[at + blanks];
            w->count++;
        }
    }
}

/* Returns how many fenced blocks there are; appends number `want`. */
static size_t walk(const char *s, size_t n, size_t want, struct buf *out)
{
    struct walk w = { .want = want, .out = out };
    struct split st = { 0 };
    struct piece p;
    size_t indent = 0;
    for (size_t at = 0; split_next(&st, s + at, n - at, true, &p); at += p.bytes) {
        if (p.kind == PIECE_FENCE_OPEN)
            w.count++;
        else if (p.kind == PIECE_FENCE_LINE)
            code_line(&w, s + at, p.bytes, indent);
        else if (p.kind == PIECE_BLOCK)
            walk_block(&w, s + at, p.bytes);
        indent = (size_t)st.fence_indent;
    }
    return w.count;
}

bool copy_code(struct buf *out, const char *text, size_t n, size_t back)
{
    size_t count = walk(text, n, 0, out);
    if (back >= count)
        return false;
    walk(text, n, count - back, out);
    return true;
}

void copy_sequence(struct buf *out, const char *text, size_t n)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    buf_str(out, "\x1b]52;c;");
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? (unsigned char)text[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_char(out, i + k > n ? '=' : digits[v >> (18 - 6 * k) & 63]);
    }
    buf_char(out, '\x07');
}

void copy_sequence_screen(struct buf *out, const char *text, size_t n)
{
    enum { PIECE = 256 }; /* of what it takes in one string */
    struct buf b = BUF_INIT;
    copy_sequence(&b, text, n);
    for (size_t at = 0; at < b.len; at += PIECE) {
        size_t bytes = b.len - at < PIECE ? b.len - at : PIECE;
        buf_str(out, "\x1bP");
        buf_add(out, b.v + at, bytes);
        buf_str(out, "\x1b\\");
    }
    buf_release(&b);
}
