/* lines.h - the chat without a full screen: a prompt, a line, an answer. For
 * terminals without cursor addressing and for pipes.
 * Thread-safety: one thread. */
#ifndef APP_LINES_H
#define APP_LINES_H

#include "base/err.h"

#include "app/desk.h"

/* Runs until the end of input, /quit or a signal. Returns an exit status, or -1
 * with the reason in err. */
int lines_run(struct desk *d, struct err *err);

#endif
