/* gguf_value.c - typed access to metadata. Converters disagree about integer
 * widths, so any integer is accepted where an integer is wanted and the range
 * is checked instead. */
#include "engine/gguf_file.h"

#include <assert.h>
#include <string.h>

static bool is_int(uint32_t type)
{
    return type <= GGUF_I32 || type == GGUF_U64 || type == GGUF_I64 || type == GGUF_BOOL;
}

/* Only for is_int types. A u64 beyond the range of int64_t gives INT64_MAX. */
static int64_t load_int(uint32_t type, const uint8_t *p)
{
    uint64_t u;
    switch (type) {
    case GGUF_U8: case GGUF_BOOL: return p[0];
    case GGUF_I8: return (int8_t)p[0];
    case GGUF_U16: return p[0] | p[1] << 8;
    case GGUF_I16: return (int16_t)(p[0] | p[1] << 8);
    case GGUF_U32: return gguf_load_u32(p);
    case GGUF_I32: return (int32_t)gguf_load_u32(p);
    case GGUF_I64: return (int64_t)gguf_load_u64(p);
    default:
        u = gguf_load_u64(p);
        return u > INT64_MAX ? INT64_MAX : (int64_t)u;
    }
}

static bool is_float(uint32_t type)
{
    return type == GGUF_F32 || type == GGUF_F64;
}

static float load_float(uint32_t type, const uint8_t *p)
{
    if (type == GGUF_F32) {
        uint32_t bits = gguf_load_u32(p);
        float f;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    if (type == GGUF_F64) {
        uint64_t bits = gguf_load_u64(p);
        double f;
        memcpy(&f, &bits, sizeof f);
        return (float)f;
    }
    return (float)load_int(type, p);
}

static int wrong_type(const char *key, const char *wanted, struct err *err)
{
    return err_set(err, "the metadata key %s is not %s; the file is damaged or was made "
                   "by an unknown converter", key, wanted);
}

bool gguf_has(const struct gguf *g, const char *key)
{
    return gguf_part_find(&g->parts[0], key) != NULL;
}

bool gguf_has_prefix(const struct gguf *g, const char *prefix)
{
    size_t n = strlen(prefix);
    for (size_t i = 0; i < g->parts[0].n_values; i++) {
        const struct gguf_str *key = &g->parts[0].values[i].key;
        if (key->bytes >= n && !memcmp(key->v, prefix, n))
            return true;
    }
    return false;
}

int gguf_part_u32(const struct gguf_part *p, const char *key, uint32_t *out,
                  struct err *err)
{
    const struct gguf_value *v = gguf_part_find(p, key);
    if (!v)
        return 0;
    if (!is_int(v->type) || v->type == GGUF_BOOL)
        return wrong_type(key, "an integer", err);
    int64_t n = load_int(v->type, v->v);
    if (n < 0 || n > UINT32_MAX)
        return err_set(err, "the metadata key %s is %lld, out of range", key,
                       (long long)n);
    *out = (uint32_t)n;
    return 1;
}

int gguf_u32(const struct gguf *g, const char *key, uint32_t *out, struct err *err)
{
    return gguf_part_u32(&g->parts[0], key, out, err);
}

int gguf_f32(const struct gguf *g, const char *key, float *out, struct err *err)
{
    const struct gguf_value *v = gguf_part_find(&g->parts[0], key);
    if (!v)
        return 0;
    if (v->type == GGUF_BOOL || !(is_float(v->type) || is_int(v->type)))
        return wrong_type(key, "a number", err);
    *out = load_float(v->type, v->v);
    return 1;
}

int gguf_bool(const struct gguf *g, const char *key, bool *out, struct err *err)
{
    const struct gguf_value *v = gguf_part_find(&g->parts[0], key);
    if (!v)
        return 0;
    int64_t n = is_int(v->type) ? load_int(v->type, v->v) : -1;
    if (n != 0 && n != 1)
        return wrong_type(key, "a truth value", err);
    *out = n == 1;
    return 1;
}

int gguf_string(const struct gguf *g, const char *key, struct gguf_str *out,
                struct err *err)
{
    const struct gguf_value *v = gguf_part_find(&g->parts[0], key);
    if (!v)
        return 0;
    if (v->type != GGUF_STRING)
        return wrong_type(key, "a text", err);
    *out = (struct gguf_str){ (const char *)v->v, (size_t)v->n };
    return 1;
}

int gguf_array(const struct gguf *g, const char *key, enum gguf_elements kind,
               struct gguf_array *out, struct err *err)
{
    static const char *const wanted[] = { "an array of integers", "an array of numbers",
                                          "an array of texts" };
    const struct gguf_value *v = gguf_part_find(&g->parts[0], key);
    if (!v)
        return 0;
    bool fits = kind == GGUF_STRINGS ? v->element == GGUF_STRING
                : kind == GGUF_INTS  ? is_int(v->element)
                                     : is_int(v->element) || is_float(v->element);
    if (v->type != GGUF_ARRAY || !fits)
        return wrong_type(key, wanted[kind], err);
    *out = (struct gguf_array){ .type = v->element, .n = v->n, .v = v->v, .at = v->at };
    return 1;
}

int64_t gguf_array_int(const struct gguf_array *a, uint64_t i)
{
    assert(i < a->n);
    return load_int(a->type, a->v + i * gguf_type_bytes(a->type));
}

float gguf_array_f32(const struct gguf_array *a, uint64_t i)
{
    assert(i < a->n);
    return load_float(a->type, a->v + i * gguf_type_bytes(a->type));
}

struct gguf_str gguf_array_str(const struct gguf_array *a, uint64_t i)
{
    assert(i < a->n);
    return (struct gguf_str){ (const char *)a->v + a->at[i] + 8,
                              (size_t)(a->at[i + 1] - a->at[i] - 8) };
}
