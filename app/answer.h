/* answer.h - the one answer that is being written: it grows from worker events
 * and goes to the store while it does.
 * Thread-safety: one thread. */
#ifndef APP_ANSWER_H
#define APP_ANSWER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/record.h"
#include "base/tokens.h"

#include "storage/store.h"

#include "app/rate.h"
#include "app/worker.h"

#include <stdbool.h>
#include <stdint.h>

#define ANSWER_SAVE_NS UINT64_C(1000000000) /* between saves while it grows */

struct answer {
    bool running;                /* EVENT_DONE has not come yet */
    bool unsaved;                /* the store lacks something of it */
    bool at_stop;                /* a stop text ended it */
    struct message_stats before; /* of the part that was there already */
    struct message m;            /* lends the buffers below; id 0 until the first token */
    struct buf text, thinking;
    struct tokens ids; /* header and what was sampled */
    struct rate rate;
    struct graph graph;
    uint64_t saved_ns; /* when saving was last tried */
    uint64_t prefill_done, prefill_total, reused;
    uint64_t prefill_ns[2]; /* when the first and the newest report of it came, */
    uint64_t prefill_first; /* and how much was done at the first */
    uint32_t generated;
};

/* header: the first ids of the turn; ids_model: what they belong to. */
void answer_begin(struct answer *a, int64_t chat_id, int64_t parent_id,
                  const int32_t *header, size_t n, const char *ids_model);
/* Right after answer_begin: the answer goes on with a stored message, whose ids
 * were the header. */
void answer_resume(struct answer *a, const struct message *m);
/* EVENT_PREFILL, EVENT_TOKENS or EVENT_DONE. */
void answer_event(struct answer *a, const struct worker_event *e, uint64_t now_ns);
/* Tokens a second of the prompt that is being read, 0: not known yet. */
double answer_reading_tps(const struct answer *a);
/* Whether there is something to show or keep. */
bool answer_has_message(const struct answer *a);
/* Adds or rewrites the row if something is unsaved. After a failure the answer
 * stays unsaved, to be tried again. */
int answer_save(struct answer *a, struct store *st, uint64_t now_ns, struct err *err);
void answer_release(struct answer *a);

#endif
