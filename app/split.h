/* split.h - sampled ids to text: which bytes are reasoning and which the
 * answer, cut only where a code point is whole.
 * Thread-safety: each splitter belongs to one thread. */
#ifndef APP_SPLIT_H
#define APP_SPLIT_H

#include "base/buf.h"

#include "engine/engine.h"

struct splitter {
    const struct model *model;
    bool thinking;   /* the next id is reasoning */
    bool begun[2];   /* answer and reasoning have text; line breaks before it are
                      * dropped */
    size_t newlines; /* line breaks at the end of the reasoning, held back until
                      * more reasoning follows */
    struct buf held; /* bytes of a code point that is not whole yet */
};

/* header: the ids with which the answer begins; an open <think> among them
 * means that the first sampled id is reasoning. Release s. */
void splitter_init(struct splitter *s, const struct model *m, const int32_t *header,
                   size_t n);
/* Appends what the id adds to one of the two. The text is valid UTF-8 without
 * NUL: what is neither becomes U+FFFD. */
void splitter_add(struct splitter *s, int32_t id, struct buf *text, struct buf *thinking);
/* No more ids will come: lets go what was held back. */
void splitter_end(struct splitter *s, struct buf *text, struct buf *thinking);
void splitter_release(struct splitter *s);

#endif
