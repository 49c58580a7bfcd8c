/* lock.h - which conversations are open in which running program. Advisory:
 * two programs may both write to one, since a message is only ever added to the
 * tree; the lock lets the second one say so.
 * Thread-safety: one thread. */
#ifndef APP_LOCK_H
#define APP_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct lock;

/* path NULL, or a file that cannot be made: a lock that is always granted. */
void lock_open(struct lock **out, const char *path);
void lock_close(struct lock *l);
/* Gives up what was held and takes this conversation (0: none). False if
 * another program has it. */
bool lock_take(struct lock *l, int64_t chat_id);

#endif
