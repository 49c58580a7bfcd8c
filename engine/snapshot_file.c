/* snapshot_file.c - reading of records and of the tree of KV segments. Trusts
 * no byte of a file: sizes are checked against the file before anything is
 * allocated, headers and ids against their checksum before they are believed. */
#include "engine/snapshot_file.h"

#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TOKENS = 1 << 28 };

_Static_assert(sizeof(struct snapshot_identity) == 56, "no padding");
_Static_assert(sizeof(struct snapshot_header) == 112, "no padding");

int snapshot_pread(int fd, void *to, size_t n, uint64_t at, struct err *err)
{
    char *p = to;
    while (n) {
        ssize_t k = pread(fd, p, n, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_set(err, "cannot be read: %s", strerror(errno));
        if (k == 0)
            return 0;
        p += k;
        n -= (size_t)k;
        at += (uint64_t)k;
    }
    return 1;
}

/* ---- records ------------------------------------------------------------- */

static int identity_check(const struct snapshot_identity *id,
                          const struct snapshot_identity *want, struct err *err)
{
    if (id->weights != want->weights)
        return err_set(err, "belongs to other weights");
    if (id->tokenizer != want->tokenizer)
        return err_set(err, "belongs to another tokenizer");
    if (memcmp(id, want, sizeof *id) != 0)
        return err_set(err, "has another layout");
    return 0;
}

static uint64_t payload_bytes(const struct snapshot_header *h, bool state)
{
    const struct snapshot_identity *id = &h->id;
    if (state)
        return id->n_recurrent * (id->matrix_bytes + id->history_bytes);
    return (h->to - h->from) * 2 * id->row_bytes * id->n_attention;
}

static int header_check(const struct snapshot_header *h, const char magic[8],
                        const struct snapshot_identity *want, struct err *err)
{
    if (memcmp(h->magic, magic, 8) != 0)
        return err_set(err, "is no snapshot");
    if (h->id.endian != SNAPSHOT_ENDIAN)
        return err_set(err, "was written with another byte order");
    if (h->id.version != SNAPSHOT_VERSION)
        return err_set(err, "has format version %u, this program knows %d", h->id.version,
                       SNAPSHOT_VERSION);
    if (identity_check(&h->id, want, err) < 0)
        return -1;
    /* Keeps every product below within 64 bits. */
    if (h->from >= h->to || h->to > MAX_TOKENS ||
        h->payload_bytes != payload_bytes(h, magic == snapshot_magic_state))
        return err_set(err, "has sizes that do not fit each other");
    return 0;
}

int snapshot_record_read(const struct snapshot_place *p, struct snapshot_header *h,
                         struct tokens *ids, uint64_t *payload, struct err *err)
{
    if (p->file_bytes - p->at < sizeof *h)
        return 0;
    int rc = snapshot_pread(p->fd, h, sizeof *h, p->at, err);
    if (rc <= 0)
        return rc;
    if (header_check(h, p->magic, p->want, err) < 0)
        return -1;
    uint64_t ids_bytes = (h->to - h->from) * sizeof(int32_t);
    uint64_t left = p->file_bytes - p->at - sizeof *h;
    if (left < ids_bytes || left - ids_bytes < h->payload_bytes + sizeof(uint64_t))
        return 0;
    size_t n = (size_t)(h->to - h->from);
    int32_t *read = mem_array(n, sizeof *read);
    rc = snapshot_pread(p->fd, read, n * sizeof *read, p->at + sizeof *h, err);
    if (rc > 0 && snapshot_checksum(h, read, n) != h->checksum)
        rc = err_set(err, "has a header that does not match its checksum");
    if (rc > 0)
        tokens_add(ids, read, n);
    free(read);
    *payload = p->at + sizeof *h + ids_bytes;
    return rc;
}

/* ---- the KV file --------------------------------------------------------- */

static int segment_check(const struct kv_file *f, const struct snapshot_header *h,
                         struct err *err)
{
    bool rooted = h->from == 0 && h->parent == 0;
    bool below = h->parent > 0 && h->parent <= f->n &&
                 h->from > f->v[h->parent - 1].from && h->from <= f->v[h->parent - 1].to;
    return rooted || below ? 0 : err_set(err, "has a segment without its beginning");
}

static int segments_read(struct kv_file *f, uint64_t file_bytes,
                         const struct snapshot_identity *want, struct err *err)
{
    struct snapshot_header h;
    uint64_t payload;
    size_t cap = 0;
    for (;;) {
        size_t first = f->ids.len;
        const struct snapshot_place p = { f->fd, f->bytes, file_bytes, snapshot_magic_kv,
                                          want };
        int rc = snapshot_record_read(&p, &h, &f->ids, &payload, err);
        if (rc <= 0)
            return rc;
        if (segment_check(f, &h, err) < 0)
            return -1;
        if (f->n == cap) {
            cap = cap ? 2 * cap : 16;
            f->v = mem_regrow(f->v, cap, sizeof *f->v);
        }
        f->v[f->n++] = (struct kv_segment){ .payload = payload,
                                            .from = (size_t)h.from,
                                            .to = (size_t)h.to,
                                            .parent = (size_t)h.parent,
                                            .ids = first };
        f->bytes = payload + h.payload_bytes + sizeof(uint64_t);
    }
}

int kv_file_open(struct kv_file *f, const char *path, bool create,
                 const struct snapshot_identity *want, struct err *err)
{
    struct stat st;
    *f = (struct kv_file){ .fd = -1 };
    int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0);
    f->fd = fault_hit(FAULT_OPEN) ? -1 : open(path, flags, 0600);
    if (f->fd < 0 && errno == ENOENT && !create)
        return 0;
    int rc = 1;
    if (f->fd < 0) {
        err_set(err, "cannot be opened: %s", strerror(errno));
        goto fail;
    }
    if (flock(f->fd, LOCK_EX | LOCK_NB) < 0) {
        err_set(err, "is in use by another program");
        goto fail;
    }
    rc = -1;
    if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        err_set(err, "is no file");
        goto fail;
    }
    if (segments_read(f, (uint64_t)st.st_size, want, err) < 0)
        goto fail;
    if (f->bytes < (uint64_t)st.st_size && ftruncate(f->fd, (off_t)f->bytes) < 0) {
        err_set(err, "cannot be cut: %s", strerror(errno));
        goto fail;
    }
    return 0;
fail:
    kv_file_close(f);
    return rc;
}

void kv_file_close(struct kv_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->v);
    tokens_release(&f->ids);
    *f = (struct kv_file){ .fd = -1 };
}

size_t kv_file_match(struct kv_file *f, const int32_t *ids, size_t n, size_t *covered)
{
    size_t best = 0;
    *covered = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct kv_segment *g = &f->v[i];
        g->match = 0;
        if (g->parent && f->v[g->parent - 1].match < g->from)
            continue;
        size_t at = g->from;
        while (at < g->to && at < n && f->ids.v[g->ids + at - g->from] == ids[at])
            at++;
        g->match = at;
        if (at > *covered) {
            *covered = at;
            best = i + 1;
        }
    }
    return best;
}
