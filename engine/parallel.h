/* parallel.h - a loop over independent items on all processors. */
#ifndef ENGINE_PARALLEL_H
#define ENGINE_PARALLEL_H

#include <stdint.h>

/* Calls run(arg, first, end) for ranges that cover [0, n) once, on at most as
 * many threads as there are processors and never more than n / least; returns
 * when all have. Where a thread cannot be started, its share runs here. */
void parallel_for(uint32_t n, uint32_t least, void (*run)(void *, uint32_t, uint32_t),
                  void *arg);

#endif
