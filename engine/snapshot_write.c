/* snapshot_write.c - a timeline to disk: the KV rows that the file lacks, then
 * the state. Device memory comes through a buffer of one piece of one layer.
 * Order: rows, sync, state under a temporary name, sync, rename; so that a state
 * that is there always has its rows. */
#include "engine/snapshot_file.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { SEGMENT_TOKENS = 1024, PIECE_BYTES = 4 << 20 };

/* One writing. Bytes go through put(), which also sums them up. */
struct writing {
    struct session *s;
    const struct session_write_params *p;
    struct session_write_result *result;
    struct snapshot_identity id;
    size_t pos;
    const char *kv_path;
    struct kv_file kv;
    uint64_t at;               /* end of what was appended to the KV file */
    struct file_writer *state; /* where put() writes if not NULL */
    XXH3_state_t *sum;         /* of the payload being written */
    void *piece;
    struct err *err;
};

static bool cancelled(struct writing *w)
{
    if (w->p->cancel && atomic_load(w->p->cancel))
        w->result->cancelled = true;
    return w->result->cancelled;
}

/* ---- bytes --------------------------------------------------------------- */

static int append(struct writing *w, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        ssize_t k = fault_hit(FAULT_WRITE) ? -1 : pwrite(w->kv.fd, p, n, (off_t)w->at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_set(w->err, "cannot write %s: %s", w->kv_path, strerror(errno));
        p += k;
        n -= (size_t)k;
        w->at += (uint64_t)k;
    }
    return 0;
}

static int put(struct writing *w, const void *bytes, size_t n)
{
    w->result->written_bytes += n;
    return w->state ? file_writer_add(w->state, bytes, n, w->err) : append(w, bytes, n);
}

static int put_payload(struct writing *w, const void *bytes, size_t n)
{
    XXH3_64bits_update(w->sum, bytes, n);
    return put(w, bytes, n);
}

/* Header and ids of tokens [from, to); a payload follows, then put_sum(). */
static int put_header(struct writing *w, const char magic[8], size_t from, size_t to,
                      size_t parent, uint64_t payload_bytes)
{
    const int32_t *ids = w->s->ids.v;
    struct snapshot_header h = { .id = w->id,
                                 .from = from,
                                 .to = to,
                                 .parent = parent,
                                 .prefix = snapshot_prefix(ids, to),
                                 .payload_bytes = payload_bytes };
    memcpy(h.magic, magic, sizeof h.magic);
    h.checksum = snapshot_checksum(&h, ids + from, to - from);
    XXH3_64bits_reset(w->sum);
    if (put(w, &h, sizeof h) < 0)
        return -1;
    return put(w, ids + from, (to - from) * sizeof *ids);
}

static int put_sum(struct writing *w)
{
    uint64_t sum = XXH3_64bits_digest(w->sum);
    return put(w, &sum, sizeof sum);
}

/* ---- KV rows ------------------------------------------------------------- */

static int put_rows(struct writing *w, size_t from, size_t to)
{
    struct session *s = w->s;
    const uint64_t plane = session_kv_plane_bytes(s), row = w->id.row_bytes;
    for (uint32_t i = 0; i < 2 * s->n_kv; i++) {
        struct gpu_span rows =
            gpu_span_at(&s->kv[i / 2], (i & 1) * plane + from * row, (to - from) * row);
        if (cancelled(w))
            return -1;
        if (gpu_download(s->engine->gpu, w->piece, rows, w->err) < 0 ||
            put_payload(w, w->piece, (size_t)rows.bytes) < 0)
            return -1;
    }
    return 0;
}

static int put_segment(struct writing *w, size_t from, size_t to, size_t parent)
{
    uint64_t payload = (uint64_t)(to - from) * 2 * w->id.row_bytes * w->id.n_attention;
    if (put_header(w, snapshot_magic_kv, from, to, parent, payload) < 0 ||
        put_rows(w, from, to) < 0)
        return -1;
    return put_sum(w);
}

static size_t segment_tokens(const struct writing *w)
{
    size_t fit = PIECE_BYTES / w->id.row_bytes;
    return fit < 1 ? 1 : fit < SEGMENT_TOKENS ? fit : SEGMENT_TOKENS;
}

/* Appends rows [covered, pos). Whole segments stay if a later one fails. */
static int rows_append(struct writing *w, size_t covered, size_t parent)
{
    const size_t most = segment_tokens(w);
    size_t n = w->kv.n;
    bool any = covered < w->pos;
    w->piece = mem_alloc(most * w->id.row_bytes);
    while (covered < w->pos) {
        size_t to = w->pos - covered < most ? w->pos : covered + most;
        uint64_t whole = w->at;
        if (put_segment(w, covered, to, parent) < 0) {
            /* If this fails too, the next one to open the file cuts it. */
            if (ftruncate(w->kv.fd, (off_t)whole) == 0)
                w->at = whole;
            return -1;
        }
        covered = to;
        parent = ++n;
    }
    if (any && (fault_hit(FAULT_FSYNC) || fsync(w->kv.fd) < 0))
        return err_set(w->err, "cannot sync %s: %s", w->kv_path, strerror(errno));
    return any && !w->kv.n ? file_sync_dir(w->kv_path, w->err) : 0;
}

