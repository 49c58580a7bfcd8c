/* parallel.c - see parallel.h. Threads live for one loop: the loops here take
 * milliseconds, a thread's start some ten microseconds. */
#include "engine/parallel.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { MAX_THREADS = 32 };

struct share {
    pthread_t thread;
    bool started;
    uint32_t first, end;
    void (*run)(void *, uint32_t, uint32_t);
    void *arg;
};

static void *run_share(void *arg)
{
    struct share *s = arg;
    s->run(s->arg, s->first, s->end);
    return NULL;
}

static uint32_t thread_count(uint32_t n, uint32_t least)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t threads = processors < 1 ? 1 : (uint32_t)processors;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > n / (least ? least : 1))
        threads = n / (least ? least : 1);
    return threads ? threads : 1;
}

void parallel_for(uint32_t n, uint32_t least, void (*run)(void *, uint32_t, uint32_t),
                  void *arg)
{
    struct share shares[MAX_THREADS];
    uint32_t threads = thread_count(n, least);
    for (uint32_t i = 0; i < threads; i++) {
        struct share *s = &shares[i];
        *s = (struct share){ .first = (uint32_t)((uint64_t)n * i / threads),
                             .end = (uint32_t)((uint64_t)n * (i + 1) / threads),
                             .run = run, .arg = arg };
        s->started = i > 0 && pthread_create(&s->thread, NULL, run_share, s) == 0;
    }
    for (uint32_t i = 0; i < threads; i++)
        if (!shares[i].started)
            run_share(&shares[i]);
    for (uint32_t i = 0; i < threads; i++)
        if (shares[i].started)
            pthread_join(shares[i].thread, NULL);
}
