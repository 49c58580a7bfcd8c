/* prompt.h - the shown branch of a conversation as the ids of a prompt.
 * Thread-safety: pure; the model is only read. */
#ifndef APP_PROMPT_H
#define APP_PROMPT_H

#include "base/err.h"
#include "base/record.h"
#include "base/tokens.h"

#include "engine/engine.h"

#include <stdbool.h>

struct prompt {
    struct tokens ids;
    size_t *starts; /* n_turns + 1: where each turn and the answer's header begin */
    size_t n_turns;
    bool begun[2]; /* the answer and its reasoning have text already */
};

struct prompt_style {
    bool thinking;       /* the answer begins with it */
    bool strip_thinking; /* the reasoning of earlier answers is left out */
    enum effort effort;
};

/* A turn is taken over as the ids that were evaluated, where these belong to
 * the model's tokenizer; only other turns are tokenised. Release p. */
int prompt_compose(struct prompt *p, const struct model *m, const struct message *path,
                   size_t n, const struct prompt_style *style, struct err *err);
/* The ids of one turn; points into p. */
const int32_t *prompt_turn(const struct prompt *p, size_t i, size_t *n);
/* Positions worth a state snapshot: where turns and the answer begin. malloced. */
size_t *prompt_marks(const struct prompt *p, size_t *n);
void prompt_release(struct prompt *p);

#endif
