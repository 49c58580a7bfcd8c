/* buf.c - growable bytes; doubles its memory, aborts when there is none. */
#include "base/buf.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_reserve(struct buf *b, size_t n)
{
    if (n >= SIZE_MAX - b->len)
        n = SIZE_MAX - b->len - 1; /* mem_realloc refuses it */
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    b->v = mem_realloc(b->v, cap);
    b->cap = cap;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    buf_reserve(b, n);
    if (n)
        memcpy(b->v + b->len, bytes, n);
    b->len += n;
    b->v[b->len] = 0;
}

void buf_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return;
    buf_reserve(b, (size_t)n);
    vsnprintf(b->v + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_truncate(struct buf *b, size_t len)
{
    if (len >= b->len)
        return;
    b->len = len;
    b->v[len] = 0;
}

char *buf_detach(struct buf *b)
{
    buf_reserve(b, 0);
    b->v[b->len] = 0;
    char *v = b->v;
    *b = (struct buf)BUF_INIT;
    return v;
}

const char *buf_cstr(const struct buf *b)
{
    return b->v ? b->v : "";
}

void buf_release(struct buf *b)
{
    free(b->v);
    *b = (struct buf)BUF_INIT;
}
