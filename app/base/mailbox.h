/* mailbox.h - a bounded queue of fixed-size messages between threads, with a
 * descriptor for poll(). Messages are copied; what a pointer inside one means
 * is between poster and taker.
 * Thread-safety: any thread may post, take and shut; open and close happen
 * while no other thread uses it. */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct mailbox;

/* A queue of at most capacity messages of message_bytes each (both over 0). */
int mailbox_open(struct mailbox **out, size_t message_bytes, size_t capacity,
                 struct err *err);
void mailbox_close(struct mailbox *mb);

/* Adds a copy of *message; waits while the queue is full. False once shut. */
bool mailbox_post(struct mailbox *mb, const void *message);
/* Does not wait: false when the queue is full or shut. */
bool mailbox_try_post(struct mailbox *mb, const void *message);
/* Moves the oldest message to *message; waits while there is none. False once
 * shut and empty. */
bool mailbox_take(struct mailbox *mb, void *message);
/* Does not wait: false when there is none. */
bool mailbox_try_take(struct mailbox *mb, void *message);
/* Ends waiting on both sides for good: nothing can be posted any more, what
 * is queued can still be taken. */
void mailbox_shut(struct mailbox *mb);
bool mailbox_is_shut(struct mailbox *mb);

/* Readable while messages are queued, and after mailbox_shut. Only to poll. */
int mailbox_fd(const struct mailbox *mb);

#endif
