/* keep.h - the folders in which timelines of conversations are kept, so that a
 * restart reads nothing again: where they are, how much they may take, and that
 * they go with their conversation. What is in a folder is the engine's business.
 * Thread-safety: no state; not for two threads on one folder. */
#ifndef APP_KEEP_H
#define APP_KEEP_H

#include "base/err.h"

#include <stdint.h>

enum { KEEP_STATES = 4 /* points that one conversation keeps */ };

/* The folder of all of them, below the user's cache; malloced, NULL: none. */
char *keep_root(void);
/* The folder of one conversation; malloced. */
char *keep_folder(const char *root, int64_t chat_id);
/* Removes a conversation's folder with what is in it; none is fine. */
int keep_remove(const char *root, int64_t chat_id, struct err *err);
/* Makes room after a conversation was written to: of its *.state files the newest
 * KEEP_STATES stay; then, while all folders hold more than budget_bytes, that of
 * the conversation which was written to longest ago goes, this one never. */
void keep_trim(const char *root, int64_t chat_id, uint64_t budget_bytes);

#endif
