/* command.h - the commands. One table holds names, arguments, options, help and
 * functions; help and dispatch are made from it. */
#ifndef APP_COMMAND_H
#define APP_COMMAND_H

#include "base/buf.h"
#include "base/err.h"

#include "app/env.h"

#include <stdint.h>

#define TERN_VERSION "0.1"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

struct command {
    const char *name;       /* "" for the full-screen program */
    const char *arguments;  /* as the help prints them */
    int min_args, max_args; /* max_args -1: any number */
    uint64_t options;       /* OPTION_BITs */
    const char *help;       /* one line; "": not listed */
    /* Returns an exit status, or -1 with the reason in err. */
    int (*run)(struct env *env, struct err *err);
};

/* NULL where there is none of that name. */
const struct command *command_find(const char *name);
/* One command after the other, NULL at the end; the first is the full screen. */
const struct command *command_row(size_t i);
void command_help_all(struct buf *out);
void command_help(struct buf *out, const struct command *c);

int cmd_chat(struct env *env, struct err *err);
int cmd_run(struct env *env, struct err *err);
int cmd_ls(struct env *env, struct err *err);
int cmd_show(struct env *env, struct err *err);
int cmd_search(struct env *env, struct err *err);
int cmd_export(struct env *env, struct err *err);
int cmd_import(struct env *env, struct err *err);
int cmd_rm(struct env *env, struct err *err);
int cmd_bench(struct env *env, struct err *err);
int cmd_logits(struct env *env, struct err *err);
int cmd_tokenize(struct env *env, struct err *err);
int cmd_info(struct env *env, struct err *err);
int cmd_devices(struct env *env, struct err *err);
int cmd_help(struct env *env, struct err *err);
int cmd_completion(struct env *env, struct err *err);
int cmd_manual(struct env *env, struct err *err);

#endif
