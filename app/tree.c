/* tree.c - walks the tree from branch to branch: a branch gives its messages,
 * and each of these its other versions, whose newest leaf ends another branch.
 * That finds every message: its parent is on a branch that was read, so that it
 * is on that branch itself or a version of the message that is. */
#include "app/tree.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    struct store *st;
    struct message_list found; /* ascending ids */
    int64_t *leaves;           /* of branches to read */
    size_t n_leaves;
};

/* Where the id is, or belongs. */
static size_t place(const struct message_list *l, int64_t id)
{
    size_t lo = 0, hi = l->len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->v[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool is_found(const struct message_list *l, int64_t id)
{
    size_t at = place(l, id);
    return at < l->len && l->v[at].id == id;
}

/* Takes the message over. */
static void insert(struct message_list *l, struct message *m)
{
    size_t at = place(l, m->id);
    l->v = mem_regrow(l->v, l->len + 1, sizeof *l->v);
    memmove(&l->v[at + 1], &l->v[at], (l->len - at) * sizeof *l->v);
    l->v[at] = *m;
    l->len++;
    *m = (struct message){ 0 };
}

static void leaf_push(struct walk *w, int64_t leaf)
{
    w->leaves = mem_regrow(w->leaves, w->n_leaves + 1, sizeof *w->leaves);
    w->leaves[w->n_leaves++] = leaf;
}

static int versions_push(struct walk *w, int64_t id, struct err *err)
{
    int64_t *ids = NULL;
    size_t n = 0;
    int rc = store_siblings(w->st, id, &ids, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        int64_t leaf;
        if (ids[i] == id || is_found(&w->found, ids[i]))
            continue;
        rc = store_newest_leaf(w->st, ids[i], &leaf, err);
        if (rc == 0)
            leaf_push(w, leaf);
    }
    free(ids);
    return rc;
}

static int branch_read(struct walk *w, int64_t leaf, struct err *err)
{
    struct message_list path = { 0 };
    if (is_found(&w->found, leaf))
        return 0;
    int rc = store_path(w->st, leaf, &path, err);
    for (size_t i = 0; rc == 0 && i < path.len; i++) {
        if (is_found(&w->found, path.v[i].id))
            continue;
        int64_t id = path.v[i].id;
        bool versions = path.v[i].siblings > 1;
        insert(&w->found, &path.v[i]);
        if (versions)
            rc = versions_push(w, id, err);
    }
    message_list_release(&path);
    return rc;
}

int tree_load(struct store *st, const struct chat *chat, struct message_list *out,
              struct err *err)
{
    struct walk w = { .st = st };
    int rc = 0;
    *out = (struct message_list){ 0 };
    if (chat->leaf_id)
        leaf_push(&w, chat->leaf_id);
    while (rc == 0 && w.n_leaves)
        rc = branch_read(&w, w.leaves[--w.n_leaves], err);
    if (rc < 0)
        message_list_release(&w.found);
    free(w.leaves);
    *out = w.found;
    return rc;
}
