/* tidy.h - what the search index needs when a database is opened; see store_tidy.
 * Thread-safety: one thread. */
#ifndef STORAGE_TIDY_H
#define STORAGE_TIDY_H

#include "base/err.h"

struct store;

/* Makes an index anew that very many deletions have made hard to read. */
int tidy_rebuild(struct store *st, struct err *err);

#endif
