/* buf.h - growable bytes. Always NUL-terminated once anything was added. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *v; /* NULL while empty; v[len] is 0 otherwise */
    size_t len, cap;
};

#define BUF_INIT { NULL, 0, 0 }

void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
/* Removes all bytes from position len on; keeps the memory. */
void buf_truncate(struct buf *b, size_t len);
/* Room for n more bytes beyond len (plus the NUL). */
void buf_reserve(struct buf *b, size_t n);
/* Hands the memory over (never NULL; release with free); b becomes empty. */
char *buf_detach(struct buf *b);
/* "" while empty, never NULL. */
const char *buf_cstr(const struct buf *b);
void buf_release(struct buf *b);

#endif
