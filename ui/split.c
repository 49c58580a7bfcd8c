/* split.c - block boundaries of Markdown, line by line. It needs to be safe,
 * not complete: two blocks left in one piece cost time, never correctness. */
#include "ui/split.h"

#include "base/utf8.h"

#include <string.h>

enum line_kind {
    LINE_TEXT,
    LINE_BLANK,
    LINE_FENCE,
    LINE_HEADING,
    LINE_HR,
    LINE_QUOTE,
    LINE_ITEM
};

struct source_line {
    enum line_kind kind;
    size_t bytes; /* without the newline */
    int indent;   /* columns of leading blanks */
    int content;  /* of an item: column where its text begins */
    int ordinal;  /* of an ordered item; -1 for bullets */
    char mark;    /* fence character, or what a rule consists of */
    int mark_len;
    bool empty; /* an item without text */
};

int split_indent(const char *s, size_t n, size_t *bytes)
{
    int cols = 0;
    size_t i = 0;
    for (; i < n && (s[i] == ' ' || s[i] == '\t'); i++)
        cols += s[i] == '\t' ? 4 - cols % 4 : 1;
    *bytes = i;
    return cols;
}

static int count_of(const char *s, size_t n, char c)
{
    size_t i = 0;
    while (i < n && s[i] == c)
        i++;
    return (int)i;
}

static bool all_of(const char *s, size_t n, char c)
{
    int count = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == c)
            count++;
        else if (s[i] != ' ' && s[i] != '\t')
            return false;
    }
    return count >= 3;
}

/* A list marker at s; returns the bytes it takes, 0 for none. */
static size_t list_marker(const char *s, size_t n, int *ordinal)
{
    size_t i = 0;
    *ordinal = -1;
    if (s[0] == '-' || s[0] == '*' || s[0] == '+') {
        i = 1;
    } else {
        int v = 0;
        for (; i < n && i < 9 && s[i] >= '0' && s[i] <= '9'; i++)
            v = v * 10 + (s[i] - '0');
        if (i == 0 || i == n || (s[i] != '.' && s[i] != ')'))
            return 0;
        *ordinal = v;
        i++;
    }
    return i == n || s[i] == ' ' || s[i] == '\t' ? i : 0;
}

static void classify_item(struct source_line *l, const char *s, size_t n)
{
    size_t marker = list_marker(s, n, &l->ordinal), blanks;
    if (marker == 0)
        return;
    int gap = split_indent(s + marker, n - marker, &blanks);
    l->kind = LINE_ITEM;
    l->empty = marker + blanks == n;
    l->content = l->indent + (int)marker + (gap < 1 || gap > 4 || l->empty ? 1 : gap);
}

static struct source_line classify(const char *s, size_t n)
{
    const char *newline = memchr(s, '\n', n);
    struct source_line l = { .bytes = newline ? (size_t)(newline - s) : n };
    size_t skip;
    l.indent = split_indent(s, l.bytes, &skip);
    const char *p = s + skip;
    size_t left = l.bytes - skip;
    if (left == 0)
        l.kind = LINE_BLANK;
    if (left == 0 || l.indent >= 4)
        return l;
    l.mark = p[0];
    l.mark_len = count_of(p, left, p[0]);
    bool fence = (p[0] == '`' || p[0] == '~') && l.mark_len >= 3;
    size_t past = (size_t)l.mark_len;
    if (fence && (p[0] == '~' || !memchr(p + past, '`', left - past)))
        l.kind = LINE_FENCE;
    else if (p[0] == '#' && past <= 6 &&
             (past == left || p[past] == ' ' || p[past] == '\t'))
        l.kind = LINE_HEADING;
    else if ((p[0] == '-' || p[0] == '*' || p[0] == '_') && all_of(p, left, p[0]))
        l.kind = LINE_HR;
    else if (p[0] == '>')
        l.kind = LINE_QUOTE;
    else
        classify_item(&l, p, left);
    return l;
}

/* Whether a line starts a block of its own although a paragraph is open. A
 * line of dashes does not: it makes the paragraph a heading. */
static bool interrupts(const struct source_line *l)
{
    switch (l->kind) {
    case LINE_TEXT:
        return false;
    case LINE_HR:
        return l->mark != '-';
    case LINE_ITEM:
        return !l->empty && l->ordinal <= 1;
    default:
        return true;
    }
}

/* Whether line l, not blank, begins a new piece after the lines of the block
 * that started with `first`. */
