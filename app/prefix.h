/* prefix.h - conversations that need not be read again after a restart: when a
 * timeline goes to disk, when it comes back, and what has to go to make room. The
 * worker moves the data (worker_keep, worker_restore); the store has the index.
 * Part of chat.h; for chat.c, generate.c and desk.c.
 * Thread-safety: one thread, that of the conversation. */
#ifndef APP_PREFIX_H
#define APP_PREFIX_H

#include "app/chat.h"

/* From now on timelines are kept below root (NULL: none are), in at most that many
 * bytes. Index and files are made to agree: another program may have died while
 * it wrote. */
void prefix_open(struct conversation *c, const char *root, uint64_t keep_bytes);
/* The user is looking at a conversation: its timeline is fetched meanwhile. */
void prefix_restore(struct conversation *c);
/* An answer is done: its timeline is written, if it is worth it and there is room
 * or can be made. */
void prefix_keep(struct conversation *c);
/* EVENT_KEPT and EVENT_RESTORED. */
void prefix_event(struct conversation *c, const struct worker_event *e);
/* Waits for a writing that is under way, until a signal comes. */
void prefix_wait(struct conversation *c, int signal_fd, int timeout_ms);

#endif
