/* gguf_guard.h - mapped files that another program cuts short. Touching a page
 * beyond the new end raises SIGBUS; a guarded mapping reads as zeros there
 * instead, and remembers it, so that the reader can say what happened.
 * Thread-safety: any thread; a region is guarded and released by one. */
#ifndef ENGINE_GGUF_GUARD_H
#define ENGINE_GGUF_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct guard;

/* Guards a mapping of whole pages; NULL if there is no room for one more, and
 * then it is not guarded. The first call installs a handler for SIGBUS that hands
 * on what is not its own. */
struct guard *guard_begin(void *map, size_t bytes);
/* Before the mapping is removed. NULL is fine. */
void guard_end(struct guard *g);
/* Whether a page was missing. NULL: false. */
bool guard_torn(const struct guard *g);

#endif
