/* title.c - from text to one short line. */
#include "app/title.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TITLE_COLUMNS = 60, SENTENCE_COLUMNS = 12, WORTH_BYTES = 10 };

struct piece {
    const char *s;
    size_t n;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct piece trim(struct piece p)
{
    while (p.n && is_blank(*p.s)) {
        p.s++;
        p.n--;
    }
    while (p.n && is_blank(p.s[p.n - 1]))
        p.n--;
    return p;
}

static struct piece without(struct piece p, size_t n)
{
    return trim((struct piece){ p.s + n, p.n - n });
}

static bool starts(struct piece p, const char *what)
{
    return p.n >= strlen(what) && !strncasecmp(p.s, what, strlen(what));
}

/* The next line; false at the end. */
static bool line_next(struct piece *rest, struct piece *line)
{
    if (!rest->n)
        return false;
    const char *newline = memchr(rest->s, '\n', rest->n);
    size_t n = newline ? (size_t)(newline - rest->s) : rest->n;
    *line = trim((struct piece){ rest->s, n });
    n += newline != NULL;
    rest->s += n;
    rest->n -= n;
    return true;
}

/* Headings, list items and quotations without their marks. */
static struct piece without_marks(struct piece p)
{
    size_t n = 0;
    while (n < p.n && strchr("#>*-+", p.s[n]))
        n++;
    if (n && n < p.n && is_blank(p.s[n]))
        return without(p, n);
    return p;
}

/* "Hi there, could you ..." says no more than what comes after it. */
static struct piece without_greeting(struct piece p)
{
    static const char *const words[] = {
        "hi there",      "hello there",  "hi",       "hello",
        "hey",           "good morning", "please",   "could you",
        "can you",       "would you",    "will you", "i want you to",
        "i need you to", "help me to",   "tell me",  "ok",
        "okay",          "so",           "thanks",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if (!starts(p, words[i]) || n >= p.n || !strchr(" ,.!", p.s[n]))
            continue;
        while (n < p.n && strchr(" ,.!", p.s[n]))
            n++;
        struct piece rest = without(p, n);
        return rest.n >= WORTH_BYTES ? without_greeting(rest) : p;
    }
    return p;
}

/* Up to the end of the first sentence, if that is no mere word. */
static struct piece sentence(struct piece p)
{
    for (size_t i = 0; i + 1 < p.n; i++) {
        bool ends = strchr(".?!", p.s[i]) && is_blank(p.s[i + 1]);
        if (ends && utf8_width(p.s, i) >= SENTENCE_COLUMNS)
            return (struct piece){ p.s, i + (p.s[i] == '?') };
    }
    return p;
}

/* Cut to the columns of a title, between words where there is a blank. */
static char *shorten(struct piece p)
{
    struct buf title = BUF_INIT;
    size_t at = 0, columns = 0, last_blank = 0;
    while (at < p.n) {
        size_t next = utf8_grapheme_next(p.s, p.n, at);
        columns += (size_t)utf8_grapheme_width(p.s + at, next - at);
        if (columns >= TITLE_COLUMNS && (next < p.n || columns > TITLE_COLUMNS))
            break;
        if (is_blank(p.s[at]))
            last_blank = at;
        at = next;
    }
    bool cut = at < p.n;
    if (cut && last_blank > at / 2)
        at = last_blank;
    for (size_t i = 0; i < at; i++)
        buf_char(&title, is_blank(p.s[i]) ? ' ' : p.s[i]);
    if (cut)
        buf_str(&title, "\u2026");
    return buf_detach(&title);
}

static bool is_fence(struct piece line)
{
    return starts(line, "```") || starts(line, "~~~");
}

/* "notes.txt:" above a fence: the name of what is quoted there. */
static bool names_quote(struct piece line, struct piece rest)
{
    struct piece next;
    return line.n && line.s[line.n - 1] == ':' && line_next(&rest, &next) &&
           is_fence(next);
}

/* The first line that is no quoted code, else the first of all. */
static struct piece first_said(struct piece rest)
{
    struct piece line, first = { rest.s, 0 };
    bool fenced = false;
    while (line_next(&rest, &line)) {
        if (is_fence(line)) {
            fenced = !fenced;
        } else if (line.n) {
            if (!fenced && !names_quote(line, rest))
                return line;
            first = first.n ? first : line;
        }
    }
    return first;
}

char *title_from_text(const char *text, size_t n)
{
    struct piece first = first_said((struct piece){ text, n });
    struct piece said = without_marks(first), what = without_greeting(said);
    char *title = shorten(sentence(what));
    if (what.s != said.s)
        *title = (char)toupper((unsigned char)*title);
    return title;
}

/* ---- of a model ------------------------------------------------------------- */

static bool has_letter(struct piece p)
{
    for (size_t i = 0; i < p.n; i++)
        if (isalnum((unsigned char)p.s[i]) || (unsigned char)p.s[i] >= 0x80)
            return true;
    return false;
}

static struct piece without_quotes(struct piece p)
{
    static const char *const quotes[] = { "\"",     "'",      "`",      "**",
                                          "*",      "\u201c", "\u201d", "\u2018",
                                          "\u2019", "\u300c", "\u300d" };
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++) {
        size_t n = strlen(quotes[i]);
        if (p.n >= n && !memcmp(p.s, quotes[i], n))
            p = without(p, n);
        if (p.n >= n && !memcmp(p.s + p.n - n, quotes[i], n))
            p = trim((struct piece){ p.s, p.n - n });
    }
    return p;
}

char *title_from_answer(const char *text, size_t n)
{
    struct piece rest = { text, n }, line = { text, 0 };
    while (line_next(&rest, &line) && !line.n)
        ;
    line = without_marks(line);
    if (starts(line, "title:"))
        line = without(line, 6);
    line = without_quotes(line);
    while (line.n && strchr(".:,;", line.s[line.n - 1]))
        line.n--;
    if (line.n < 3 || !has_letter(line) || utf8_width(line.s, line.n) > TITLE_COLUMNS)
        return NULL;
    return mem_strndup(line.s, line.n);
}
