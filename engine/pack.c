/* pack.c - the way of weights into device memory. Holds at most PIECE_BYTES of
 * a matrix in host memory at a time. */
#include "engine/pack.h"

#include "base/mem.h"
#include "engine/parallel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (16u << 20)
#define LEAST_BYTES (256u << 10) /* that a thread is worth */
#define BLOCK_BYTES (1ull << 30) /* of an arena, unless one piece is larger */
#define ALIGN       256u

/* ---- matrices ----------------------------------------------------------- */

static uint64_t tensor_rows(const struct tensor *t)
{
    return t->ne[1] * t->ne[2] * t->ne[3];
}

static uint64_t part_rows(const struct pack_source *s, uint32_t i)
{
    uint64_t rows = tensor_rows(s->parts[i]);
    return s->rows[i].run ? rows / s->rows[i].stride * s->rows[i].run : rows;
}

static uint64_t source_rows(const struct pack_source *s)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < s->n_parts; i++)
        rows += part_rows(s, i);
    return rows;
}

float pack_factor(const struct tensor *t, uint64_t row)
{
    const struct tensor *f = t->factor;
    float value = 1;
    if (f)
        quant_dequantize(f->type,
                         f->data + (f->ne[0] > 1 ? row / t->ne[1] : 0) *
                                       quant_bytes(f->type, 1),
                         1, &value);
    return value;
}

/* Where row r of the matrix comes from. */
static struct pack_row_source source_row(const struct pack_source *s, uint64_t r)
{
    uint32_t i = 0;
    if (s->interleave) {
        i = r / ACT_BLOCK % 2;
        r = r / (2 * ACT_BLOCK) * ACT_BLOCK + r % ACT_BLOCK;
    } else {
        while (r >= part_rows(s, i))
            r -= part_rows(s, i++);
    }
    const struct tensor *t = s->parts[i];
    const struct pack_rows *p = &s->rows[i];
    if (p->run)
        r = r / p->run * p->stride + p->start + r % p->run;
    return (struct pack_row_source){ .type = t->type,
                                     .data = t->data + r * (t->bytes / tensor_rows(t)),
                                     .factor = pack_factor(t, r) };
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

void pack_plane_bytes(const struct pack_source *s, uint64_t *codes, uint64_t *scales)
{
    enum device_format f = pack_format(s);
    uint32_t cols = (uint32_t)s->parts[0]->ne[0];
    uint64_t rows = source_rows(s);
    *codes = rows * pack_code_bytes(f, cols);
    *scales = rows * pack_scale_bytes(f, cols);
    if (!*scales) /* what is bound must not be nothing */
        *scales = 4;
}

uint64_t pack_matrix_bytes(const struct pack_source *s)
{
    uint64_t codes, scales;
    pack_plane_bytes(s, &codes, &scales);
    return padded(codes) + padded(scales);
}

int pack_matrix_check(const struct pack_source *s, const struct gpu *gpu, struct err *err)
{
    uint64_t most = gpu_info(gpu)->buffer_bytes, mib = 1 << 20;
    uint64_t bytes = source_rows(s) *
                     pack_code_bytes(pack_format(s), (uint32_t)s->parts[0]->ne[0]);
    if (bytes <= most)
        return 0;
    return err_set(err, "%s needs %" PRIu64 " MiB in one piece, this device can bind %"
                   PRIu64 "; choose a smaller model or another device", s->parts[0]->name,
                   (bytes + mib - 1) / mib, most / mib);
}

/* Rows [first, first + n) of a matrix, repacked into host memory. */
struct piece {
    const struct matrix *m;
    const struct pack_source *source;
    uint32_t first;
    uint8_t *codes, *scales;
};

static void pack_rows(void *arg, uint32_t begin, uint32_t end)
{
    const struct piece *p = arg;
    size_t code_bytes = pack_code_bytes(p->m->format, p->m->cols);
    size_t scale_bytes = pack_scale_bytes(p->m->format, p->m->cols);
    for (uint32_t i = begin; i < end; i++) {
        struct pack_row_source row = source_row(p->source, p->first + i);
        pack_row(p->m->format, &row, p->m->cols, p->codes + i * code_bytes,
                 p->scales + i * scale_bytes);
    }
}

/* Repacks rows [first, first + n) and uploads both planes. */
static int upload_rows(struct matrix *m, struct gpu *gpu, const struct pack_source *s,
                       uint32_t first, uint32_t n, uint8_t *memory, struct err *err)
{
    size_t code_bytes = pack_code_bytes(m->format, m->cols);
    size_t scale_bytes = pack_scale_bytes(m->format, m->cols);
    uint8_t *scales = memory + n * code_bytes;
    struct piece p = { .m = m, .source = s, .first = first, .codes = memory,
                       .scales = scales };
    uint32_t least = (uint32_t)(LEAST_BYTES / (code_bytes + 1));
    parallel_for(n, least, pack_rows, &p);
    struct gpu_span to = gpu_span_at(m->codes.buffer, m->codes.offset + first * code_bytes,
                                     n * code_bytes);
    if (gpu_upload(gpu, to, memory, err) < 0)
        return -1;
    if (!scale_bytes)
        return 0;
    to = gpu_span_at(m->scales.buffer, m->scales.offset + first * scale_bytes,
                     n * scale_bytes);
    return gpu_upload(gpu, to, scales, err);
}

int pack_matrix(struct matrix *out, struct arena *a, const struct pack_source *s,
                struct err *err)
{
    enum device_format f = pack_format(s);
    uint32_t cols = (uint32_t)s->parts[0]->ne[0];
    *out = (struct matrix){
        .format = f, .rows = (uint32_t)source_rows(s), .cols = cols, .units = pack_units(f, cols)
    };
    size_t row_bytes = pack_code_bytes(f, cols) + pack_scale_bytes(f, cols);
    uint64_t codes, scales;
    pack_plane_bytes(s, &codes, &scales);
    if (arena_take(&out->codes, a, codes, err) < 0 ||
        arena_take(&out->scales, a, scales, err) < 0)
        return err_prefix(err, "%s", s->parts[0]->name);
    uint32_t piece = row_bytes > PIECE_BYTES ? 1 : (uint32_t)(PIECE_BYTES / row_bytes);
    if (piece > out->rows)
        piece = out->rows;
    uint8_t *memory = mem_array(piece, row_bytes);
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < out->rows; r += piece) {
        uint32_t n = out->rows - r < piece ? out->rows - r : piece;
        rc = upload_rows(out, a->gpu, s, r, n, memory, err);
    }
    free(memory);
    return rc;
}

