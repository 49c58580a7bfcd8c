/* signals.h - signals as events of the poll loop, and what a crash does.
 * Thread-safety: call both before any other thread starts. */
#ifndef APP_SIGNALS_H
#define APP_SIGNALS_H

#include "base/err.h"

/* Blocks SIGINT, SIGTERM and SIGHUP in this thread and those it starts, and
 * gives a descriptor from which signals_take reads them. -1: error. */
int signals_open(struct err *err);
/* The oldest signal that has arrived, 0: none. */
int signals_take(int fd);
/* Gives the signals their usual effect again. */
void signals_close(int fd);

/* SIGSEGV, SIGBUS, SIGABRT, SIGFPE and SIGILL restore the terminal, then do what
 * they always do. SIGPIPE is ignored: writing fails instead. */
void signals_crash_handlers(void);

#endif
