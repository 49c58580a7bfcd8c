/* stop.h - texts that end an answer: what comes before them is the answer,
 * whatever the tokens are that they arrive in.
 * Thread-safety: each list and each stopper belongs to one thread. */
#ifndef APP_STOP_H
#define APP_STOP_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { STOP_MAX = 16, STOP_BYTES = 256 };

struct stop_list {
    char *v[STOP_MAX]; /* malloced */
    size_t n;
};

/* Adds a text as the user typed it: \n, \t and \\ stand for a line break, a tab
 * and a backslash. Fails if it is empty, too long, no text, or one too many. */
int stop_list_add(struct stop_list *l, const char *text, struct err *err);
/* dst must be empty. */
void stop_list_copy(struct stop_list *dst, const struct stop_list *src);
void stop_list_release(struct stop_list *l);

/* An answer on its way. */
struct stopper {
    const struct stop_list *list;
    struct buf held; /* may be the beginning of a stop text */
    size_t passed;   /* bytes let through */
    bool hit;        /* one came: nothing more passes */
};

/* The list must outlive s. Release s. */
void stopper_init(struct stopper *s, const struct stop_list *list);
/* Appends to out what is certain to be of the answer. Of several stop texts the
 * one that is complete first counts, so that it does not matter how the text is
 * cut into pieces. */
void stopper_add(struct stopper *s, const char *text, size_t n, struct buf *out);
/* No more will come: lets go what was held back. */
void stopper_end(struct stopper *s, struct buf *out);
void stopper_release(struct stopper *s);

#endif
