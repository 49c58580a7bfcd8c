/* transfer.h - a conversation as text: Markdown of the shown branch, or JSON of
 * everything, from which it can be made again.
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
int transfer_json(struct store *st, int64_t chat_id, bool thinking, struct buf *out,
                  struct err *err);
/* Adds the conversation that the JSON describes; on failure, nothing. */
int transfer_import(struct store *st, const char *json, size_t n, int64_t *chat_id,
                    struct err *err);

#endif
