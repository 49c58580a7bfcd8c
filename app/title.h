/* title.h - titles of conversations, made from what was said.
 * Thread-safety: pure. */
#ifndef APP_TITLE_H
#define APP_TITLE_H

#include <stddef.h>

/* Where titles come from. FIRST: the first message; MODEL: from the model, as soon as
 * it is idle; AUTO: from the model if it is large and fast enough. */
enum titles { TITLES_AUTO, TITLES_FIRST, TITLES_MODEL };

/* The first thing that a message says, without greetings, marks and quoted code,
 * shortened to a title; malloced, empty if there is no text in it. */
char *title_from_text(const char *text, size_t n);
/* What a model answered when it was asked for a title: its first line without
 * quotation marks and the like; malloced, NULL if it is of no use as a title. */
char *title_from_answer(const char *text, size_t n);

#endif