int pack_vector(struct gpu_span *out, struct arena *a, const struct tensor *t,
                struct err *err)
{
    float *values = mem_array(t->n_elements, sizeof *values);
    quant_dequantize(t->type, t->data, t->n_elements, values);
    int rc = arena_take(out, a, t->n_elements * sizeof *values, err);
    if (rc == 0)
        rc = gpu_upload(a->gpu, *out, values, err);
    free(values);
    return rc < 0 ? err_prefix(err, "%s", t->name) : 0;
}

/* ---- arena -------------------------------------------------------------- */

void arena_init(struct arena *a, struct gpu *gpu, uint64_t wanted_bytes)
{
    *a = (struct arena){ .gpu = gpu, .wanted = wanted_bytes };
}

int arena_take(struct gpu_span *out, struct arena *a, uint64_t bytes, struct err *err)
{
    uint64_t size = padded(bytes);
    struct gpu_buffer *last = a->n_blocks ? a->blocks[a->n_blocks - 1] : NULL;
    if (!last || last->bytes - a->used < size) {
        uint64_t block = a->wanted < BLOCK_BYTES ? a->wanted : BLOCK_BYTES;
        block = block > size ? block : size;
        last = mem_zalloc(sizeof *last);
        last->bytes = block;
        if (a->gpu &&
            gpu_buffer_open(last, a->gpu, block, GPU_DEVICE, "weights", err) < 0) {
            free(last);
            return -1;
        }
        a->blocks = mem_regrow(a->blocks, a->n_blocks + 1, sizeof(void *));
        a->blocks[a->n_blocks++] = last;
        a->used = 0;
    }
    *out = gpu_span_at(last, a->used, bytes);
    a->used += size;
    a->wanted -= size < a->wanted ? size : a->wanted;
    return 0;
}

uint64_t arena_bytes(const struct arena *a)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < a->n_blocks; i++)
        bytes += a->blocks[i]->bytes;
    return bytes;
}

void arena_release(struct arena *a)
{
    for (uint32_t i = 0; i < a->n_blocks; i++) {
        if (a->gpu)
            gpu_buffer_close(a->blocks[i], a->gpu);
        free(a->blocks[i]);
    }
    free(a->blocks);
    *a = (struct arena){ 0 };
}
