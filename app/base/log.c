/* log.c - the log file: escaping, time stamps, rotation at a size bound.
 * Invariants: a line is one write to a file in append mode, so lines of several
 * threads and processes do not mix; the file and its .old together stay under
 * 2 * LOG_FILE_BYTES. What cannot be written is dropped: a log must not be the
 * reason why the program stops. */
#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utf8proc.h>

#define TEXT_BYTES 8192

struct log {
    pthread_mutex_t lock; /* guards fd */
    char *path, *old_path;
    int fd; /* -1: nothing is kept */
};

static int file_open(const char *path)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;
    int fd = fault_hit(FAULT_OPEN) ? -1 : open(path, flags, 0600);
    if (fd >= 0)
        fchmod(fd, 0600); /* a file that was already there */
    return fd;
}

int log_open(struct log **out, const char *path, struct err *err)
{
    *out = NULL;
    if (path && file_mkdirs_above(path, 0700, err) < 0)
        return -1;
    int fd = path ? file_open(path) : -1;
    if (path && fd < 0)
        return err_set(err, "cannot open the log %s: %s", path, strerror(errno));
    struct log *log = mem_zalloc(sizeof *log);
    pthread_mutex_init(&log->lock, NULL);
    log->fd = fd;
    if (path) {
        struct buf old = BUF_INIT;
        buf_printf(&old, "%s.old", path);
        log->path = mem_strdup(path);
        log->old_path = buf_detach(&old);
    }
    *out = log;
    return 0;
}

static bool is_shown(utf8proc_int32_t c)
{
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF: /* among them the overrides of text direction */
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    default:
        return c != '\\';
    }
}

static void add_escaped(struct buf *b, const char *text, size_t bytes)
{
    const utf8proc_uint8_t *s = (const utf8proc_uint8_t *)text;
    for (size_t i = 0; i < bytes;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate(s + i, (utf8proc_ssize_t)(bytes - i), &c);
        size_t step = n > 0 ? (size_t)n : 1;
        if (n > 0 && is_shown(c)) {
            buf_add(b, s + i, step);
        } else {
            for (size_t k = 0; k < step; k++)
                buf_printf(b, "\\x%02x", s[i + k]);
        }
        i += step;
    }
}

static void add_time(struct buf *b)
{
    int64_t ms = clock_wall_ms();
    time_t s = (time_t)(ms / 1000);
    struct tm tm = { 0 };
    char text[32] = "";
    gmtime_r(&s, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(b, "%s.%03dZ", text, (int)(ms % 1000));
}

static bool is_current(const struct log *log)
{
    struct stat ours, named;
    return fstat(log->fd, &ours) == 0 && stat(log->path, &named) == 0 &&
           named.st_ino == ours.st_ino && named.st_dev == ours.st_dev;
}

/* Moves a full file away, or follows another process that has done so. The
 * lock is on the full file: whoever gets it second finds it moved already. */
static bool rotate(struct log *log)
{
    bool moved = true;
    flock(log->fd, LOCK_EX);
    if (is_current(log))
        moved = !fault_hit(FAULT_RENAME) && rename(log->path, log->old_path) == 0;
    int fd = moved ? file_open(log->path) : -1;
    flock(log->fd, LOCK_UN);
    if (fd < 0)
        return false;
    close(log->fd);
    log->fd = fd;
    return true;
}

static bool has_room(struct log *log, size_t more_bytes)
{
    struct stat st;
    bool full =
        fstat(log->fd, &st) < 0 || (size_t)st.st_size + more_bytes > LOG_FILE_BYTES;
    return (!full && is_current(log)) || rotate(log);
}

static void write_line(struct log *log, const struct buf *line)
{
    ssize_t n;
    do
        n = fault_hit(FAULT_WRITE) ? -1 : write(log->fd, line->v, line->len);
    while (n < 0 && errno == EINTR);
}

void log_line(struct log *log, enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = { "note ", "warn ", "error" };
    if (!log || !log->path)
        return;
    struct buf text = BUF_INIT, line = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    buf_truncate(&text, TEXT_BYTES);
    add_time(&line);
    buf_printf(&line, " %s ", names[level]);
    add_escaped(&line, buf_cstr(&text), text.len);
    buf_char(&line, '\n');

    pthread_mutex_lock(&log->lock);
    if (has_room(log, line.len))
        write_line(log, &line);
    pthread_mutex_unlock(&log->lock);
    buf_release(&text);
    buf_release(&line);
}

void log_close(struct log *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    pthread_mutex_destroy(&log->lock);
    free(log->path);
    free(log->old_path);
    free(log);
}
