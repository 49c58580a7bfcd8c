/* err.c - error text. Truncates silently at the struct's size. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? 0 : (size_t)n;
    for (const char *from = at ? ": " : ""; *from && at < sizeof err->text - 1; from++)
        err->text[at++] = *from;
    for (const char *from = old; *from && at < sizeof err->text - 1; from++)
        err->text[at++] = *from;
    if (at < sizeof err->text)
        err->text[at] = 0;
    return -1;
}
