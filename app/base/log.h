/* log.h - lines in a file, for the time after something went wrong; the
 * terminal is taken. Text of conversations does not belong here. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"

struct log;

#define LOG_FILE_BYTES (4u << 20) /* then the file moves to NAME.old, once */

enum log_level { LOG_NOTE, LOG_WARN, LOG_ERROR };

/* Opens a log for appending, creating file (0600) and directories (0700). A
 * path of NULL gives a log that keeps nothing. On failure *out is NULL, which
 * every call here accepts as such a log. */
int log_open(struct log **out, const char *path, struct err *err);
/* "2024-05-06T07:08:09.123Z warn  text" in one write. Bytes that a terminal
 * would not show as themselves become \xNN; the text is cut at 8 KiB. Never
 * fails visibly. Thread-safety: any thread; several processes may share the
 * file. */
void log_line(struct log *log, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void log_close(struct log *log);

#endif
