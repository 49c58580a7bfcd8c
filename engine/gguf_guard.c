/* gguf_guard.c - a signal handler has no context but the process: the regions
 * are of file scope. Invariant: a region with bytes 0 is free or being filled;
 * the handler looks at no other field of it. */
#include "engine/gguf_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REGIONS = 256 };

struct guard {
    atomic_bool taken, torn;
    atomic_uintptr_t start;
    atomic_size_t bytes;
};

static struct guard regions[REGIONS];
static struct sigaction before; /* what SIGBUS did */
static long page_bytes;

static struct guard *region_of(uintptr_t at)
{
    for (size_t i = 0; i < REGIONS; i++) {
        size_t bytes = atomic_load(&regions[i].bytes);
        uintptr_t start = atomic_load(&regions[i].start);
        if (bytes && at >= start && at - start < bytes)
            return &regions[i];
    }
    return NULL;
}

/* Zeros from the page at fault to the end of the region: what was cut off a file
 * is its end. */
static bool zeros_put(struct guard *g, char *at)
{
    char *page = at - ((uintptr_t)at & (uintptr_t)(page_bytes - 1));
    size_t rest = atomic_load(&g->start) + atomic_load(&g->bytes) - (uintptr_t)page;
    atomic_store(&g->torn, true);
    return mmap(page, rest, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
}

static void on_bus(int signo, siginfo_t *info, void *context)
{
    (void)context;
    struct guard *g = info->si_code > 0 ? region_of((uintptr_t)info->si_addr) : NULL;
    if (g && zeros_put(g, info->si_addr))
        return;
    sigaction(signo, &before, NULL);
    if (info->si_code <= 0)
        raise(signo); /* it was sent; a fault happens again by itself */
}

static void handler_install(void)
{
    struct sigaction sa = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    page_bytes = sysconf(_SC_PAGESIZE);
    sigemptyset(&sa.sa_mask);
    sigaction(SIGBUS, &sa, &before);
}

struct guard *guard_begin(void *map, size_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handler_install);
    for (size_t i = 0; i < REGIONS; i++) {
        bool free = false;
        if (!atomic_compare_exchange_strong(&regions[i].taken, &free, true))
            continue;
        atomic_store(&regions[i].torn, false);
        atomic_store(&regions[i].start, (uintptr_t)map);
        atomic_store(&regions[i].bytes, bytes);
        return &regions[i];
    }
    return NULL;
}

void guard_end(struct guard *g)
{
    if (!g)
        return;
    atomic_store(&g->bytes, 0);
    atomic_store(&g->taken, false);
}

bool guard_torn(const struct guard *g)
{
    return g && atomic_load(&g->torn);
}
