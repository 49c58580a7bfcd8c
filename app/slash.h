/* slash.h - commands that are typed into a chat, "/name argument". One table
 * holds names, arguments, help and functions; help screen, completion and manual
 * are made from it.
 * Thread-safety: one thread. */
#ifndef APP_SLASH_H
#define APP_SLASH_H

#include "base/buf.h"
#include "base/err.h"

#include "app/chat.h"

#include <stdbool.h>

enum slash_result {
    SLASH_FAILED = -1, /* nothing was done, and err says why */
    SLASH_DONE,
    SLASH_INPUT,  /* done; input is to be typed on, NULL: what was typed */
    SLASH_AGAIN,  /* the notice says what it costs; the same again does it */
    SLASH_ATTACH, /* input is a text with the name label, for the next message */
    SLASH_QUIT,
};

struct slash_call {
    struct conversation *c;
    const char *arg;     /* what stands after the name, trimmed */
    bool again;          /* the same command was given just before */
    char *input, *label; /* malloced or NULL */
};

/* Whether the line is a command: "/usr/bin" and "/ 2" are text. */
bool slash_is(const char *text);
/* text: the whole line. Whatever there is to say becomes the conversation's
 * notice. The caller frees call->input and label. */
enum slash_result slash_run(struct slash_call *call, const char *text, struct err *err);

/* One command after the other; false at the end. Those that only the full screen
 * has are there, too. */
struct slash_row {
    const char *name, *argument, *help;
};
bool slash_row(size_t i, struct slash_row *out);
/* Lines "/name ARGUMENT  help". */
void slash_help(struct buf *out);
/* Lines "/name word word": what may stand after those that take one of some words. */
void slash_words(const struct conversation *c, struct buf *out);

#endif
