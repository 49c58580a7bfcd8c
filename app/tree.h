/* tree.h - all messages of a conversation, on all branches.
 * Thread-safety: one thread. */
#ifndef APP_TREE_H
#define APP_TREE_H

#include "base/err.h"
#include "base/record.h"

#include "storage/store.h"

/* Parents before children. The caller releases the list. */
int tree_load(struct store *st, const struct chat *chat, struct message_list *out,
              struct err *err);

#endif
