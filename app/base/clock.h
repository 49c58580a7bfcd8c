/* clock.h - the two clocks: one for durations, one for dates. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that never goes back; only differences mean
 * anything. Thread-safety: any thread. */
uint64_t clock_ns(void);
/* Milliseconds since 1970, UTC; jumps when the system's date is set. */
int64_t clock_wall_ms(void);

#endif
