/* snapshot.c - copies of the recurrent state in host memory. KV rows need no
 * copy: rows before a snapshot's position stay where they are for as long as
 * the timeline keeps that prefix, and snapshots beyond it are dropped. Where no
 * layer is recurrent, every position is as good as a snapshot. */
#include "engine/session.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void drop(struct session *s, size_t i)
{
    free(s->snapshots[i].state);
    memmove(s->snapshots + i, s->snapshots + i + 1,
            (s->n_snapshots - i - 1) * sizeof *s->snapshots);
    s->n_snapshots--;
}

/* The snapshot that is missed least: the one in the middle of the shortest
 * span. The first (system prompt) and the last stay. */
static size_t least_useful(const struct session *s)
{
    size_t best = 0, best_span = SIZE_MAX;
    for (size_t i = 1; i + 1 < s->n_snapshots; i++) {
        size_t span = s->snapshots[i + 1].pos - s->snapshots[i - 1].pos;
        if (span < best_span) {
            best = i;
            best_span = span;
        }
    }
    return best_span == SIZE_MAX ? s->n_snapshots - 1 : best;
}

int snapshot_keep(struct session *s, struct err *err)
{
    if (session_rewinds(s))
        return 0;
    for (size_t i = 0; i < s->n_snapshots; i++)
        if (s->snapshots[i].pos == s->evaluated)
            return 0;
    if (s->layout.bytes > s->params.snapshot_bytes)
        return 0;
    while ((s->n_snapshots + 1) * s->layout.bytes > s->params.snapshot_bytes)
        drop(s, least_useful(s));
    struct snapshot made = { .pos = s->evaluated, .side = s->side };
    made.state = mem_alloc(s->layout.bytes);
    if (gpu_download(s->engine->gpu, made.state, gpu_span_at(&s->state, 0, s->layout.bytes),
                     err) < 0) {
        free(made.state);
        return -1;
    }
    s->snapshots = mem_regrow(s->snapshots, s->n_snapshots + 1, sizeof *s->snapshots);
    s->snapshots[s->n_snapshots++] = made;
    return 0;
}

void snapshot_forget(struct session *s, size_t pos)
{
    while (s->n_snapshots && s->snapshots[s->n_snapshots - 1].pos > pos)
        drop(s, s->n_snapshots - 1);
}

int snapshot_rewind(struct session *s, size_t pos, struct err *err)
{
    if (session_rewinds(s)) {
        s->evaluated = pos < s->evaluated ? pos : s->evaluated;
        return 0;
    }
    snapshot_forget(s, pos);
    struct gpu_span state = gpu_span_at(&s->state, 0, s->layout.bytes);
    if (!s->n_snapshots) {
        s->evaluated = 0;
        s->side = 0;
        return gpu_fill(s->engine->gpu, state, 0, err);
    }
    const struct snapshot *from = &s->snapshots[s->n_snapshots - 1];
    s->evaluated = from->pos;
    s->side = from->side;
    return gpu_upload(s->engine->gpu, state, from->state, err);
}

void snapshot_release(struct session *s)
{
    while (s->n_snapshots)
        drop(s, s->n_snapshots - 1);
    free(s->snapshots);
    s->snapshots = NULL;
}