static bool ends_block(const struct source_line *first, const struct source_line *l,
                       bool blank)
{
    if (first->kind == LINE_ITEM) {
        if (l->indent >= first->content)
            return false;
        return blank || l->kind != LINE_TEXT;
    }
    if (first->kind == LINE_TEXT && first->indent >= 4) /* indented code */
        return l->indent < 4;
    if (first->kind == LINE_QUOTE && l->kind == LINE_QUOTE)
        return blank;
    return blank || interrupts(l);
}

/* Length of the block at s, trailing blank lines left out; 0 where that is open. */
static size_t block_bytes(const char *s, size_t n, const struct source_line *first,
                          bool final)
{
    size_t at = 0, end = 0;
    bool blank = false, leaf = first->kind == LINE_HEADING || first->kind == LINE_HR;
    while (at < n) {
        struct source_line l = classify(s + at, n - at);
        bool whole = at + l.bytes < n;
        if (!whole && !final)
            return 0; /* what this line is may still change */
        if (l.kind == LINE_BLANK)
            blank = true;
        else if (at > 0 && ends_block(first, &l, blank))
            return end;
        at += l.bytes + whole;
        if (l.kind != LINE_BLANK) {
            end = at;
            blank = false;
        }
        if (leaf)
            return end;
        if (blank && first->kind != LINE_ITEM && first->indent < 4)
            return end;
    }
    return final ? end : 0;
}

/* Where a block that is too long is cut: after a line, else after a word. */
static size_t forced_cut(const char *s)
{
    size_t word = 0;
    for (size_t i = SPLIT_BLOCK_MAX; i > SPLIT_BLOCK_MAX / 2; i--) {
        if (s[i - 1] == '\n')
            return i;
        if (s[i - 1] == ' ' && word == 0)
            word = i;
    }
    return word ? word : utf8_complete(s, SPLIT_BLOCK_MAX);
}

static bool fence_line(struct split *st, const char *s, size_t n, bool final,
                       struct piece *out)
{
    struct source_line l = classify(s, n);
    bool whole = l.bytes < n;
    if (!whole && !final)
        return false;
    size_t skip;
    split_indent(s, l.bytes, &skip);
    bool end = l.kind == LINE_FENCE && l.mark == st->fence && l.mark_len >= st->fence_len;
    for (size_t i = skip + (size_t)l.mark_len; end && i < l.bytes; i++)
        end = s[i] == ' ' || s[i] == '\t';
    out->kind = end ? PIECE_FENCE_END : PIECE_FENCE_LINE;
    out->bytes = l.bytes + whole;
    if (end)
        *st = (struct split){ 0 };
    return true;
}

static int number_item(struct split *st, const struct source_line *l)
{
    int ordinal = 0;
    if (l->kind == LINE_ITEM && l->ordinal >= 0)
        ordinal = st->next_ordinal ? st->next_ordinal : l->ordinal;
    st->next_ordinal = ordinal ? ordinal + 1 : l->kind == LINE_ITEM && l->ordinal == 0;
    return ordinal;
}

static bool next_piece(struct split *st, const char *s, size_t n, bool final,
                       struct piece *out)
{
    if (st->fence)
        return fence_line(st, s, n, final, out);
    struct source_line l = classify(s, n);
    bool whole = l.bytes < n;
    if (!whole && !final)
        return false;
    out->bytes = l.bytes + whole;
    if (l.kind == LINE_BLANK) {
        out->kind = PIECE_BLANK;
        return true;
    }
    if (l.kind == LINE_FENCE) {
        out->kind = PIECE_FENCE_OPEN;
        *st = (struct split){ .fence = l.mark,
                              .fence_len = l.mark_len,
                              .fence_indent = l.indent };
        return true;
    }
    out->kind = PIECE_BLOCK;
    out->bytes = block_bytes(s, n, &l, final);
    if (out->bytes == 0)
        return false;
    out->ordinal = number_item(st, &l);
    return true;
}

bool split_next(struct split *st, const char *s, size_t n, bool final, struct piece *out)
{
    *out = (struct piece){ 0 };
    if (n <= SPLIT_BLOCK_MAX)
        return n > 0 && next_piece(st, s, n, final, out);
    /* Only the first bytes decide, so that the cut does not depend on how much
     * of the text has arrived. */
    if (next_piece(st, s, SPLIT_BLOCK_MAX, false, out))
        return true;
    out->kind = st->fence ? PIECE_FENCE_LINE : PIECE_BLOCK;
    out->bytes = forced_cut(s);
    if (!st->fence)
        st->next_ordinal = 0;
    return true;
}
