/* highlight.h - colours for code: comments, strings, numbers, words of the
 * language. A line at a time, so that streamed code is looked at once; a table
 * row a language (languages.c). Text in, styled text out; thread-safety: none. */
#ifndef UI_HIGHLIGHT_H
#define UI_HIGHLIGHT_H

#include "ui/text.h"

#include <stddef.h>

enum language_flag {
    LANG_NO_CASE = 1,     /* words are the same in any case */
    LANG_HASH = 2,        /* a # starts a comment only after a blank */
    LANG_DOLLAR = 4,      /* $name is a variable */
    LANG_COLON_KEYS = 8,  /* name: and "name": are keys */
    LANG_EQUAL_KEYS = 16, /* so is what stands before the line's first = */
    LANG_DIRECTIVES = 32, /* #word at a line's start */
    LANG_MARKUP = 64,     /* <tag name="value"> */
    LANG_DIFF = 128,      /* the line's first character tells */
    LANG_TICKS = 256,     /* 'x' is a character, 'x alone is not */
    LANG_ONE_LINE = 512,  /* strings end where the line does */
};

struct language {
    const char *names;            /* in fences, separated by spaces */
    const char *line[2];          /* what starts a comment up to the line's end */
    const char *block[2];         /* what a longer comment stands between */
    const char *quotes;           /* characters that strings stand between */
    const char *long_quotes;      /* those that, three times, start one of many lines */
    const char *keywords, *types; /* separated by spaces */
    unsigned flags;
};

/* A place in code. Zero: before a block of no known language. */
struct highlight {
    const struct language *language; /* NULL: none that is known */
    char inside;  /* what the line before left open: 0, '*' a comment, '<' a tag,
                   * else the quote of a string */
    bool tripled; /* the quote stands three times */
};

/* Starts a block; info: what stands after its fence. */
void highlight_begin(struct highlight *h, const char *info, size_t n);
/* Appends one line without its newline to the paragraph that was started last. */
void highlight_line(struct highlight *h, struct text *out, const char *s, size_t n);

/* The row of a language, NULL for none (languages.c). */
const struct language *language_find(const char *name, size_t n);

#endif
