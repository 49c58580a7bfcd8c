/* pack.h - weights as the device wants them: codes in 16-byte units, scales in
 * a plane of their own (shaders/format*.glsl read what this writes). Exact:
 * each value is that of the file.
 *
 *   bits a weight   codes          scales
 *   F32  F16  BF16  the values     none
 *   Q8_0    8.5     8              f16 for 32
 *   Q4_0    4.5     4              f16 for 32
 *   Q4_1    5       4              two f16 for 32
 *   Q5_0    5.5     4 + 1          f16 for 32
 *   Q5_1    6       4 + 1          two f16 for 32
 *   Q2_0    2.25    2              f16 for 64
 *   PQ2_0   2.125   2              f16 for 128; PTQ1_0 (1.75) becomes this
 *   TQ2_0   2.0625  2              f16 for 256; TQ1_0 (1.6875) becomes this
 *   Q1_0    1.125   1              f16 for 128
 *   IQ4_NL  4.5     4 x 1          f16 for 32
 *   IQ4_XS  4.25    4 x 1          8 bytes for 256
 *   MXFP4   4.25    4 x 1          a byte for 32
 *   NVFP4   4.5     4 x 1          a byte for 16, and the row's factor in f32
 *   Q2_K    2.625   2              20 bytes for 256
 *   Q3_K    3.5     2 + 1          16 bytes for 256 (14 in the file)
 *   Q4_K    4.5     4              16 bytes for 256
 *   Q5_K    5.5     4 + 1          16 bytes for 256
 *   Q6_K    6.625   4 + 2          20 bytes for 256 (18 in the file)
 *
 * Rows have cols % 32 == 0, and whole blocks. */
#ifndef ENGINE_PACK_H
#define ENGINE_PACK_H

#include "engine/gguf.h"
#include "engine/gpu.h"
#include "engine/kernel.h"

/* A matrix on the device. */
struct matrix {
    enum device_format format;
    uint32_t rows, cols;
    uint32_t units;              /* a row's 16-byte code units, high bits apart */
    struct gpu_span codes, scales;
    bool rotated;                /* its input is to be rotated (rotation.h), */
    struct gpu_span signs;       /* with these: f32[cols] */
};

/* Which rows of a tensor: of each `stride` rows the `run` rows from `start` on;
 * with run 0 all of them. Rows of several matrices count on. */
struct pack_rows {
    uint32_t start, run, stride;
};

/* Where a matrix comes from: the parts' rows one after the other, or, with
 * interleave, 32 rows of each of two equal parts in turn. The parts have the
 * same width. Parts of one device format keep it; a mixture becomes F16. */
struct pack_source {
    const struct tensor *parts[4];
    struct pack_rows rows[4]; /* of the parts */
    uint32_t n_parts;
    bool interleave;
    bool exact;               /* F32, whatever the parts are */
};

/* Device memory for weights: few large buffers, handed out piece by piece. */
struct arena {
    struct gpu *gpu;
    struct gpu_buffer **blocks; /* spans point at them: never moved */
    uint32_t n_blocks;
    uint64_t used;      /* of the last block */
    uint64_t wanted;    /* bytes that are still expected to be taken */
};

enum device_format pack_format(const struct pack_source *s);
uint32_t pack_units(enum device_format f, uint32_t cols);
/* Bytes of one row's codes and scales. */
size_t pack_code_bytes(enum device_format f, uint32_t cols);
size_t pack_scale_bytes(enum device_format f, uint32_t cols);
/* A row as it lies in the file; factor multiplies the values, 1 but for NVFP4. */
struct pack_row_source {
    enum quant type;
    const uint8_t *data;
    float factor;
};
/* The factor of a row, counted over all matrices of a tensor. */
float pack_factor(const struct tensor *t, uint64_t row);
/* One row of cols elements into its two planes. */
void pack_row(enum device_format f, const struct pack_row_source *row, uint32_t cols,
              uint8_t *codes, uint8_t *scales);

/* Bytes that a matrix takes from an arena, padding included; and of its two
 * planes, without. */
uint64_t pack_matrix_bytes(const struct pack_source *s);
void pack_plane_bytes(const struct pack_source *s, uint64_t *codes, uint64_t *scales);
/* Fails, with the numbers, if no kernel of the device could be bound to it. */
int pack_matrix_check(const struct pack_source *s, const struct gpu *gpu, struct err *err);
/* Repacks on the host, a few MiB at a time, and uploads. */
int pack_matrix(struct matrix *out, struct arena *a, const struct pack_source *s,
                struct err *err);
/* A small tensor of any float type as f32. */
int pack_vector(struct gpu_span *out, struct arena *a, const struct tensor *t,
                struct err *err);

/* gpu NULL: spans are handed out of memory that does not exist, to count it. */
void arena_init(struct arena *a, struct gpu *gpu, uint64_t wanted_bytes);
uint64_t arena_bytes(const struct arena *a); /* of all its blocks */
int arena_take(struct gpu_span *out, struct arena *a, uint64_t bytes, struct err *err);
void arena_release(struct arena *a);

#endif
