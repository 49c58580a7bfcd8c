/* clock.c - reads the system's clocks; keeps nothing. */
#include "base/clock.h"

#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec t = { 0 };
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t clock_wall_ms(void)
{
    struct timespec t = { 0 };
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
