/* draft.h - a branch that is about to exist: stored messages and, after them, new
 * ones. It comes into the store as a whole or not at all. For chat.c and branch.c.
 * Thread-safety: one thread. */
#ifndef APP_DRAFT_H
#define APP_DRAFT_H

#include "app/chat.h"
#include "app/prompt.h"

struct draft {
    struct message *v; /* the first `stored` are shallow copies of the path's */
    size_t n, stored;
    bool new_chat;
};

/* Begins with the first `keep` messages of the path. Release d. */
void draft_begin(struct draft *d, const struct conversation *c, size_t keep);
/* old: the message that this one is another version of, or NULL. */
void draft_add(struct draft *d, enum role role, const char *text, size_t bytes,
               const struct message *old);
/* Another message like m, with all that is known of it. */
void draft_copy(struct draft *d, const struct message *m);
/* The ids of the new turns, so that they are stored with their text. */
void draft_ids(struct draft *d, const struct prompt *p, const char *tokenizer_id);
/* Stores what is new, in a new conversation if none is shown, and makes it the path.
 * The draft is left without its new messages. */
int draft_store(struct draft *d, struct conversation *c, struct err *err);
void draft_release(struct draft *d);

/* Removes the messages of the path from number n on. */
void path_cut(struct conversation *c, size_t n);
/* Where a message is on the path (chat.c, as what follows). */
int path_find(const struct conversation *c, int64_t id, size_t *at, struct err *err);
/* Nothing may be evaluated while an answer is not over and safe. */
int path_check_free(struct conversation *c, struct err *err);
/* Makes a stored message the end of the shown branch, 0: nothing is on it. */
int path_show_leaf(struct conversation *c, int64_t leaf, struct err *err);

#endif
