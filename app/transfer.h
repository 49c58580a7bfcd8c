/* transfer.h - a conversation as text: Markdown or plain text of the shown branch,
 * or JSON of everything, from which it can be made again; and conversations of
 * other programs.
 * Thread-safety: one thread. */
#ifndef APP_TRANSFER_H
#define APP_TRANSFER_H

#include "base/buf.h"
#include "base/err.h"

#include "storage/store.h"

#include <stdbool.h>
#include <stdint.h>

/* Appends to out. thinking false leaves the reasoning out and, as they hold it
 * too, the token ids. */
int transfer_markdown(struct store *st, int64_t chat_id, bool thinking, struct buf *out,
                      struct err *err);
int transfer_text(struct store *st, int64_t chat_id, bool thinking, struct buf *out,
                  struct err *err);
int transfer_json(struct store *st, int64_t chat_id, bool thinking, struct buf *out,
                  struct err *err);
/* Adds the conversation that JSON of transfer_json describes; on failure, nothing. */
int transfer_import(struct store *st, const char *json, size_t n, int64_t *chat_id,
                    struct err *err);

struct import_result {
    size_t n;       /* conversations added */
    size_t skipped; /* messages of no role that there is here, as of tools */
    int64_t last;   /* the last conversation */
};
/* Adds what the text holds; on failure, nothing. It is known by its form:
 *   JSON of transfer_json
 *   {"messages": [{"role": ..., "content": ...}, ...]}, or the list alone
 *   {"conversations": [{"from": ..., "value": ...}, ...]}
 *   {"mapping": {ID: {"message": ..., "parent": ID}, ...}, "current_node": ID}
 *   a list of such, or one a line (JSONL)
 *   text with <|im_start|>ROLE and <|im_end|> */
int transfer_import_any(struct store *st, const char *text, size_t n,
                        struct import_result *result, struct err *err);

#endif
