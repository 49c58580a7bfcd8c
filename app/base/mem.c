/* mem.c - the one place where running out of host memory ends the program. */
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void exhausted(void)
{
    static const char text[] = "tern: out of host memory\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
        /* nothing left to tell it to */
    }
    abort();
}

void *mem_realloc(void *p, size_t bytes)
{
    void *q = realloc(p, bytes ? bytes : 1);
    if (!q)
        exhausted();
    return q;
}

void *mem_alloc(size_t bytes)
{
    return mem_realloc(NULL, bytes);
}

void *mem_zalloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        exhausted();
    return p;
}

void *mem_regrow(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        exhausted();
    return mem_realloc(p, n * size);
}

void *mem_array(size_t n, size_t size)
{
    return mem_regrow(NULL, n, size);
}

char *mem_strndup(const char *s, size_t bytes)
{
    char *p = mem_alloc(bytes + 1);
    memcpy(p, s, bytes);
    p[bytes] = 0;
    return p;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}
