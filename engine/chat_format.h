/* chat_format.h - what the text of a chat template says about the format of a
 * conversation. The text is searched for known features, never executed, and
 * may be anything. Thread-safety: pure functions. */
#ifndef ENGINE_CHAT_FORMAT_H
#define ENGINE_CHAT_FORMAT_H

#include "engine/engine.h"

#include <stdbool.h>
#include <stddef.h>

/* Longest sentence that is taken over from a template. */
enum { CHAT_FORMAT_MAX_SENTENCE = 1000 };

struct chat_format {
    const char *family; /* "chatml", "qwen3", "qwen3.5", "qwen3.6", "qwen3.8" */
    bool recognised;    /* turns are ChatML: <|im_start|>ROLE\nTEXT<|im_end|>\n */
    bool thinks;        /* answers can begin with <think>\n...\n</think>\n\n */
    bool can_choose;    /* ... or go without by beginning with an empty one */
    bool opens;         /* the header of an answer already holds <think>\n */
    bool default_on;    /* they do when nothing is said about it */
    bool history_block; /* earlier answers keep a think block, if an empty one */
    enum effort effort; /* the usual one; EFFORT_DEFAULT: there are no degrees */
    char *sentences[EFFORT_COUNT]; /* that begin the system turn while the model
                                    * thinks, by effort; NULL: nothing does */
};

/* text NULL: a file without template. */
void chat_format_read(struct chat_format *f, const char *text, size_t bytes);
void chat_format_release(struct chat_format *f);

#endif
