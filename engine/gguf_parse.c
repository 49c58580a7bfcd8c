/* gguf_parse.c - reads the header, the metadata and the tensor infos of one
 * mapped part. Each read is checked against the end of the file first; memory
 * is taken only for what was already seen to be in the file. */
#include "engine/gguf_file.h"

#include "base/mem.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_BYTES = 24,
    TENSOR_MIN_BYTES = 8 + 1 + 4 + 8 + 4 + 8, /* of a tensor info */
    DEFAULT_ALIGNMENT = 32,
    MIN_ALIGNMENT = 8 /* the format's rule; also lets f32 and f64 be read in place */
};

struct reader {
    const uint8_t *v;
    uint64_t at, end;
    uint64_t strings_left; /* of GGUF_MAX_STRINGS */
};

uint32_t gguf_load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t gguf_load_u64(const uint8_t *p)
{
    return gguf_load_u32(p) | (uint64_t)gguf_load_u32(p + 4) << 32;
}

uint32_t gguf_type_bytes(uint32_t type)
{
    static const uint8_t bytes[GGUF_TYPES] = {
        [GGUF_U8] = 1, [GGUF_I8] = 1, [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4,
        [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8,
        [GGUF_I64] = 8, [GGUF_F64] = 8,
    };
    return type < GGUF_TYPES ? bytes[type] : 0;
}

const char *gguf_text(char dst[GGUF_TEXT_BYTES], const char *text, size_t bytes)
{
    size_t n = bytes < GGUF_TEXT_BYTES ? bytes : GGUF_TEXT_BYTES - 4;
    for (size_t i = 0; i < n; i++)
        dst[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    if (n < bytes)
        memcpy(dst + n, "...", 4);
    else
        dst[n] = 0;
    return dst;
}

/* ---- bounded reading ---------------------------------------------------- */

static int ends_early(const struct reader *r, struct err *err)
{
    return err_set(err, "the file ends inside its header, after %" PRIu64 " bytes; it "
                   "is incomplete, download it again", r->end);
}

/* The next bytes of the file, or NULL with the reason. */
static const uint8_t *take(struct reader *r, uint64_t bytes, struct err *err)
{
    if (bytes > r->end - r->at) {
        ends_early(r, err);
        return NULL;
    }
    const uint8_t *p = r->v + r->at;
    r->at += bytes;
    return p;
}

static int take_u32(struct reader *r, uint32_t *out, struct err *err)
{
    const uint8_t *p = take(r, 4, err);
    if (!p)
        return -1;
    *out = gguf_load_u32(p);
    return 0;
}

static int take_u64(struct reader *r, uint64_t *out, struct err *err)
{
    const uint8_t *p = take(r, 8, err);
    if (!p)
        return -1;
    *out = gguf_load_u64(p);
    return 0;
}

static int take_str(struct reader *r, struct gguf_str *out, struct err *err)
{
    uint64_t at = r->at, bytes;
    if (take_u64(r, &bytes, err) < 0)
        return -1;
    if (bytes > GGUF_MAX_STRING_BYTES)
        return err_set(err, "the string at byte %" PRIu64 " claims %" PRIu64 " bytes; "
                       "the file is damaged, download it again", at, bytes);
    const uint8_t *p = take(r, bytes, err);
    if (!p)
        return -1;
    *out = (struct gguf_str){ (const char *)p, (size_t)bytes };
    return 0;
}

/* ---- metadata ----------------------------------------------------------- */

static int parse_strings(struct reader *r, struct gguf_value *v, struct err *err)
{
    if (v->n > r->strings_left)
        return err_set(err, "more than %d strings in arrays; the file is damaged",
                       GGUF_MAX_STRINGS);
    if (v->n > (r->end - r->at) / 8)
        return ends_early(r, err);
    r->strings_left -= v->n;
    uint64_t start = r->at;
    v->at = mem_array(v->n + 1, sizeof *v->at);
    for (uint64_t i = 0; i < v->n; i++) {
        struct gguf_str s;
        v->at[i] = r->at - start;
        if (take_str(r, &s, err) < 0)
            return -1;
    }
    v->at[v->n] = r->at - start;
    return 0;
}

static int check_bools(const struct gguf_value *v, struct err *err)
{
    for (uint64_t i = 0; i < v->n; i++)
        if (v->v[i] > 1)
            return err_set(err, "a truth value is %u, not 0 or 1; the file is damaged",
                           v->v[i]);
    return 0;
}

static int parse_array(struct reader *r, struct gguf_value *v, struct err *err)
{
    if (take_u32(r, &v->element, err) < 0 || take_u64(r, &v->n, err) < 0)
        return -1;
    if (v->element >= GGUF_TYPES || v->element == GGUF_ARRAY)
        return err_set(err, "an array of elements of type %u, which is not known",
                       v->element);
    if (v->n > GGUF_MAX_ELEMENTS)
        return err_set(err, "an array claims %" PRIu64 " elements; the file is damaged",
                       v->n);
    v->v = r->v + r->at;
    if (v->element == GGUF_STRING)
        return parse_strings(r, v, err);
    if (!take(r, v->n * gguf_type_bytes(v->element), err))
        return -1;
    return v->element == GGUF_BOOL ? check_bools(v, err) : 0;
}

static int parse_content(struct reader *r, struct gguf_value *v, struct err *err)
{
    if (take_u32(r, &v->type, err) < 0)
        return -1;
    if (v->type == GGUF_ARRAY)
        return parse_array(r, v, err);
    if (v->type == GGUF_STRING) {
        struct gguf_str s = { 0 };
        if (take_str(r, &s, err) < 0)
            return -1;
        v->v = (const uint8_t *)s.v;
        v->n = s.bytes;
        return 0;
    }
    if (v->type >= GGUF_TYPES)
        return err_set(err, "the value has type %u, which is not known", v->type);
    v->n = 1;
    v->v = take(r, gguf_type_bytes(v->type), err);
    if (!v->v)
        return -1;
    return v->type == GGUF_BOOL ? check_bools(v, err) : 0;
}

static int parse_value(struct reader *r, struct gguf_value *v, struct err *err)
{
    uint64_t at = r->at;
    if (take_str(r, &v->key, err) < 0)
        return -1;
    if (v->key.bytes == 0 || v->key.bytes > GGUF_MAX_KEY_BYTES)
        return err_set(err, "the key at byte %" PRIu64 " has %zu bytes, not 1 to %d; the "
                       "file is damaged, download it again", at, v->key.bytes,
                       GGUF_MAX_KEY_BYTES);
    if (parse_content(r, v, err) < 0) {
        char text[GGUF_TEXT_BYTES];
        return err_prefix(err, "key %s", gguf_text(text, v->key.v, v->key.bytes));
    }
    return 0;
}

static int compare_str(const struct gguf_str *a, const struct gguf_str *b)
{
    size_t n = a->bytes < b->bytes ? a->bytes : b->bytes;
    int order = memcmp(a->v, b->v, n);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int compare_keys(const void *a, const void *b)
{
    const struct gguf_value *x = a, *y = b;
    return compare_str(&x->key, &y->key);
}

const struct gguf_value *gguf_part_find(const struct gguf_part *p, const char *key)
{
    struct gguf_value wanted = { .key = { key, strlen(key) } };
    return p->n_values ? bsearch(&wanted, p->values, p->n_values, sizeof wanted,
                                 compare_keys)
                       : NULL;
}

static int parse_values(struct reader *r, struct gguf_part *p, uint64_t count,
                        struct err *err)
{
    if (count > GGUF_MAX_KEYS)
        return err_set(err, "the header claims %" PRIu64 " metadata keys; the file is "
                       "damaged, download it again", count);
    p->values = mem_zalloc(count * sizeof *p->values);
    for (uint64_t i = 0; i < count; i++) {
        p->n_values = i + 1; /* so that closing frees what a failure leaves */
        if (parse_value(r, &p->values[i], err) < 0)
            return -1;
    }
    if (count)
        qsort(p->values, p->n_values, sizeof *p->values, compare_keys);
    for (uint64_t i = 1; i < count; i++)
        if (!compare_keys(&p->values[i - 1], &p->values[i])) {
            char text[GGUF_TEXT_BYTES];
            const struct gguf_str *key = &p->values[i].key;
            return err_set(err, "has the key %s twice; the file is damaged",
                           gguf_text(text, key->v, key->bytes));
        }
    return 0;
}

static int read_alignment(struct gguf_part *p, struct err *err)
{
    uint32_t alignment = DEFAULT_ALIGNMENT;
    if (gguf_part_u32(p, "general.alignment", &alignment, err) < 0)
        return -1;
    if (alignment < MIN_ALIGNMENT || (alignment & (alignment - 1)))
        return err_set(err, "general.alignment is %u, not a power of two of at least %d",
                       alignment, MIN_ALIGNMENT);
    p->alignment = alignment;
    return 0;
}

/* ---- tensor infos ------------------------------------------------------- */

static int parse_dims(struct reader *r, struct tensor *t, struct err *err)
{
    if (take_u32(r, &t->n_dims, err) < 0)
        return -1;
    if (t->n_dims < 1 || t->n_dims > 4)
        return err_set(err, "has %u dimensions, not 1 to 4; the file is damaged",
                       t->n_dims);
    t->n_elements = 1;
    for (uint32_t d = 0; d < 4; d++) {
        t->ne[d] = 1;
        if (d < t->n_dims && take_u64(r, &t->ne[d], err) < 0)
            return -1;
        if (t->ne[d] == 0)
            return err_set(err, "has a dimension of 0; the file is damaged");
        if (__builtin_mul_overflow(t->n_elements, t->ne[d], &t->n_elements) ||
            t->n_elements > INT64_MAX)
            return err_set(err, "has dimensions whose product overflows; the file is "
                           "damaged");
    }
    return 0;
}

static int parse_tensor(struct reader *r, struct tensor *t, struct err *err)
{
    struct gguf_str name = { 0 };
    char text[GGUF_TEXT_BYTES];
    uint64_t at = r->at;
    uint32_t id;
    if (take_str(r, &name, err) < 0)
        return -1;
    if (name.bytes == 0 || name.bytes >= GGUF_NAME_BYTES ||
        memchr(name.v, 0, name.bytes))
        return err_set(err, "the tensor name at byte %" PRIu64 " is not a text of 1 to "
                       "%d bytes; the file is damaged, download it again", at,
                       GGUF_NAME_BYTES - 1);
    memcpy(t->name, name.v, name.bytes);
    gguf_text(text, name.v, name.bytes);
    if (parse_dims(r, t, err) < 0)
        return err_prefix(err, "tensor %s", text);
    if (take_u32(r, &id, err) < 0 || take_u64(r, &t->offset, err) < 0)
        return -1;
    int q = quant_from_ggml(id);
    if (q < 0)
        return err_set(err, "tensor %s is of type %u, which this version does not know",
                       text, id);
    t->type = (enum quant)q;
    return 0;
}

static int parse_tensors(struct reader *r, struct gguf *g, uint32_t part, uint64_t count,
                         struct err *err)
{
    if (count > GGUF_MAX_TENSORS)
        return err_set(err, "the header claims %" PRIu64 " tensors; the file is damaged, "
                       "download it again", count);
    if (count > (r->end - r->at) / TENSOR_MIN_BYTES)
        return ends_early(r, err);
    struct gguf_part *p = &g->parts[part];
    p->first_tensor = g->n_tensors;
    p->n_tensors = count;
    g->n_tensors += count;
    g->tensors = mem_regrow(g->tensors, g->n_tensors, sizeof *g->tensors);
    memset(g->tensors + p->first_tensor, 0, count * sizeof *g->tensors);
    for (uint64_t i = 0; i < count; i++) {
        struct tensor *t = &g->tensors[p->first_tensor + i];
        t->part = part;
        if (parse_tensor(r, t, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- header ------------------------------------------------------------- */

static int check_magic(struct reader *r, struct err *err)
{
    if (r->end < 4 || memcmp(r->v, "GGUF", 4) != 0)
        return err_set(err, "is not a GGUF model (it does not begin with \"GGUF\"); give "
                       "the path of a .gguf file");
    if (r->end < HEADER_BYTES)
        return ends_early(r, err);
    uint32_t version = gguf_load_u32(r->v + 4);
    if ((version & 0xffff) == 0 && version)
        return err_set(err, "is a big-endian GGUF file; use the little-endian one");
    if (version == 1)
        return err_set(err, "is a GGUF file of version 1, which is obsolete; download a "
                       "newer conversion of the model");
    if (version != 2 && version != 3)
        return err_set(err, "is a GGUF file of version %u; versions 2 and 3 are known",
                       version);
    r->at = 8;
    return 0;
}

int gguf_part_parse(struct gguf *g, uint32_t part, struct err *err)
{
    struct gguf_part *p = &g->parts[part];
    struct reader r = { .v = p->map, .end = p->bytes,
                        .strings_left = GGUF_MAX_STRINGS };
    uint64_t n_tensors, n_keys;
    if (check_magic(&r, err) < 0 || take_u64(&r, &n_tensors, err) < 0 ||
        take_u64(&r, &n_keys, err) < 0 || parse_values(&r, p, n_keys, err) < 0 ||
        read_alignment(p, err) < 0 || parse_tensors(&r, g, part, n_tensors, err) < 0)
        return -1;
    p->data_at = (r.at + p->alignment - 1) & ~(p->alignment - 1);
    return 0;
}
