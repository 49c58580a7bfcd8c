/* store.h - conversations in one SQLite database; the only header of storage/
 * that app/ includes.
 *
 * Messages form a tree by parent_id; a chat shows the branch that ends at its
 * leaf. Rows are never overwritten by an edit: an edit is a sibling.
 * Functions return 0, or -1 with the reason in err; after a failure the
 * database is as before the call. Thread-safety: one thread. */
#ifndef STORAGE_STORE_H
#define STORAGE_STORE_H

#include "base/err.h"
#include "base/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* Opens or creates the database file (directories 0700, files 0600), migrates
 * an older schema in one transaction after a backup copy beside it, refuses a
 * newer one with both numbers and without touching the file. A path of
 * ":memory:" keeps nothing. */
int store_open(struct store **out, const char *path, struct err *err);
void store_close(struct store *st);
/* $XDG_DATA_HOME/tern/tern.db or ~/.local/share/tern/tern.db; malloced. NULL
 * with the reason in err where there is no home. */
char *store_default_path(struct err *err);

/* What is written between the two happens as a whole or not at all. store_end takes
 * what came of it, and returns -1 if that was a failure or nothing could be kept;
 * err keeps the first reason. Call it also after a store_begin that failed. */
int store_begin(struct store *st, struct err *err);
int store_end(struct store *st, int rc, struct err *err);

/* ---- chats ------------------------------------------------------------- */

int store_chat_new(struct store *st, const char *title, const char *model, int64_t *id,
                   struct err *err);
/* Those that are pinned, then the others, newest first. The caller releases the
 * list. */
int store_chat_list(struct store *st, struct chat_list *out, struct err *err);
int store_chat_get(struct store *st, int64_t id, struct chat *out, struct err *err);
/* The chat last written to; *id is 0 when there is none. */
int store_chat_last(struct store *st, int64_t *id, struct err *err);
/* The user's title. store_chat_propose: a model's, which changes nothing once the
 * user gave one. */
int store_chat_rename(struct store *st, int64_t id, const char *title, struct err *err);
int store_chat_propose(struct store *st, int64_t id, const char *title, struct err *err);
int store_chat_set_model(struct store *st, int64_t id, const char *model,
                         const char *path, struct err *err);
int store_chat_set_settings(struct store *st, int64_t id, const char *settings,
                            struct err *err);
int store_chat_set_draft(struct store *st, int64_t id, const char *draft,
                         struct err *err);
int store_chat_set_pinned(struct store *st, int64_t id, bool pinned, struct err *err);
/* leaf_id 0: nothing is shown. */
int store_chat_set_leaf(struct store *st, int64_t id, int64_t leaf_id, struct err *err);
/* Removes the chat and its messages; neither list nor search finds them any more.
 * What the file still holds of their words goes with store_tidy. */
int store_chat_delete(struct store *st, int64_t id, struct err *err);
/* One step, of about 10 ms, towards a file without a trace of deleted chats: the
 * search index is rewritten piece by piece, freed pages are overwritten
 * (secure_delete), the log is emptied, the copies that migrations made are
 * removed. *more: call again; what is left when the program ends waits for the
 * next one. *blocked: another program is in the way, wait before. */
int store_tidy(struct store *st, bool *more, bool *blocked, struct err *err);
/* All steps, for so long at most; whatever is left then is no failure. */
int store_tidy_all(struct store *st, int timeout_ms, struct err *err);

/* ---- messages ---------------------------------------------------------- */

/* Inserts m (chat_id, parent_id, role, state, text, thinking, ids, stats are
 * read), makes it the chat's leaf and sets m->id; m->created_ms is kept if it
 * is not 0 (an imported message), else set. Durable when it returns. */
int store_message_add(struct store *st, struct message *m, struct err *err);
/* Rewrites text, thinking, ids, state and stats of m->id. Used while an answer
 * streams and when it is complete. Durable if the state is not PARTIAL. */
int store_message_update(struct store *st, const struct message *m, struct err *err);
/* The branch from the root to leaf_id, oldest first, with sibling counts. A
 * leaf_id of 0 gives an empty list. */
int store_path(struct store *st, int64_t leaf_id, struct message_list *out,
               struct err *err);
/* Ids of the versions of a turn (itself included), oldest first; malloced. */
int store_siblings(struct store *st, int64_t id, int64_t **out, size_t *n,
                   struct err *err);
/* The newest leaf below a message, which may be the message itself. */
int store_newest_leaf(struct store *st, int64_t id, int64_t *leaf, struct err *err);

/* ---- search ------------------------------------------------------------ */

struct hit {
    int64_t chat_id, message_id;
    char *title, *snippet; /* snippet: matches between \x02 and \x03 */
};
struct hit_list {
    struct hit *v;
    size_t len;
};
/* Full-text search over titles and message texts; words are matched as
 * prefixes, all of them in one text, any characters are allowed. Where that
 * finds nothing, the whole of words is looked for as a part of message texts.
 * Words of one or two letters only match whole
 * words. Titles first, then the newest, at most max. A hit in a title has the chat's
 * leaf as its message. */
int store_search(struct store *st, const char *words, size_t max, struct hit_list *out,
                 struct err *err);
void hit_list_release(struct hit_list *l);

/* ---- kept timelines ---------------------------------------------------- */

/* The index of the files in which timelines are kept between programs. Files are
 * the caller's to write and remove; rows go with their chat. */
struct snapshot_file {
    int64_t chat_id;
    char *name;      /* below the snapshot folder */
    char *key;       /* fingerprint: files of one chat and key belong together */
    bool state;      /* a recurrent state; else the KV rows that states need */
    uint64_t tokens; /* length of the prefix that it helps to restore */
    uint64_t bytes;
    int64_t used_ms; /* last use, 0: now */
};
struct snapshot_list {
    struct snapshot_file *v;
    size_t len;
};
/* Adds a row, or replaces that of the same name. */
int store_snapshot_put(struct store *st, const struct snapshot_file *f, struct err *err);
int store_snapshot_remove(struct store *st, const char *name, struct err *err);
/* All files of a chat were of use now. */
int store_snapshot_use(struct store *st, int64_t chat_id, struct err *err);
/* Those of a chat, 0: all; by chat, key, kind and tokens. */
int store_snapshot_list(struct store *st, int64_t chat_id, struct snapshot_list *out,
                        struct err *err);
/* Which files have to go so that need_bytes more stay within the budget: first
 * those that save the fewest tokens of evaluation per byte, the longer ago they
 * were used the less. Rows go together with their states; the rows and the last
 * state of chat_id stay. *fits: whether that is enough. Removes nothing. */
int store_snapshot_room(struct store *st, int64_t chat_id, uint64_t need_bytes,
                        uint64_t budget_bytes, struct snapshot_list *out, bool *fits,
                        struct err *err);
void snapshot_list_release(struct snapshot_list *l);

/* ---- small state ------------------------------------------------------- */

/* malloced value, or NULL in *value where the key is not set. Setting NULL
 * removes the key. */
int store_setting_get(struct store *st, const char *key, char **value, struct err *err);
int store_setting_set(struct store *st, const char *key, const char *value,
                      struct err *err);

#endif
