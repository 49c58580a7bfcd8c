/* models.h - the model files that there are: a thread of its own looks through
 * folders and reads what each file holds, which may take a while.
 * Thread-safety: one thread calls these functions. */
#ifndef APP_MODELS_H
#define APP_MODELS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct models;

struct model_file {
    char *path, *name;
    char *summary; /* one line */
    char *info;    /* as tern info prints it, or why it cannot be read */
    bool runs;
};

/* folders: a line each; they need not exist. Nothing is read yet. */
int models_open(struct models **out, const char *folders, struct err *err);
/* Waits for the file that is being read. NULL is fine. */
void models_close(struct models *m);
/* Looks through the folders again; what is known stays until it is found again. */
void models_scan(struct models *m);
/* To poll; models_take then takes what was found. True if something was. */
int models_fd(const struct models *m);
bool models_take(struct models *m);
/* By path, lent until the next models_take. */
const struct model_file *models_list(const struct models *m, size_t *n);
bool models_scanning(const struct models *m);

#endif
