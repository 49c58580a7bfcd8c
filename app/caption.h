/* caption.h - a conversation's title from its model, which is asked while nobody
 * waits for it. Part of chat.h; for generate.c.
 * Thread-safety: one thread, that of the conversation. */
#ifndef APP_CAPTION_H
#define APP_CAPTION_H

#include "app/chat.h"

/* The conversation was answered: a title is asked for if it has none from a model or
 * the user, and if c->titles and the model's speed make that worth while. */
void caption_ask(struct conversation *c);
/* EVENT_SAID: what the model made of it. */
void caption_take(struct conversation *c, const struct worker_event *e);

#endif
