/* special.h - finds the tokens that are cut out of a text before the rest is
 * cut into words. Thread-safety: read-only after opening, any thread. */
#ifndef ENGINE_SPECIAL_H
#define ENGINE_SPECIAL_H

#include "engine/bpe.h"

/* Longer texts are never cut out. */
enum { SPECIAL_MAX_BYTES = 1024 };

struct special;

/* tokens is by id and outlives the result; texts of ids are distinct. */
void special_open(struct special **out, const struct bpe_text *tokens, const int32_t *ids,
                  size_t n_ids);
void special_close(struct special *sp);

/* The first occurrence in s of any of the texts, at one place the longest; -1
 * if there is none. *at and *bytes get where it is. Ids with skip[id] are not
 * looked for (skip NULL: all are). Time does not grow with their number. */
int32_t special_find(const struct special *sp, const bool *skip, const char *s, size_t n,
                     size_t *at, size_t *bytes);

#endif
