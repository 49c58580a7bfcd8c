/* snapshot_file.h - timelines on disk, for engine/snapshot_*.c only.
 *
 * One folder holds the files of one conversation:
 *   KEY.kv               segments, appended and never changed
 *   KEY-POS-HASH.state   the recurrent state after POS tokens
 * KEY is a hash of the identity below, HASH one of the ids [0, POS). Both kinds
 * are made of records: header, ids, payload, XXH3-64 of the payload.
 *   segment  ids and KV rows of tokens [from, to): for each attention layer the
 *            rows of the keys, then those of the values
 *   state    ids of tokens [0, to); for each recurrent layer its matrix, then
 *            the three newest rows of its conv history, oldest first
 * Segments form a tree: parent is 1 + the index of the one that holds token
 * from - 1, 0 where from is 0. What a segment's rows were computed from is the
 * path to the root, so that comparing ids along it is an exact check.
 * A segment that the file ends in the middle of was never finished: it is cut
 * off. Any other flaw condemns the file. */
#ifndef ENGINE_SNAPSHOT_FILE_H
#define ENGINE_SNAPSHOT_FILE_H

#include "engine/session.h"

enum { SNAPSHOT_VERSION = 1, SNAPSHOT_ENDIAN = 0x0a0b0c0d };

/* What must be equal for a file to be of use. Not among it: context size,
 * device, driver, chunk sizes, threads. */
struct snapshot_identity {
    uint32_t version, endian;
    uint32_t kv_type, math; /* enum kv_type; 1: int8 */
    uint32_t n_recurrent, n_attention;
    uint32_t row_bytes;          /* of one token's keys in one layer */
    uint32_t history_bytes;      /* three rows of one layer's history */
    uint64_t matrix_bytes;       /* of one layer's state */
    uint64_t weights, tokenizer; /* fingerprints */
};

struct snapshot_header {
    char magic[8];
    struct snapshot_identity id;
    uint64_t from, to, parent;
    uint64_t prefix; /* hash of the ids [0, to) */
    uint64_t payload_bytes;
    uint64_t checksum; /* of all above, and of the ids */
};

/* XXH3-64 over the tensor directory (names, types, shapes, in file order), over
 * four pieces of 64 bytes of every tensor's data, and over the hyper-parameters
 * that passes use. Cheap for any file size: a training step, a merge or another
 * quantisation changes nearly every tensor. */
uint64_t snapshot_weights_hash(const struct model *m);
void snapshot_identify(struct snapshot_identity *id, struct session *s);
uint64_t snapshot_key(const struct snapshot_identity *id);
uint64_t snapshot_prefix(const int32_t *ids, size_t n);
/* DIR/KEY.kv and DIR/KEY-POS-HASH.state; malloced. */
char *snapshot_kv_path(const char *dir, const struct snapshot_identity *id);
char *snapshot_state_path(const char *dir, const struct snapshot_identity *id, size_t pos,
                          uint64_t prefix);

/* The checksum field for a filled header and its ids. */
uint64_t snapshot_checksum(const struct snapshot_header *h, const int32_t *ids, size_t n);
extern const char snapshot_magic_kv[8], snapshot_magic_state[8];

/* pread of exactly n bytes; 1, 0 at the end of the file, -1 with the reason. */
int snapshot_pread(int fd, void *to, size_t n, uint64_t at, struct err *err);
/* Where a record is to be, and of what kind. */
struct snapshot_place {
    int fd;
    uint64_t at, file_bytes;
    const char *magic;
    const struct snapshot_identity *want;
};
/* Reads and checks a record up to its payload, the position of which *payload
 * gets; its ids are appended. 1; 0: the file ends before the record does; -1 with
 * the reason. */
int snapshot_record_read(const struct snapshot_place *p, struct snapshot_header *h,
                         struct tokens *ids, uint64_t *payload, struct err *err);

/* ---- the KV file --------------------------------------------------------- */

struct kv_segment {
    uint64_t payload; /* where its rows are */
    size_t from, to, parent;
    size_t ids;   /* where in kv_file.ids its own are */
    size_t match; /* its path agrees with the ids looked for up to here */
};

struct kv_file {
    int fd;         /* -1: there is none */
    uint64_t bytes; /* of whole segments */
    struct kv_segment *v;
    size_t n;
    struct tokens ids;
};

/* Opens the file, locked for as long as it is open: against all
 * others. Reads every header; an unfinished end is
 * cut off. 0: read, or not there; 1: not now (another program uses it, or it
 * cannot be opened); -1: it is no good. The reason is in err. */
int kv_file_open(struct kv_file *f, const char *path, bool create,
                 const struct snapshot_identity *want, struct err *err);
void kv_file_close(struct kv_file *f);
/* Compares the paths with ids[0, n): the index + 1 of the segment that agrees
 * longest, 0 for none; *covered: how far. */
size_t kv_file_match(struct kv_file *f, const int32_t *ids, size_t n, size_t *covered);

#endif
