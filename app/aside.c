/* aside.c - a session that lives for one short answer. */
#include "app/aside.h"

#include "base/buf.h"
#include "base/mem.h"

#include "app/split.h"

enum { PIECE = 32 /* tokens of a prompt */, STEPS = 2 /* of an answer */ };

struct look {
    const struct aside *a;
    atomic_bool cancel;
};

static void look(void *arg, size_t done, size_t total)
{
    struct look *l = arg;
    (void)done;
    (void)total;
    if (l->a->stop(l->a->arg))
        atomic_store(&l->cancel, true);
}

/* *read: it was not stopped meanwhile. */
static int read_prompt(const struct aside *a, struct session *s, bool *read,
                       struct err *err)
{
    struct look l = { .a = a };
    struct sync_result result;
    const struct sync_params p = { .progress = look, .arg = &l, .cancel = &l.cancel };
    int rc = session_sync(s, a->ids->v, a->ids->len, &p, &result, err);
    *read = rc == 0 && !result.cancelled;
    return rc;
}

/* True at the answer's end. */
static bool take(const struct aside *a, struct splitter *split, const int32_t *ids,
                 size_t n, struct buf *text)
{
    struct buf thinking = BUF_INIT;
    bool ended = false;
    for (size_t i = 0; i < n && !ended; i++) {
        ended = model_is_end(a->model, ids[i]);
        if (!ended)
            splitter_add(split, ids[i], text, &thinking);
    }
    buf_release(&thinking);
    return ended;
}

static int answer(const struct aside *a, struct session *s, struct buf *text,
                  struct err *err)
{
    struct splitter split;
    bool ended = false;
    int rc = 0;
    splitter_init(&split, a->model, a->ids->v + a->header, a->ids->len - a->header);
    for (size_t made = 0; rc == 0 && !ended && made < a->max_tokens;) {
        int32_t ids[STEPS];
        size_t n = 0;
        if (a->stop(a->arg))
            break;
        rc = session_decode(s, STEPS, &(struct sampler_params){ 0 }, ids, &n, err);
        ended = rc == 0 && take(a, &split, ids, n, text);
        made += n;
    }
    if (!ended)
        buf_truncate(text, 0);
    splitter_release(&split);
    return rc;
}

int aside_run(const struct aside *a, char **text, struct err *err)
{
    const struct session_params p = {
        .ctx_tokens = (uint32_t)a->ids->len + a->max_tokens + STEPS,
        .chunk_tokens = PIECE,
    };
    struct session *s = NULL;
    struct buf said = BUF_INIT;
    bool read = false;
    *text = NULL;
    int rc = 0;
    if (!a->stop(a->arg))
        rc = session_open(&s, a->engine, &p, err);
    if (rc == 0 && s)
        rc = read_prompt(a, s, &read, err);
    if (read)
        rc = answer(a, s, &said, err);
    session_close(s);
    if (rc == 0)
        *text = mem_strdup(buf_cstr(&said));
    buf_release(&said);
    return rc;
}
