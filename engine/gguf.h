/* gguf.h - a GGUF model file, mapped and checked whole: metadata and tensor
 * directory. Knows nothing about architectures.
 *
 * After gguf_open every value, string and tensor lies inside the mapping, and
 * nothing is read from the file to find its length again. Keys, names and
 * strings are hostile text without a terminator.
 * Thread-safety: read-only after opening, any thread. */
#ifndef ENGINE_GGUF_H
#define ENGINE_GGUF_H

#include "base/err.h"
#include "engine/quant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_NAME_BYTES = 64, GGUF_TEXT_BYTES = 80 };

struct gguf;

struct gguf_str {
    const char *v; /* not terminated */
    size_t bytes;
};

struct tensor {
    char name[GGUF_NAME_BYTES]; /* terminated, no NUL inside */
    enum quant type;
    uint32_t n_dims;
    uint64_t ne[4];      /* ne[0] is contiguous; missing ones are 1 */
    uint64_t n_elements; /* product of ne */
    uint64_t offset;     /* of the data, in its part of the model */
    uint64_t bytes;
    const uint8_t *data; /* in the mapping; aligned as the file says */
    uint32_t part;       /* 0 unless the model is split over several files */
    const struct tensor *factor; /* NULL, or floats that multiply the values: one,
                                  * or one for each of the ne[2] matrices. Never
                                  * set by gguf_open; see model_weights.c */
    bool rotated;        /* see rotation.h; neither is this */
};

/* Maps the file, and for the first part of a split model all other parts. */
int gguf_open(struct gguf **out, const char *path, struct err *err);
void gguf_close(struct gguf *g);
/* Whether the mapping still holds what was opened: -1 with the reason once another
 * program has cut a file short (what is missing reads as zeros) or, if unchanged,
 * has written to it. */
int gguf_check(const struct gguf *g, bool unchanged, struct err *err);

const char *gguf_path(const struct gguf *g);
uint64_t gguf_file_bytes(const struct gguf *g); /* all parts together */
size_t gguf_n_keys(const struct gguf *g);
size_t gguf_n_tensors(const struct gguf *g);
const struct tensor *gguf_tensor(const struct gguf *g, size_t i); /* file order */
const struct tensor *gguf_tensor_find(const struct gguf *g, const char *name);
struct gguf_str gguf_key(const struct gguf *g, size_t i);
bool gguf_has(const struct gguf *g, const char *key);
/* Whether any key begins with these characters. */
bool gguf_has_prefix(const struct gguf *g, const char *prefix);

/* Getters: 1 and *out set, 0 if the key is absent, -1 with the reason if its
 * type or range does not fit. Every integer width is accepted as integer (and
 * integers as f32); *out is unchanged unless 1 is returned. */
int gguf_u32(const struct gguf *g, const char *key, uint32_t *out, struct err *err);
int gguf_f32(const struct gguf *g, const char *key, float *out, struct err *err);
int gguf_bool(const struct gguf *g, const char *key, bool *out, struct err *err);
int gguf_string(const struct gguf *g, const char *key, struct gguf_str *out,
                struct err *err);

enum gguf_elements { GGUF_INTS, GGUF_FLOATS, GGUF_STRINGS };
struct gguf_array {
    uint32_t type;      /* of an element, as in the file */
    uint64_t n;
    const uint8_t *v;   /* first element */
    const uint64_t *at; /* strings: n + 1 offsets from v */
};
/* An array whose elements are of that kind; bools count as integers. */
int gguf_array(const struct gguf *g, const char *key, enum gguf_elements kind,
               struct gguf_array *out, struct err *err);
/* Element i < a->n of an array of that kind. */
int64_t gguf_array_int(const struct gguf_array *a, uint64_t i);
float gguf_array_f32(const struct gguf_array *a, uint64_t i);
struct gguf_str gguf_array_str(const struct gguf_array *a, uint64_t i);

/* Copies hostile text for an error line: printable ASCII, the rest as '?',
 * cut with "..." where too long. Returns dst. */
const char *gguf_text(char dst[GGUF_TEXT_BYTES], const char *text, size_t bytes);

#endif
