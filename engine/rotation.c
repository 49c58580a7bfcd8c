/* rotation.c - reads the description of rotated weights. Whatever it leaves open,
 * or says in a way that is not known, makes the file one that does not run: a
 * model whose rotation is misread gives fluent nonsense. */
#include "engine/rotation.h"

#include "base/mem.h"
#include "engine/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "prism.hadamard."

static const char *const known[] = {
    PREFIX "version",       PREFIX "block_size",   PREFIX "transform",
    PREFIX "axis",          PREFIX "sign_mode",    PREFIX "sign_widths",
    PREFIX "sign_values",   PREFIX "weight_names", PREFIX "inverse_weight_names",
    PREFIX "gdn_v_grouped", PREFIX "tied_output",
};

static bool is_text(struct gguf_str s, const char *text)
{
    return s.bytes == strlen(text) && !memcmp(s.v, text, s.bytes);
}

static int check_keys(const struct gguf *g, struct err *err)
{
    char text[GGUF_TEXT_BYTES];
    for (size_t i = 0; i < gguf_n_keys(g); i++) {
        struct gguf_str key = gguf_key(g, i);
        bool found =
            key.bytes < strlen(PREFIX) || memcmp(key.v, PREFIX, strlen(PREFIX)) != 0;
        for (size_t k = 0; !found && k < sizeof known / sizeof *known; k++)
            found = is_text(key, known[k]);
        if (!found) {
            err_set(err, "its weights are rotated in a way that is not known (%s)",
                    gguf_text(text, key.v, key.bytes));
            return 0;
        }
    }
    return 1;
}

static int not_known(struct err *err, const char *key, const char *value)
{
    err_set(err, "its weights are rotated in a way that is not known (%s %s)", key,
            value);
    return 0;
}

/* A text that must be there and be this. */
static int check_text(const struct gguf *g, const char *key, const char *want,
                      struct err *err)
{
    char text[GGUF_TEXT_BYTES];
    struct gguf_str s = { "is missing", 10 };
    if (gguf_string(g, key, &s, err) < 0)
        return -1;
    return is_text(s, want) ? 1 : not_known(err, key, gguf_text(text, s.v, s.bytes));
}

static int check_u32(const struct gguf *g, const char *key, uint32_t want,
                     struct err *err)
{
    char text[16];
    uint32_t value = 0;
    int found = gguf_u32(g, key, &value, err);
    if (found < 0)
        return -1;
    snprintf(text, sizeof text, "%u", value);
    return value == want ? 1 : not_known(err, key, found ? text : "is missing");
}

/* Version 1 has a head of its own, version 2 the embedding for one. */
static int read_version(struct rotation *r, const struct gguf *g, struct err *err)
{
    uint32_t version = 0;
    bool tied = false, head = gguf_tensor_find(g, "output.weight") != NULL;
    if (gguf_u32(g, PREFIX "version", &version, err) < 0 ||
        gguf_bool(g, PREFIX "tied_output", &tied, err) < 0)
        return -1;
    r->tied = version == 2;
    if (version != 1 && version != 2)
        return check_u32(g, PREFIX "version", 1, err);
    if (tied != r->tied || head == r->tied) {
        err_set(err,
                "its weights are rotated in a way that is not known (version %u, "
                "tied_output %s, %s output.weight)",
                version, tied ? "on" : "off", head ? "with" : "without");
        return 0;
    }
    return 1;
}

/* ---- signs --------------------------------------------------------------- */

static int read_widths(struct rotation *r, const struct gguf_array *widths,
                       uint64_t n_values, struct err *err)
{
    uint64_t sum = 0;
    if (widths->n > ROTATION_MAX_WIDTHS)
        return not_known(err, PREFIX "sign_widths", "has too many entries");
    for (uint64_t i = 0; i < widths->n; i++) {
        int64_t width = gguf_array_int(widths, i);
        if (width < 1 || width > 1 << 24)
            return err_set(err,
                           PREFIX "sign_widths is out of range; the file is damaged");
        for (uint32_t k = 0; k < r->n_widths; k++)
            if (r->widths[k] == width)
                return not_known(err, PREFIX "sign_widths", "has an entry twice");
        r->widths[r->n_widths++] = (uint32_t)width;
        sum += (uint64_t)width;
    }
    if (sum != n_values)
        return err_set(err,
                       PREFIX "sign_values has %" PRIu64 " entries for widths of %" PRIu64
                              " together; the file is damaged",
                       n_values, sum);
    return 1;
}

static int read_explicit(struct rotation *r, const struct gguf *g, struct err *err)
{
    struct gguf_array widths, values;
    int has_widths = gguf_array(g, PREFIX "sign_widths", GGUF_INTS, &widths, err);
    int has_values = gguf_array(g, PREFIX "sign_values", GGUF_INTS, &values, err);
    if (has_widths < 0 || has_values < 0)
        return -1;
    if (!has_widths || !has_values)
        return not_known(err, PREFIX "sign_mode", "explicit, without signs");
    int rc = read_widths(r, &widths, values.n, err);
    if (rc != 1)
        return rc;
    r->signs = mem_alloc(values.n ? values.n : 1);
    for (uint64_t i = 0; i < values.n; i++) {
        int64_t sign = gguf_array_int(&values, i);
        if (sign != 1 && sign != -1)
            return err_set(err, PREFIX "sign_values holds a number that is no sign; the "
                                       "file is damaged");
        r->signs[i] = (int8_t)sign;
    }
    return 1;
}

