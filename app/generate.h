/* generate.h - from a branch to a running answer; the part of chat.h that deals
 * with the worker. For chat.c only.
 * Thread-safety: one thread. */
#ifndef APP_GENERATE_H
#define APP_GENERATE_H

#include "app/chat.h"
#include "app/prompt.h"

/* The branch as a prompt; fails with the numbers where it does not fit into the
 * context with room for an answer. Only in MODEL_READY. Release p. */
int generate_compose(struct conversation *c, const struct message *path, size_t n,
                     struct prompt *p, struct err *err);
/* Starts the answer to the last message of the branch. Takes the prompt over. */
void generate_start(struct conversation *c, const struct message *path, size_t n,
                    struct prompt *p);
/* How the branch is written down now, as the settings say. Only in MODEL_READY. */
struct prompt_style generate_style(const struct conversation *c);
/* EVENT_MEASURED (branch.c). */
void conversation_measured(struct conversation *c, const struct worker_event *e);
/* Reads the shown branch again (chat.c). */
int conversation_reload(struct conversation *c, struct err *err);

#endif
