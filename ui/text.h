/* text.h - styled text, wrapped to a width.
 *
 * A text is a list of paragraphs (lines before wrapping) over one byte buffer.
 * It grows only at its end and can be cut back to a mark: that is how the
 * unfinished end of a streamed message is replaced without touching the rest.
 * Wrapping is remembered; only paragraphs added since the last call are done.
 * All bytes passed in are sanitised already. Thread-safety: none. */
#ifndef UI_TEXT_H
#define UI_TEXT_H

#include "base/buf.h"
#include "ui/screen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum para_kind {
    PARA_FLOW, /* broken between words */
    PARA_CODE, /* broken only where the width ends, spaces kept */
    PARA_RULE, /* a horizontal line over the whole width */
};

struct run {
    uint32_t start; /* byte where this style begins; it ends at the next run */
    uint16_t style;
};

struct para {
    uint32_t start, bytes; /* content */
    uint32_t lead, rest;   /* prefixes of the first and the other lines */
    uint16_t lead_bytes, rest_bytes;
    uint8_t kind;
};

struct line {
    uint32_t para, start, bytes; /* content bytes on this line */
    bool first;                  /* the paragraph's first line */
};

struct text {
    struct buf bytes;
    struct run *runs;
    struct para *paras;
    struct line *lines;
    size_t n_runs, n_paras, n_lines;
    size_t cap_runs, cap_paras, cap_lines;
    size_t n_wrapped; /* paragraphs that lines cover */
    int width;        /* of lines; 0: not wrapped yet */
};

struct text_mark {
    size_t bytes, runs, paras;
};

void text_release(struct text *t);
/* Starts a paragraph. lead and rest stand before its first and other lines. */
void text_para(struct text *t, enum para_kind kind, const char *lead, const char *rest);
/* Appends to the paragraph that was started last; no newlines. */
void text_add(struct text *t, const char *s, size_t n, uint16_t style);
void text_str(struct text *t, const char *s, uint16_t style);

struct text_mark text_mark(const struct text *t);
/* Removes everything added after the mark. */
void text_rewind(struct text *t, struct text_mark m);

/* Wraps to width columns (at least 1); returns the number of lines. */
size_t text_wrap(struct text *t, int width);
/* Draws a wrapped line into a span. */
void text_draw(const struct text *t, size_t line, struct screen *s, struct span at);
/* Byte position where a line begins, and the line that holds a position: they
 * keep a place across a change of width. */
size_t text_line_pos(const struct text *t, size_t line);
size_t text_line_at(const struct text *t, size_t pos);
/* Columns that a tab at column col fills. */
int text_tab(int col);

#endif
