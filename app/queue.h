/* queue.h - what was typed while an answer was being written: it is sent when the
 * answer is there, and shown until then. A part of the conversation (chat.h).
 * What waits is also kept as the conversation's draft, so that nothing is lost if
 * the program ends.
 * Thread-safety: one thread, that of the conversation. */
#ifndef APP_QUEUE_H
#define APP_QUEUE_H

#include "app/chat.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether a message would have to wait now. */
bool queue_wanted(const struct conversation *c);
void queue_add(struct conversation *c, const char *text, size_t bytes);
/* Sends the first text that waits, if no answer is being written. What cannot be
 * sent goes on waiting; the notice says why. */
void queue_next(struct conversation *c);
/* Takes back the last text, or all of them as one with empty lines between;
 * malloced, NULL if nothing waits. */
char *queue_take(struct conversation *c, bool all);
/* The texts as messages that are not stored; ids below 0. */
struct message queue_message(const struct conversation *c, size_t i);
/* Forgets them, but not the draft. */
void queue_release(struct conversation *c);

/* Keeps what waits and what was typed after it with the shown conversation. A
 * failure is a line in the log. */
void draft_save(struct conversation *c, const char *typed);
/* What was kept; malloced, NULL: nothing. It is kept no longer. */
char *draft_take(struct conversation *c);

#endif
