/* out.c - printing. Whether standard output is a terminal decides what is
 * sanitised; a failure to write is kept by stdio until out_flush asks. */
#include "app/out.h"

#include "base/sanitize.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void out_text(const char *s, size_t n)
{
    if (!isatty(STDOUT_FILENO)) {
        fwrite(s, 1, n, stdout);
        return;
    }
    struct buf b = BUF_INIT;
    sanitize(&b, s, n);
    fwrite(buf_cstr(&b), 1, b.len, stdout);
    buf_release(&b);
}

void out_line(const char *s)
{
    struct buf b = BUF_INIT;
    if (isatty(STDOUT_FILENO))
        sanitize_line(&b, s, strlen(s));
    else
        buf_str(&b, s);
    fwrite(buf_cstr(&b), 1, b.len, stdout);
    fputc('\n', stdout);
    buf_release(&b);
}

void out_printf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
}

int out_flush(struct err *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return err_set(err, "cannot write to standard output: %s", strerror(errno));
}

void note_printf(const char *fmt, ...)
{
    struct buf raw = BUF_INIT, line = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    sanitize_line(&line, buf_cstr(&raw), raw.len);
    fprintf(stderr, "%s\n", buf_cstr(&line));
    buf_release(&raw);
    buf_release(&line);
}

int in_read_all(size_t limit_bytes, struct buf *out, struct err *err)
{
    size_t before = out->len;
    for (;;) {
        char piece[16384];
        ssize_t n = read(STDIN_FILENO, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, "cannot read standard input: %s", strerror(errno));
        if (n == 0)
            return 0;
        buf_add(out, piece, (size_t)n);
        if (out->len - before > limit_bytes)
            return err_set(err,
                           "standard input is larger than the %zu bytes allowed here",
                           limit_bytes);
    }
}

void bytes_format(struct buf *b, uint64_t bytes)
{
    static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
    double v = (double)bytes;
    size_t unit = 0;
    for (; v >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        v /= 1000;
    buf_printf(b, unit && v < 99.95 ? "%.1f %s" : "%.0f %s", v, units[unit]);
}

void date_format(struct buf *b, int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm = { 0 };
    char text[32] = "";
    localtime_r(&s, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
    buf_str(b, text);
}
