/* table.h - a Markdown table: cells are collected, then written as aligned
 * text. Inner part of render.c. */
#ifndef UI_TABLE_H
#define UI_TABLE_H

#include "ui/text.h"

#include <stddef.h>

struct table {
    struct text cells;    /* one paragraph a cell, row by row */
    unsigned char *align; /* of each cell: MD_ALIGN */
    size_t n_align, cap_align;
    size_t cols;
};

void table_begin(struct table *t, size_t cols);
/* Starts the next cell; its text is added to t->cells. */
void table_cell(struct table *t, int align);
/* Writes the rows to out, a rule under the first one, and empties the table. */
void table_end(struct table *t, struct text *out, const char *lead, const char *rest);
void table_release(struct table *t);

#endif
