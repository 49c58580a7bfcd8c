/* snapshot_read.c - a timeline from disk: the deepest kept point of a prompt
 * that saves evaluating something. Rows are uploaded while they are summed up:
 * rows beyond `evaluated` are never read, so that a bad sum costs nothing but
 * the file. */
#include "engine/snapshot_file.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE_BYTES = 4 << 20, KEY_CHARS = 16 };

struct reading {
    struct session *s;
    const struct session_read_params *p;
    struct session_read_result *result;
    struct snapshot_identity id;
    char *kv_path;
    struct kv_file kv;
    size_t *points; /* positions of state files that may fit, ascending */
    size_t n_points;
    size_t kept;  /* rows of the prompt that the session holds already */
    bool touched; /* the device's state or rows are not what they were */
    XXH3_state_t *sum;
    void *piece;
    struct err why;  /* what is wrong with the file at hand */
    struct err *err; /* of the device */
};

/* How reading a file ended: BAD condemns it, STOPPED ends reading for now,
 * FAILED is the device's. */
enum outcome { READ_DONE, READ_BAD, READ_STOPPED, READ_FAILED };

static void file_remove(struct reading *r, const char *path)
{
    struct session_read_result *result = r->result;
    if (unlink(path) < 0 && errno == ENOENT)
        return;
    if (!result->n_removed++)
        err_set(&result->reason, "%s %s", path, r->why.text);
}

/* ---- candidates ---------------------------------------------------------- */

