/* split.h - cuts streamed Markdown into pieces that later text cannot change.
 * Inner part of markdown.c. */
#ifndef UI_SPLIT_H
#define UI_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

enum piece_kind {
    PIECE_BLANK,      /* an empty line */
    PIECE_FENCE_OPEN, /* first line of a fenced code block */
    PIECE_FENCE_LINE, /* a line inside it */
    PIECE_FENCE_END,
    PIECE_BLOCK, /* whole blocks; one top-level list item at a time */
};

struct piece {
    enum piece_kind kind;
    size_t bytes; /* with the newline */
    int ordinal;  /* of an ordered list item: its number, else 0 */
};

/* What must be known of the text before. Zero: the start. */
struct split {
    char fence; /* '`' or '~' inside a fenced block, else 0 */
    int fence_len, fence_indent;
    int next_ordinal; /* of an ordered list that may go on, else 0 */
};

/* A block longer than this is cut: it bounds the work per streamed token. */
#define SPLIT_BLOCK_MAX 16384

/* Takes the first piece of s. False where it takes more text to tell what it
 * is; never with `final`, unless n is 0. The pieces depend on the text alone,
 * not on how it arrived. */
bool split_next(struct split *st, const char *s, size_t n, bool final, struct piece *out);
/* Number of columns of leading blanks, and the bytes they take. */
int split_indent(const char *s, size_t n, size_t *bytes);

#endif
