/* wrap.h - where lines end. Inner part of text.c. */
#ifndef UI_WRAP_H
#define UI_WRAP_H

#include "ui/text.h"

/* Fills in how many bytes from line->start stand on this line at t->width, and
 * returns the byte where the next line starts (the paragraph's end if none). At
 * least one grapheme is taken, so that wrapping always ends. */
size_t wrap_line(const struct text *t, const struct para *p, struct line *line);
/* The prefix that is drawn: none where it would take over half the width. */
const char *wrap_prefix(const struct text *t, const struct para *p, bool first,
                        size_t *bytes);

#endif
