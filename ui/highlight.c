/* highlight.c - one line of code to styled pieces.
 * Invariant: the pieces of a line, put together, are the line. */
#include "ui/highlight.h"

#include "ui/theme.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct line_scan {
    struct highlight *h;
    const struct language *l;
    struct text *out;
    const char *s;
    size_t n, at;
};

void highlight_begin(struct highlight *h, const char *info, size_t n)
{
    size_t word = 0;
    *h = (struct highlight){ 0 };
    /* "{.python .numberLines}" and "c,linenos" name a language, too. */
    while (n > 0 && (*info == '{' || *info == '.' || *info == ' ')) {
        info++;
        n--;
    }
    while (word < n && !strchr(" ,{}:\t", info[word]))
        word++;
    h->language = language_find(info, word);
}

/* ---- looking -------------------------------------------------------------- */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool stands_at(const struct line_scan *t, size_t at, const char *what)
{
    size_t n = what ? strlen(what) : 0;
    return n > 0 && t->n - at >= n && !memcmp(t->s + at, what, n);
}

static bool listed(const char *list, const char *word, size_t n, bool no_case)
{
    while (list && *list) {
        size_t len = strcspn(list, " ");
        if (len == n && (no_case ? !strncasecmp(list, word, n) : !memcmp(list, word, n)))
            return true;
        list += len + (list[len] == ' ');
    }
    return false;
}

/* The first character that is no blank, from a place on; 0 at the end. */
static char next_mark(const struct line_scan *t, size_t at)
{
    while (at < t->n && (t->s[at] == ' ' || t->s[at] == '\t'))
        at++;
    return at < t->n ? t->s[at] : 0;
}

static bool at_line_start(const struct line_scan *t, size_t at)
{
    while (at > 0 && (t->s[at - 1] == ' ' || t->s[at - 1] == '\t'))
        at--;
    return at == 0;
}

static void emit(struct line_scan *t, size_t end, uint16_t style)
{
    if (end > t->at)
        text_add(t->out, t->s + t->at, end - t->at, style);
    t->at = end;
}

/* ---- pieces --------------------------------------------------------------- */

/* Up to the end of what is open, or of the line. */
static void finish_block(struct line_scan *t)
{
    size_t end = t->at;
    while (end < t->n && !stands_at(t, end, t->l->block[1]))
        end++;
    t->h->inside = end < t->n ? 0 : '*';
    emit(t, end < t->n ? end + strlen(t->l->block[1]) : end, STYLE_COMMENT);
}

static size_t string_end(const struct line_scan *t, size_t at, bool *closed)
{
    char quote = t->h->inside;
    size_t len = t->h->tripled ? 3 : 1;
    for (*closed = false; at < t->n; at++) {
        if (t->s[at] == '\\') {
            at++;
        } else if (t->s[at] == quote &&
                   (len == 1 ||
                    (at + 2 < t->n && t->s[at + 1] == quote && t->s[at + 2] == quote))) {
            *closed = true;
            return at + len;
        }
    }
    return t->n;
}

static void finish_string(struct line_scan *t, size_t from)
{
    bool closed;
    size_t end = string_end(t, from, &closed);
    bool key = closed && t->l->flags & LANG_COLON_KEYS && next_mark(t, end) == ':';
    bool one_line = t->l->flags & LANG_ONE_LINE && !t->h->tripled && t->h->inside != '`';
    if (closed || one_line)
        t->h->inside = 0;
    emit(t, end, key ? STYLE_TYPE : STYLE_STRING);
}

static bool take_string(struct line_scan *t)
{
    char c = t->s[t->at];
    if (!t->l->quotes || !strchr(t->l->quotes, c))
        return false;
    if (c == '\'' && t->l->flags & LANG_TICKS) {
        bool escape = t->at + 1 < t->n && t->s[t->at + 1] == '\\';
        const char *end = memchr(t->s + t->at + 1, '\'', t->n - t->at - 1);
        if (!end || (size_t)(end - (t->s + t->at)) > (escape ? 12u : 5u))
            return false;
    }
    t->h->inside = c;
    t->h->tripled = t->l->long_quotes && strchr(t->l->long_quotes, c) &&
                    t->at + 2 < t->n && t->s[t->at + 1] == c && t->s[t->at + 2] == c;
    finish_string(t, t->at + (t->h->tripled ? 3 : 1));
    return true;
}

static bool take_comment(struct line_scan *t)
{
    if (stands_at(t, t->at, t->l->block[0])) {
        size_t from = t->at + strlen(t->l->block[0]);
        text_add(t->out, t->s + t->at, from - t->at, STYLE_COMMENT);
        t->at = from;
        finish_block(t);
        return true;
    }
    for (int i = 0; i < 2; i++) {
        if (!stands_at(t, t->at, t->l->line[i]))
            continue;
        if (t->l->flags & LANG_HASH && t->at > 0 && !strchr(" \t;", t->s[t->at - 1]))
            return false;
        emit(t, t->n, STYLE_COMMENT);
        return true;
    }
    return false;
}

static bool take_number(struct line_scan *t)
{
    size_t end = t->at;
    if (!isdigit((unsigned char)t->s[end]))
        return false;
    while (end < t->n &&
           (in_word(t->s[end]) || t->s[end] == '.' ||
            ((t->s[end] == '-' || t->s[end] == '+') && strchr("eEpP", t->s[end - 1]))))
        end++;
    emit(t, end, STYLE_NUMBER);
    return true;
}