/* A file that cannot be used is removed; the second attempt starts a new one. */
static int kv_open(struct writing *w)
{
    struct err *why = &w->result->reason;
    int rc = kv_file_open(&w->kv, w->kv_path, true, &w->id, why);
    if (rc < 0 && unlink(w->kv_path) == 0) {
        err_prefix(why, "%s", w->kv_path);
        w->result->removed = true;
        rc = kv_file_open(&w->kv, w->kv_path, true, &w->id, w->err);
        return rc ? err_prefix(w->err, "%s", w->kv_path) : 0;
    }
    return rc ? err_set(w->err, "%s %s", w->kv_path, why->text) : 0;
}

/* ---- state --------------------------------------------------------------- */

/* The snapshot in memory at that position, NULL if there is none. */
static const struct snapshot *snapshot_at(const struct session *s, size_t pos)
{
    for (size_t i = 0; i < s->n_snapshots; i++)
        if (s->snapshots[i].pos == pos)
            return &s->snapshots[i];
    return NULL;
}

static int put_piece(struct writing *w, const struct snapshot *from, uint64_t at,
                     uint64_t bytes)
{
    if (cancelled(w))
        return -1;
    if (from)
        return put_payload(w, (const char *)from->state + at, (size_t)bytes);
    if (gpu_download(w->s->engine->gpu, w->piece, gpu_span_at(&w->s->state, at, bytes),
                     w->err) < 0)
        return -1;
    return put_payload(w, w->piece, (size_t)bytes);
}

static int put_state(struct writing *w, const struct snapshot *from)
{
    const struct snapshot_identity *id = &w->id;
    const struct state_layout *l = &w->s->layout;
    const uint64_t side = from ? from->side : w->s->side;
    uint64_t layer = id->matrix_bytes + id->history_bytes;
    if (put_header(w, snapshot_magic_state, 0, w->pos, 0, id->n_recurrent * layer) < 0)
        return -1;
    for (uint32_t i = 0; i < id->n_recurrent; i++) {
        uint64_t at = i * l->layer_bytes;
        uint64_t history = at + l->matrix_bytes + side * id->history_bytes;
        if (put_piece(w, from, at, id->matrix_bytes) < 0 ||
            put_piece(w, from, history, id->history_bytes) < 0)
            return -1;
    }
    return put_sum(w);
}

static int state_write(struct writing *w, const char *path)
{
    const struct snapshot *from =
        w->pos == w->s->evaluated ? NULL : snapshot_at(w->s, w->pos);
    uint64_t most = w->id.matrix_bytes > w->id.history_bytes ? w->id.matrix_bytes
                                                             : w->id.history_bytes;
    int rc = -1;
    free(w->piece);
    w->piece = from ? NULL : mem_alloc((size_t)most);
    if (file_writer_open(&w->state, path, w->err) == 0 && put_state(w, from) == 0)
        rc = file_writer_commit(w->state, w->err);
    file_writer_close(w->state);
    w->state = NULL;
    return rc;
}

/* ---- all ----------------------------------------------------------------- */

static int write_all(struct writing *w, const char *state_path)
{
    struct session_write_result *r = w->result;
    size_t covered, parent;
    if (file_mkdirs(w->p->dir, 0700, w->err) < 0 || kv_open(w) < 0)
        return -1;
    parent = kv_file_match(&w->kv, w->s->ids.v, w->pos, &covered);
    r->kv_bytes = w->at = w->kv.bytes;
    int rc = rows_append(w, covered, parent);
    r->kv_bytes = w->at;
    if (rc < 0)
        return -1;
    if (access(state_path, F_OK) < 0 && state_write(w, state_path) < 0)
        return -1;
    const struct snapshot_identity *id = &w->id;
    r->state_bytes = sizeof(struct snapshot_header) + w->pos * sizeof(int32_t) +
                     id->n_recurrent * (id->matrix_bytes + id->history_bytes) + 8;
    r->tokens = w->pos;
    return 0;
}

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

int session_write(struct session *s, const struct session_write_params *p,
                  struct session_write_result *result, struct err *err)
{
    *result = (struct session_write_result){ 0 };
    uint64_t begin = clock_ns();
    struct writing w = { .s = s,
                         .p = p,
                         .result = result,
                         .kv.fd = -1,
                         .err = err,
                         .pos = p->pos ? p->pos : s->evaluated };
    if (!w.pos || w.pos > s->evaluated ||
        (w.pos < s->evaluated && !session_rewinds(s) && !snapshot_at(s, w.pos)))
        return err_set(err, "there is no state after %zu tokens to write", w.pos);
    snapshot_identify(&w.id, s);
    char *kv_path = snapshot_kv_path(p->dir, &w.id);
    char *state_path =
        snapshot_state_path(p->dir, &w.id, w.pos, snapshot_prefix(s->ids.v, w.pos));
    w.kv_path = kv_path;
    w.sum = XXH3_createState();
    if (!w.sum)
        abort(); /* as base/mem.h does */
    int rc = write_all(&w, state_path);
    snprintf(result->kv_name, sizeof result->kv_name, "%s", name_of(kv_path));
    snprintf(result->state_name, sizeof result->state_name, "%s", name_of(state_path));
    result->seconds = (double)(clock_ns() - begin) * 1e-9;
    kv_file_close(&w.kv);
    XXH3_freeState(w.sum);
    free(w.piece);
    free(kv_path);
    free(state_path);
    return result->cancelled ? 0 : rc;
}
