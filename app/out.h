/* out.h - standard output, standard error and standard input. Foreign text passes
 * the sanitiser on its way to a terminal and goes as it is to a pipe or file.
 * Thread-safety: one thread. */
#ifndef APP_OUT_H
#define APP_OUT_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Foreign text to standard output, in pieces cut at whole code points. */
void out_text(const char *s, size_t n);
/* One line of it: line breaks become spaces on a terminal. */
void out_line(const char *s);
/* Our own words and numbers. */
void out_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Flushes; -1 if standard output did not take everything. */
int out_flush(struct err *err);

/* A line on standard error; always sanitised. */
void note_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Appends all of standard input, which may be a socket, to out. More than
 * limit_bytes is an error. */
int in_read_all(size_t limit_bytes, struct buf *out, struct err *err);

/* 14493408 as "14.5 MB". */
void bytes_format(struct buf *b, uint64_t bytes);
/* Milliseconds since 1970 as local "2024-05-06 07:08". */
void date_format(struct buf *b, int64_t ms);

#endif
