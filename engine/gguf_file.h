/* gguf_file.h - inside of gguf.h, shared by the gguf_*.c files only.
 *
 * Limits that no published model comes near keep a hostile header from asking
 * for much more memory than the file itself takes. */
#ifndef ENGINE_GGUF_FILE_H
#define ENGINE_GGUF_FILE_H

#include "engine/gguf.h"

#include "engine/gguf_guard.h"

#include <time.h>

enum {
    GGUF_MAX_KEYS = 1 << 16,
    GGUF_MAX_TENSORS = 1 << 18,    /* of one part */
    GGUF_MAX_PARTS = 1 << 12,
    GGUF_MAX_KEY_BYTES = 65535,
    GGUF_MAX_STRINGS = 1 << 24,    /* elements of all string arrays together */
    GGUF_MAX_ELEMENTS = 1 << 30,   /* of one array */
    GGUF_MAX_STRING_BYTES = 1 << 30
};

enum gguf_type {
    GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32,
    GGUF_BOOL, GGUF_STRING, GGUF_ARRAY, GGUF_U64, GGUF_I64, GGUF_F64,
    GGUF_TYPES
};

struct gguf_value {
    struct gguf_str key;
    uint32_t type;    /* enum gguf_type */
    uint32_t element; /* arrays: type of an element, never GGUF_ARRAY */
    uint64_t n;       /* arrays: elements; strings: bytes; else 1 */
    const uint8_t *v; /* first byte of the value */
    uint64_t *at;     /* string arrays: n + 1 offsets from v, owned */
};

/* One file. Tensors of all parts are in struct gguf. */
struct gguf_part {
    uint8_t *map;              /* NULL while not mapped */
    uint64_t bytes;
    int fd;                    /* of the mapped file; valid if map is */
    struct timespec changed;   /* when it was, at that time */
    struct guard *guard;
    struct gguf_value *values; /* sorted by key */
    size_t n_values;
    uint64_t alignment, data_at; /* data section, from the start of the file */
    size_t first_tensor, n_tensors;
};

struct gguf {
    char *path; /* of the first part */
    struct gguf_part *parts;
    uint32_t n_parts;
    struct tensor *tensors; /* in file order, part after part */
    size_t n_tensors;
    const struct tensor **by_name;
};

/* Little-endian number at p, which needs no alignment. */
uint32_t gguf_load_u32(const uint8_t *p);
uint64_t gguf_load_u64(const uint8_t *p);
/* Bytes of a scalar; 0 for strings, arrays and unknown types. */
uint32_t gguf_type_bytes(uint32_t type);

/* Header, metadata and tensor infos of a mapped part: fills the part and adds
 * its tensors to g, without sizes and data yet. */
int gguf_part_parse(struct gguf *g, uint32_t part, struct err *err);
/* Sizes and data pointers of a parsed part's tensors; checks that they lie
 * inside the data section and apart from each other. */
int gguf_part_place(struct gguf *g, uint32_t part, struct err *err);
const struct gguf_value *gguf_part_find(const struct gguf_part *p, const char *key);
/* As gguf_u32, in one part. */
int gguf_part_u32(const struct gguf_part *p, const char *key, uint32_t *out,
                  struct err *err);

#endif