static int by_position(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* A state file's name says where it may fit; the file itself is to confirm. */
static void point_add(struct reading *r, const char *name, size_t above)
{
    uint64_t key, pos, prefix;
    int end = 0;
    if (sscanf(name, "%16" SCNx64 "-%20" SCNu64 "-%16" SCNx64 ".state%n", &key, &pos,
               &prefix, &end) != 3 ||
        name[end] || !end)
        return;
    if (key != snapshot_key(&r->id) || pos <= above || pos >= r->p->n ||
        prefix != snapshot_prefix(r->p->ids, (size_t)pos))
        return;
    r->points = mem_regrow(r->points, r->n_points + 1, sizeof *r->points);
    r->points[r->n_points++] = (size_t)pos;
}

static void points_find(struct reading *r, size_t above)
{
    DIR *d = opendir(r->p->dir);
    struct dirent *e;
    if (!d)
        return;
    while ((e = readdir(d)))
        point_add(r, e->d_name, above);
    closedir(d);
    if (r->n_points)
        qsort(r->points, r->n_points, sizeof *r->points, by_position);
}

/* ---- rows ---------------------------------------------------------------- */

static enum outcome payload_read(struct reading *r, int fd, void *to, size_t n,
                                 uint64_t *at)
{
    int rc = snapshot_pread(fd, to, n, *at, &r->why);
    if (rc == 0)
        err_set(&r->why, "ends too early");
    if (rc <= 0)
        return READ_BAD;
    XXH3_64bits_update(r->sum, to, n);
    r->result->bytes += n;
    *at += n;
    return r->p->cancel && atomic_load(r->p->cancel) ? READ_STOPPED : READ_DONE;
}

static enum outcome sum_check(struct reading *r, int fd, uint64_t at)
{
    uint64_t sum = 0;
    if (snapshot_pread(fd, &sum, sizeof sum, at, &r->why) <= 0 ||
        sum != XXH3_64bits_digest(r->sum)) {
        err_set(&r->why, "does not match its checksum");
        return READ_BAD;
    }
    return READ_DONE;
}

/* Rows [first, last) of one plane lie in piece, which begins with row `from`;
 * those that the session lacks go to the device. */
static enum outcome rows_upload(struct reading *r, uint32_t plane, size_t from,
                                size_t last)
{
    struct session *s = r->s;
    const uint64_t row = r->id.row_bytes;
    size_t first = from > r->kept ? from : r->kept;
    if (first >= last)
        return READ_DONE;
    struct gpu_span to = gpu_span_at(
        &s->kv[plane / 2], (plane & 1) * session_kv_plane_bytes(s) + first * row,
        (last - first) * row);
    r->touched = true;
    return gpu_upload(s->engine->gpu, to, (const char *)r->piece + (first - from) * row,
                      r->err) < 0
               ? READ_FAILED
               : READ_DONE;
}

static enum outcome segment_load(struct reading *r, const struct kv_segment *g,
                                 size_t last)
{
    const uint64_t row = r->id.row_bytes;
    const size_t fit = PIECE_BYTES / row ? PIECE_BYTES / row : 1;
    uint64_t at = g->payload;
    XXH3_64bits_reset(r->sum);
    for (uint32_t plane = 0; plane < 2 * r->s->n_kv; plane++)
        for (size_t from = g->from; from < g->to; from += fit) {
            size_t end = g->to - from < fit ? g->to : from + fit;
            enum outcome o = payload_read(r, r->kv.fd, r->piece, (end - from) * row, &at);
            if (o == READ_DONE)
                o = rows_upload(r, plane, from, end < last ? end : last);
            if (o != READ_DONE)
                return o;
        }
    return sum_check(r, r->kv.fd, at);
}

/* Rows [kept, pos) along the path that ends at segment number `leaf`. */
static enum outcome rows_load(struct reading *r, size_t leaf, size_t pos)
{
    enum outcome o = READ_DONE;
    size_t last = pos;
    while (leaf && o == READ_DONE) {
        const struct kv_segment *g = &r->kv.v[leaf - 1];
        if (g->from < last && last > r->kept)
            o = segment_load(r, g, last);
        last = g->from;
        leaf = g->parent;
    }
    return o;
}

/* ---- state --------------------------------------------------------------- */

static enum outcome piece_load(struct reading *r, int fd, uint64_t bytes, uint64_t to,
                               uint64_t *at)
{
    enum outcome o = payload_read(r, fd, r->piece, (size_t)bytes, at);
    if (o != READ_DONE)
        return o;
    r->touched = true;
    return gpu_upload(r->s->engine->gpu, gpu_span_at(&r->s->state, to, bytes), r->piece,
                      r->err) < 0
               ? READ_FAILED
               : READ_DONE;
}

static enum outcome state_load(struct reading *r, int fd, uint64_t at)
{
    const struct snapshot_identity *id = &r->id;
    const struct state_layout *l = &r->s->layout;
    XXH3_64bits_reset(r->sum);
    for (uint32_t i = 0; i < id->n_recurrent; i++) {
        uint64_t layer = i * l->layer_bytes;
        enum outcome o = piece_load(r, fd, id->matrix_bytes, layer, &at);
        if (o == READ_DONE)
            o = piece_load(r, fd, id->history_bytes, layer + l->matrix_bytes, &at);
        if (o != READ_DONE)
            return o;
    }
    return sum_check(r, fd, at);
}

/* Opens the state file of a point and compares its ids. */
static enum outcome state_open(struct reading *r, const char *path, size_t pos, int *fd,
                               uint64_t *payload)
{
    struct snapshot_header h;
    struct tokens ids = { 0 };
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return READ_STOPPED;
    if (fstat(*fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        err_set(&r->why, "is no file");
        return READ_BAD;
    }
    const struct snapshot_place p = { *fd, 0, (uint64_t)st.st_size, snapshot_magic_state,
                                      &r->id };
    int rc = snapshot_record_read(&p, &h, &ids, payload, &r->why);
    if (rc == 0)
        err_set(&r->why, "ends too early");
    if (rc > 0 && (ids.len != pos || h.from || h.prefix != snapshot_prefix(ids.v, pos) ||
                   memcmp(ids.v, r->p->ids, pos * sizeof *ids.v) != 0 ||
                   *payload + h.payload_bytes + 8 != (uint64_t)st.st_size))
        rc = err_set(&r->why, "holds other tokens than its name says");
    tokens_release(&ids);
    return rc > 0 ? READ_DONE : READ_BAD;
}

/* ---- all ----------------------------------------------------------------- */

/* The session is at `pos` of the prompt now. */
static void timeline_set(struct reading *r, size_t pos)
{
    struct session *s = r->s;
    s->ids.len = 0;
    tokens_add(&s->ids, r->p->ids, pos);
    s->evaluated = pos;
    s->side = 0;
    s->has_logits = false;
    s->unknown = false;
    r->result->tokens = pos;
}

/* Every row and state file of this conversation and model goes. */
static void all_remove(struct reading *r)
{
    const char *key = strrchr(r->kv_path, '/') + 1;
    DIR *d = opendir(r->p->dir);
    struct dirent *e;
    file_remove(r, r->kv_path);
    while (d && (e = readdir(d))) {
        struct buf path = BUF_INIT;
        buf_printf(&path, "%s/%s", r->p->dir, e->d_name);
        if (strncmp(e->d_name, key, KEY_CHARS) == 0 && e->d_name[KEY_CHARS] == '-')
            file_remove(r, path.v);
        buf_release(&path);
    }
    if (d)
        closedir(d);
    r->n_points = 0;
}

static enum outcome point_try(struct reading *r, const char *path, size_t pos,
                              size_t leaf, size_t covered)
{
    uint64_t payload;
    int fd = -1;
    enum outcome o = state_open(r, path, pos, &fd, &payload);
    if (o == READ_DONE && covered < pos) {
        err_set(&r->why, "has lost its KV rows");
        o = READ_BAD;
    }
    if (o == READ_DONE) {
        o = rows_load(r, leaf, pos);
        if (o == READ_BAD)
            all_remove(r);
        else if (o == READ_DONE)
            o = state_load(r, fd, payload);
    }
    if (fd >= 0)
        close(fd);
    if (o == READ_BAD)
        file_remove(r, path);
    return o;
}

static enum outcome points_try(struct reading *r)
{
    size_t covered;
    size_t leaf = kv_file_match(&r->kv, r->p->ids, r->p->n, &covered);
    while (r->n_points) {
        size_t pos = r->points[--r->n_points];
        char *path =
            snapshot_state_path(r->p->dir, &r->id, pos, snapshot_prefix(r->p->ids, pos));
        enum outcome o = point_try(r, path, pos, leaf, covered);
        free(path);
        if (o == READ_DONE) {
            snapshot_forget(r->s, r->kept);
            timeline_set(r, pos);
        }
        if (o != READ_BAD)
            return o;
    }
    return READ_BAD;
}

/* How many rows are right already. */
static size_t rows_kept(const struct session *s, const struct session_read_params *p)
{
    size_t common = 0;
    while (common < s->evaluated && common < p->n - 1 &&
           s->ids.v[common] == p->ids[common])
        common++;
    return common;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t piece_bytes(const struct reading *r)
{
    const struct snapshot_identity *id = &r->id;
    return larger(larger(PIECE_BYTES, id->row_bytes),
                  larger((size_t)id->matrix_bytes, id->history_bytes));
}

static enum outcome read_all(struct reading *r)
{
    r->kept = rows_kept(r->s, r->p);
    points_find(r, session_reusable(r->s, r->p->ids, r->p->n));
    if (!r->n_points)
        return READ_DONE;
    int rc = kv_file_open(&r->kv, r->kv_path, false, &r->id, &r->why);
    if (rc > 0)
        return READ_DONE;
    if (rc < 0) {
        all_remove(r);
        return READ_DONE;
    }
    r->piece = mem_alloc(piece_bytes(r));
    enum outcome o = points_try(r);
    if (o == READ_DONE || !r->touched)
        return o;
    /* What is on the device now belongs to no timeline: back to a known one. */
    struct session *s = r->s;
    s->unknown = o == READ_FAILED || snapshot_rewind(s, r->kept, r->err) < 0;
    if (s->unknown) {
        snapshot_release(s);
        s->evaluated = 0;
    }
    s->ids.len = s->evaluated;
    s->has_logits = false;
    return s->unknown ? READ_FAILED : o;
}

int session_read(struct session *s, const struct session_read_params *p,
                 struct session_read_result *result, struct err *err)
{
    *result = (struct session_read_result){ 0 };
    uint64_t begin = clock_ns();
    if (p->n < 2 || p->n > s->params.ctx_tokens)
        return 0;
    struct reading r = { .s = s, .p = p, .result = result, .kv.fd = -1, .err = err };
    snapshot_identify(&r.id, s);
    r.kv_path = snapshot_kv_path(p->dir, &r.id);
    r.sum = XXH3_createState();
    if (!r.sum)
        abort(); /* as base/mem.h does */
    enum outcome o = read_all(&r);
    result->seconds = (double)(clock_ns() - begin) * 1e-9;
    kv_file_close(&r.kv);
    XXH3_freeState(r.sum);
    free(r.kv_path);
    free(r.points);
    free(r.piece);
    return o == READ_FAILED ? -1 : 0;
}