static bool is_key(const struct line_scan *t, size_t start, size_t end)
{
    char after = next_mark(t, end);
    if (t->l->flags & LANG_COLON_KEYS && after == ':')
        return true;
    return t->l->flags & LANG_EQUAL_KEYS && after == '=' && at_line_start(t, start);
}

static uint16_t word_style(const struct line_scan *t, size_t end)
{
    const char *word = t->s + t->at;
    size_t n = end - t->at;
    bool no_case = t->l->flags & LANG_NO_CASE;
    if (is_key(t, t->at, end))
        return STYLE_TYPE;
    if (listed(t->l->keywords, word, n, no_case))
        return STYLE_KEYWORD;
    if (listed(t->l->types, word, n, no_case))
        return STYLE_TYPE;
    return end < t->n && t->s[end] == '(' ? STYLE_FUNCTION : STYLE_PLAIN;
}

static bool take_word(struct line_scan *t)
{
    size_t end = t->at;
    bool dash = t->l->flags & LANG_COLON_KEYS; /* as in font-size */
    if (!in_word(t->s[end]))
        return false;
    while (end < t->n && (in_word(t->s[end]) || (dash && t->s[end] == '-')))
        end++;
    emit(t, end, word_style(t, end));
    return true;
}

/* $name, ${name} and #word at a line's start. */
static bool take_special(struct line_scan *t)
{
    char c = t->s[t->at];
    size_t end = t->at + 1;
    if (c == '$' && t->l->flags & LANG_DOLLAR && end < t->n) {
        if (t->s[end] == '{') {
            const char *close = memchr(t->s + end, '}', t->n - end);
            end = close ? (size_t)(close - t->s) + 1 : t->n;
        } else {
            while (end < t->n && in_word(t->s[end]))
                end++;
        }
        emit(t, end, STYLE_TYPE);
        return true;
    }
    if (c == '#' && t->l->flags & LANG_DIRECTIVES && at_line_start(t, t->at)) {
        while (end < t->n && (t->s[end] == ' ' || in_word(t->s[end])) &&
               !(t->s[end] == ' ' && isalpha((unsigned char)t->s[end - 1])))
            end++;
        emit(t, end, STYLE_KEYWORD);
        return true;
    }
    return false;
}

/* ---- markup and differences ----------------------------------------------- */

static void tag_piece(struct line_scan *t)
{
    char c = t->s[t->at];
    size_t end = t->at + 1;
    if (c == '>') {
        t->h->inside = 0;
        emit(t, end, STYLE_KEYWORD);
    } else if (c == '"' || c == '\'') {
        const char *close = memchr(t->s + end, c, t->n - end);
        emit(t, close ? (size_t)(close - t->s) + 1 : t->n, STYLE_STRING);
    } else if (c == ' ' || c == '=' || c == '\t') {
        emit(t, end, STYLE_PLAIN);
    } else {
        while (end < t->n && !strchr(">\"' =\t", t->s[end]))
            end++;
        emit(t, end, STYLE_TYPE);
    }
}

static void markup_piece(struct line_scan *t)
{
    size_t end = t->at + 1;
    if (t->s[t->at] == '<' && end < t->n && strchr("/!?", t->s[end]))
        end++;
    if (t->s[t->at] == '<' && end < t->n && isalpha((unsigned char)t->s[end])) {
        while (end < t->n && (in_word(t->s[end]) || strchr(":-.", t->s[end])))
            end++;
        emit(t, end, STYLE_KEYWORD);
        t->h->inside = '<';
        return;
    }
    while (end < t->n && t->s[end] != '<')
        end++;
    emit(t, end, STYLE_PLAIN);
}

static uint16_t diff_style(const char *s, size_t n)
{
    if (n >= 3 && (!memcmp(s, "+++", 3) || !memcmp(s, "---", 3)))
        return STYLE_TYPE;
    switch (n ? *s : 0) {
    case '+':
        return STYLE_ADDED;
    case '-':
        return STYLE_REMOVED;
    case '@':
        return STYLE_FUNCTION;
    default:
        return STYLE_PLAIN;
    }
}

/* ---- lines ---------------------------------------------------------------- */

static void piece(struct line_scan *t)
{
    size_t at = t->at;
    if (t->h->inside == '*') {
        finish_block(t);
    } else if (t->l->flags & LANG_MARKUP) {
        if (t->h->inside)
            tag_piece(t);
        else if (!take_comment(t))
            markup_piece(t);
    } else if (t->h->inside) {
        finish_string(t, at);
    } else if (!take_comment(t) && !take_special(t) && !take_string(t) &&
               !take_number(t) && !take_word(t)) {
        emit(t, at + 1, STYLE_PLAIN);
    }
}

void highlight_line(struct highlight *h, struct text *out, const char *s, size_t n)
{
    struct line_scan t = { .h = h, .l = h->language, .out = out, .s = s, .n = n };
    if (!t.l) {
        text_add(out, s, n, STYLE_CODE);
        return;
    }
    if (t.l->flags & LANG_DIFF) {
        text_add(out, s, n, diff_style(s, n));
        return;
    }
    while (t.at < t.n)
        piece(&t);
}
