/* render.h - one piece of Markdown to styled paragraphs. Inner part of
 * markdown.c. */
#ifndef UI_RENDER_H
#define UI_RENDER_H

#include "ui/text.h"

#include <stddef.h>
#include <stdint.h>

/* Parses sanitised Markdown and appends it to out. ordinal: number of an
 * ordered list item that starts the source, or 0 to take the one written. */
void render_markdown(struct text *out, const char *s, size_t n, uint16_t style,
                     int ordinal);
/* The lines above and below a code block; info: its language, or "". */
void render_code_edge(struct text *out, const char *info, size_t n, const char *prefix);

#endif