static int read_signs(struct rotation *r, const struct gguf *g, struct err *err)
{
    struct gguf_str mode = { "", 0 };
    if (gguf_string(g, PREFIX "sign_mode", &mode, err) < 0)
        return -1;
    if (is_text(mode, "explicit"))
        return read_explicit(r, g, err);
    if (is_text(mode, "identity") && !gguf_has(g, PREFIX "sign_values"))
        return 1;
    char text[GGUF_TEXT_BYTES];
    return not_known(err, PREFIX "sign_mode",
                     mode.bytes ? gguf_text(text, mode.v, mode.bytes) : "is missing");
}

/* ---- names --------------------------------------------------------------- */

static int read_names(struct rotation *r, const struct gguf *g, struct err *err)
{
    struct gguf_array inverse;
    int names = gguf_array(g, PREFIX "weight_names", GGUF_STRINGS, &r->names, err);
    int inverses =
        gguf_array(g, PREFIX "inverse_weight_names", GGUF_STRINGS, &inverse, err);
    if (names < 0 || inverses < 0)
        return -1;
    if (!names || !inverses)
        return not_known(err,
                         names ? PREFIX "inverse_weight_names" : PREFIX "weight_names",
                         "is missing");
    r->used = mem_zalloc((r->names.n ? r->names.n : 1) * sizeof *r->used);
    char text[GGUF_TEXT_BYTES];
    for (uint64_t i = 0; i < inverse.n; i++) {
        struct gguf_str name = gguf_array_str(&inverse, i);
        if (!is_text(name, "token_embd.weight"))
            return not_known(err, PREFIX "inverse_weight_names",
                             gguf_text(text, name.v, name.bytes));
        r->embedding = true;
    }
    if (r->tied && !r->embedding)
        return not_known(err, PREFIX "tied_output", "on, with an embedding as it is");
    return 1;
}

/* ---- all ----------------------------------------------------------------- */

int rotation_read(struct rotation *r, const struct gguf *g, struct err *err)
{
    *r = (struct rotation){ .on = gguf_has_prefix(g, PREFIX) };
    if (!r->on)
        return 1;
    int v = gguf_bool(g, PREFIX "gdn_v_grouped", &r->v_grouped, err);
    if (v < 0)
        return -1;
    r->says_v = v == 1;
    int rc = check_keys(g, err);
    if (rc == 1)
        rc = read_version(r, g, err);
    if (rc == 1)
        rc = check_u32(g, PREFIX "block_size", ROTATION_BLOCK, err);
    if (rc == 1)
        rc =
            check_text(g, PREFIX "transform", "normalized-sylvester-walsh-hadamard", err);
    if (rc == 1)
        rc = check_text(g, PREFIX "axis", "input-last-dimension", err);
    if (rc == 1)
        rc = read_signs(r, g, err);
    return rc == 1 ? read_names(r, g, err) : rc;
}

void rotation_release(struct rotation *r)
{
    free(r->used);
    free(r->signs);
    *r = (struct rotation){ 0 };
}

bool rotation_take(struct rotation *r, const char *name)
{
    bool found = false;
    for (uint64_t i = 0; i < r->names.n; i++)
        if (is_text(gguf_array_str(&r->names, i), name))
            found = r->used[i] = true;
    return found;
}

int rotation_check_used(const struct rotation *r, uint32_t n_layer, struct err *err)
{
    for (uint64_t i = 0; i < r->names.n; i++) {
        struct gguf_str name = gguf_array_str(&r->names, i);
        struct tensor t = { .n_dims = 0 };
        char text[GGUF_TEXT_BYTES];
        if (name.bytes < sizeof t.name)
            memcpy(t.name, name.v, name.bytes);
        if (!r->used[i] && tensor_is_decoder(&t, n_layer))
            return not_known(err, PREFIX "weight_names",
                             gguf_text(text, name.v, name.bytes));
    }
    return 1;
}

bool rotation_signs(const struct rotation *r, uint64_t width, float *out)
{
    size_t first = 0;
    uint32_t i = 0;
    while (r->signs && i < r->n_widths && r->widths[i] != width)
        first += r->widths[i++];
    if (r->signs && i == r->n_widths)
        return false;
    for (uint64_t c = 0; out && c < width; c++)
        out[c] = r->signs ? r->signs[first + c] : 1;
    return true;
}

int rotation_check_width(const struct rotation *r, const struct tensor *t,
                         struct err *err)
{
    if (t->ne[0] % ROTATION_BLOCK == 0 && rotation_signs(r, t->ne[0], NULL))
        return 1;
    err_set(err,
            "its weights are rotated in a way that is not known (%s has rows of %" PRIu64
            ", which %s)",
            t->name, t->ne[0],
            t->ne[0] % ROTATION_BLOCK ? "are no whole blocks" : "have no signs");
    return 0;
}
