/* err.c - error text. What does not fit loses its middle: names come first and are
 * what is long, the reason and the advice come last. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ROOM = 8192, HEAD = 160 };

static void store(struct err *err, char *text)
{
    const size_t most = sizeof err->text - 1;
    size_t n = strlen(text);
    if (n > most) {
        size_t tail = most - HEAD - 3;
        memset(text + HEAD, '.', 3);
        memmove(text + HEAD + 3, text + n - tail, tail);
        n = most;
    }
    for (size_t i = 0; i < n; i++)
        err->text[i] = text[i];
    for (size_t i = 0; i < n; i++)
        if (err->text[i] == '\n' || err->text[i] == '\r') /* of a name */
            err->text[i] = ' ';
    err->text[n] = 0;
}

int err_set(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[ROOM];
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(text, sizeof text, fmt, ap) < 0)
        text[0] = 0;
    va_end(ap);
    store(err, text);
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[ROOM + sizeof err->text + 2];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, ROOM, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? 0 : n < ROOM ? (size_t)n : ROOM - 1;
    snprintf(text + at, sizeof text - at, "%s%s", at ? ": " : "", err->text);
    store(err, text);
    return -1;
}
