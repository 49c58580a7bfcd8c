/* slash.h - commands that are typed into a chat, "/name argument". One table
 * holds names, arguments, help and functions.
 * Thread-safety: one thread. */
#ifndef APP_SLASH_H
#define APP_SLASH_H

#include "base/buf.h"
#include "base/err.h"

#include "app/chat.h"

#include <stdbool.h>

enum slash_result { SLASH_FAILED = -1, SLASH_DONE, SLASH_QUIT };

/* Whether the line is a command: "/usr/bin" and "/ 2" are text. */
bool slash_is(const char *text);
/* text: the whole line. Whatever there is to say becomes the conversation's
 * notice; SLASH_FAILED: nothing was done, and err says why. */
enum slash_result slash_run(struct conversation *c, const char *text, struct err *err);
void slash_help(struct buf *out);

#endif
