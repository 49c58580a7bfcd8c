/* app.h - the full-screen program: terminal, worker and store in one loop.
 * Thread-safety: one thread. */
#ifndef APP_APP_H
#define APP_APP_H

#include "base/err.h"

#include "ui/ui.h"

#include "app/desk.h"

/* Runs until the user leaves or a signal comes. Returns an exit status, or -1
 * with the reason in err. The terminal stays the UI's. */
int app_run(struct desk *d, struct ui *ui, struct err *err);

#endif
