/* edit.h - a text in the user's editor: $VISUAL, $EDITOR, or vi. The terminal must be
 * theirs meanwhile (ui_suspend).
 * Thread-safety: one thread. */
#ifndef APP_EDIT_H
#define APP_EDIT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct edit_run {
    char *path; /* of the text while it is edited */
    pid_t pid;
};

/* Writes the text to a private file, in memory where the system has such a place,
 * and starts the editor on it. */
int edit_start(struct edit_run *e, const char *text, struct err *err);
/* Whether the editor still runs; once it does not, out gets the text, and -1 is
 * returned if it left with an error. */
int edit_poll(struct edit_run *e, bool *running, struct buf *out, struct err *err);
/* Removes the file. */
void edit_end(struct edit_run *e);

#endif
