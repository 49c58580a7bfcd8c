/* keep.h - the folders in which timelines of conversations are kept, so that a
 * restart reads nothing again: where they are, and that they go with their
 * conversation. What is in a folder is the engine's business.
 * Thread-safety: no state; not for two threads on one folder. */
#ifndef APP_KEEP_H
#define APP_KEEP_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* The folder of all of them, below the user's cache; malloced, NULL: none. */
char *keep_root(void);
/* The folder of one conversation; malloced. */
char *keep_folder(const char *root, int64_t chat_id);
/* The regular files directly in it. */
struct keep_files {
    char **names;
    size_t n;
};
struct keep_files keep_files(const char *root, int64_t chat_id);
void keep_files_release(struct keep_files *f);
/* Removes a conversation's folder with what is in it; none is fine. */
int keep_remove(const char *root, int64_t chat_id, struct err *err);

#endif
