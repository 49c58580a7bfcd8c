/* gguf_place.c - where each tensor's data lies: sizes from shapes and formats,
 * bounds, overlaps, and the two layouts that share type id 42. */
#include "engine/gguf_file.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_offsets(const void *a, const void *b)
{
    const struct tensor *const *x = a, *const *y = b;
    return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

static const char *name_text(char dst[GGUF_TEXT_BYTES], const struct tensor *t)
{
    return gguf_text(dst, t->name, strlen(t->name));
}

/* Bytes of a tensor if it had this format; 0 if it cannot have. */
static uint64_t bytes_as(const struct tensor *t, enum quant q)
{
    const struct quant_format *f = quant_format(q);
    uint64_t bytes;
    if (t->ne[0] % f->elements != 0 ||
        __builtin_mul_overflow(t->n_elements / f->elements, (uint64_t)f->bytes, &bytes))
        return 0;
    return bytes;
}

/* Bytes between the start of tensor i and what follows it. */
static uint64_t room_of(struct tensor *const *sorted, size_t n, size_t i,
                        uint64_t data_bytes)
{
    uint64_t end = i + 1 < n ? sorted[i + 1]->offset : data_bytes;
    return end > sorted[i]->offset ? end - sorted[i]->offset : 0;
}

/* Id 42 means groups of 64 (36 bytes for 128 weights) or, in files of one early
 * converter, of 128 (34 bytes). Tensors lie one after the other, so in a file
 * of the second kind the first does not fit, and in one of the first kind the
 * gaps would be too wide for the second. A file in which both are seen is cut
 * short or damaged: reading it either way would give noise. */
static int settle_q2_0(struct tensor **sorted, size_t n, const struct gguf_part *p,
                       uint64_t data_bytes, struct err *err)
{
    size_t narrow = 0, wide = 0;
    for (size_t i = 0; i < n; i++) {
        if (sorted[i]->type != QUANT_Q2_0)
            continue;
        uint64_t room = room_of(sorted, n, i, data_bytes);
        uint64_t g64 = bytes_as(sorted[i], QUANT_Q2_0);
        uint64_t g128 = bytes_as(sorted[i], QUANT_PQ2_0);
        if (g128 && g128 <= room && room < g64)
            narrow++;
        else if (i + 1 < n && room >= g64 && g128 + p->alignment <= g64)
            wide++;
    }
    if (narrow && wide)
        return err_set(err, "the tensors of type Q2_0 fit neither of its two layouts; "
                       "the file is incomplete or damaged, download it again");
    for (size_t i = 0; narrow && i < n; i++)
        if (sorted[i]->type == QUANT_Q2_0)
            sorted[i]->type = QUANT_PQ2_0;
    return 0;
}

static int place(struct tensor *t, const struct gguf_part *p, uint64_t data_bytes,
                 struct err *err)
{
    char text[GGUF_TEXT_BYTES];
    const struct quant_format *f = quant_format(t->type);
    t->bytes = bytes_as(t, t->type);
    if (!t->bytes && t->ne[0] % f->elements == 0)
        return err_set(err, "tensor %s needs more than can be addressed; the file is "
                       "damaged", name_text(text, t));
    if (!t->bytes)
        return err_set(err, "tensor %s has rows of %" PRIu64 " elements, which is no "
                       "whole number of %s blocks of %u; the file is damaged",
                       name_text(text, t), t->ne[0], f->name, f->elements);
    if (t->offset % p->alignment)
        return err_set(err, "tensor %s begins at offset %" PRIu64 ", which is no "
                       "multiple of %" PRIu64 "; the file is damaged", name_text(text, t),
                       t->offset, p->alignment);
    if (t->offset > data_bytes || t->bytes > data_bytes - t->offset)
        return err_set(err, "tensor %s needs %" PRIu64 " bytes at offset %" PRIu64 ", "
                       "but the file has %" PRIu64 " bytes of data; it is incomplete, "
                       "download it again", name_text(text, t), t->bytes, t->offset,
                       data_bytes);
    t->data = p->map + p->data_at + t->offset;
    return 0;
}

static int check_overlap(struct tensor *const *sorted, size_t n, struct err *err)
{
    for (size_t i = 1; i < n; i++) {
        const struct tensor *a = sorted[i - 1], *b = sorted[i];
        char x[GGUF_TEXT_BYTES], y[GGUF_TEXT_BYTES];
        if (b->offset - a->offset < a->bytes)
            return err_set(err, "the tensors %s and %s overlap; the file is damaged, "
                           "download it again", name_text(x, a), name_text(y, b));
    }
    return 0;
}

int gguf_part_place(struct gguf *g, uint32_t part, struct err *err)
{
    struct gguf_part *p = &g->parts[part];
    uint64_t data_bytes = p->bytes > p->data_at ? p->bytes - p->data_at : 0;
    size_t n = p->n_tensors;
    struct tensor **sorted = mem_array(n, sizeof(struct tensor *));
    for (size_t i = 0; i < n; i++)
        sorted[i] = &g->tensors[p->first_tensor + i];
    if (n)
        qsort(sorted, n, sizeof(struct tensor *), compare_offsets);
    int rc = settle_q2_0(sorted, n, p, data_bytes, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = place(sorted[i], p, data_bytes, err);
    if (rc == 0)
        rc = check_overlap(sorted, n, err);
    free(sorted);
    return rc;
}
