/* test_pack.c - repacked weights: sizes on the device, and every value against
 * the decoder of the file format, bit for bit, by way of the embedding kernel. */
#include "engine/pack.h"
#include "tests/engine/blocks.h"
#include "tests/engine/harness.h"

#include <stdlib.h>

static uint32_t noise = 7;

static bool is_base3(enum quant q)
{
    return q == QUANT_PTQ1_0 || q == QUANT_TQ1_0;
}

static enum device_format format_of(enum quant q)
{
    struct tensor t = { .type = q, .ne = { 256, 1, 1, 1 } };
    return pack_format(&(struct pack_source){ .parts = { &t }, .n_parts = 1 });
}

/* ---- sizes --------------------------------------------------------------- */

/* Nothing but base 3 grows by more than 3 %. */
static void test_bits_a_weight(void)
{
    enum { COLS = 5120 };
    for (int q = 0; q < QUANT_COUNT; q++) {
        if (!quant_format((enum quant)q)->runs)
            continue;
        enum device_format f = format_of((enum quant)q);
        size_t file = quant_bytes((enum quant)q, COLS);
        size_t device = pack_code_bytes(f, COLS) + pack_scale_bytes(f, COLS);
        bool fits = is_base3((enum quant)q) ? device * 100 <= file * 125
                                            : device * 100 <= file * 103;
        if (!fits)
            printf("# %s: %zu bytes, %zu in the file\n",
                   quant_format((enum quant)q)->name, device, file);
        CHECK(fits);
    }
}

/* A row fills its two planes and writes nothing beside them. */
static void test_rows_fill_their_planes(void)
{
    for (int q = 0; q < QUANT_COUNT; q++) {
        const struct quant_format *file = quant_format((enum quant)q);
        if (!file->runs)
            continue;
        enum device_format f = format_of((enum quant)q);
        for (uint32_t cols = 32; cols <= 1280; cols += 32) {
            if (cols % file->elements)
                continue;
            size_t codes = pack_code_bytes(f, cols), scales = pack_scale_bytes(f, cols);
            uint8_t *row = blocks_random((enum quant)q, cols, 1, &noise);
            uint8_t *a = mem_alloc(codes + scales), *b = mem_alloc(codes + scales + 2);
            CHECK(codes % 16 == 0 && scales % 4 == 0);
            memset(a, 0x00, codes + scales);
            memset(b, 0xff, codes + scales + 2);
            struct pack_row_source from = { (enum quant)q, row, 1 };
            pack_row(f, &from, cols, a, a + codes);
            pack_row(f, &from, cols, b, b + codes + 1);
            CHECK(b[codes] == 0xff && b[codes + scales + 1] == 0xff);
            CHECK(!memcmp(a, b, codes) && !memcmp(a + codes, b + codes + 1, scales));
            free(row);
            free(a);
            free(b);
        }
    }
}

/* ---- values -------------------------------------------------------------- */

struct loaded {
    struct arena arena;
    struct matrix m;
};

static void load(struct loaded *l, struct gpu *gpu, const struct pack_source *s)
{
    struct err err = { "" };
    arena_init(&l->arena, gpu, pack_matrix_bytes(s));
    HARNESS_OK(pack_matrix(&l->m, &l->arena, s, &err), &err);
}

/* n rows of a matrix as the embedding kernel reads them. */
static void read_rows(struct gpu *gpu, const struct matrix *m, const uint32_t *ids,
                      size_t n, float *out)
{
    struct ctl_block ctl = { .n_tokens = (uint32_t)n, .n_vocab = m->rows };
    memcpy(ctl.tokens, ids, n * sizeof *ids);
    float *ones = mem_array(m->cols, 4);
    for (uint32_t i = 0; i < m->cols; i++)
        ones[i] = 1;
    size_t values = n * m->cols;
    struct gpu_buffer b[6] = { harness_buffer(gpu, &ctl, sizeof ctl),
                               harness_buffer(gpu, NULL, values * 4),
                               harness_buffer(gpu, NULL, values * 4),
                               harness_buffer(gpu, NULL, values / 4),
                               harness_buffer(gpu, NULL, values / 8),
                               harness_buffer(gpu, ones, m->cols * 4) };
    struct push_embed push = { .cols = m->cols, .units = m->units };
    harness_run(gpu, &(struct harness_job){
        .module = kernel_embed_module(m->format), .spec = { 64, 0 }, .n_spec = 2,
        .buffers = { [0] = &b[0], [3] = &b[1], [4] = &b[2], [5] = &b[3], [6] = &b[4],
                     [7] = &b[5] },
        .spans = { [1] = m->codes, [2] = m->scales }, .push = &push,
        .groups = { 1, (uint32_t)n, 1 } });
    harness_read(gpu, &b[1], out, values * 4);
    for (int i = 0; i < 6; i++)
        gpu_buffer_close(&b[i], gpu);
    free(ones);
}

/* Equal, but for the sign of zero. */
static void check_equal(const float *got, const float *want, size_t n, const char *what)
{
    size_t bad = 0, first = 0;
    for (size_t i = n; i-- > 0;)
        if (!(got[i] == want[i])) {
            bad++;
            first = i;
        }
    if (bad)
        printf("# %s: %zu of %zu differ, the first at %zu: got %.9g, want %.9g\n", what,
               bad, n, first, (double)got[first], (double)want[first]);
    CHECK(bad == 0);
}

/* A tensor of rows x cols, all rows read back. */
static void check_tensor(struct gpu *gpu, enum quant q, const uint8_t *data, size_t rows,
                         size_t cols)
{
    struct tensor t = tensor_of(q, data, rows, cols);
    struct pack_source s = { .parts = { &t }, .n_parts = 1 };
    struct loaded l;
    load(&l, gpu, &s);
    uint32_t ids[CTL_MAX_TOK];
    float *got = mem_array(rows * cols, 4), *want = mem_array(rows * cols, 4);
    REQUIRE(rows <= CTL_MAX_TOK);
    for (uint32_t i = 0; i < rows; i++)
        ids[i] = i;
    read_rows(gpu, &l.m, ids, rows, got);
    quant_dequantize(q, data, rows * cols, want);
    check_equal(got, want, rows * cols, quant_format(q)->name);
    arena_release(&l.arena);
    free(got);
    free(want);
}

/* Blocks whose byte i is 37 i + 11 mod 256, with scales of 0.5 and 0.25: their
 * decoded values are published (test_quant.c). */
static uint8_t *known_blocks(enum quant q, size_t n)
{
    const struct quant_format *f = quant_format(q);
    size_t bytes = quant_bytes(q, n);
    uint8_t *w = mem_alloc(bytes);
    int d_at, m_at;
    block_fields(q, &d_at, &m_at);
    for (size_t i = 0; i < bytes; i++)
        w[i] = (uint8_t)(37 * (i % f->bytes) + 11);
    for (size_t i = 0; i < bytes; i += f->bytes) {
        if (d_at >= 0)
            memcpy(w + i + d_at, &(uint16_t){ 0x3800 }, 2);
        if (m_at >= 0)
            memcpy(w + i + m_at, &(uint16_t){ 0x3400 }, 2);
        if (q == QUANT_MXFP4)
            w[i] = 128;
        if (q == QUANT_NVFP4)
            memcpy(w + i, (uint8_t[]){ 0x38, 0x40, 0x3c, 0x07 }, 4);
        if (q == QUANT_F32)
            memcpy(w + i, &(float){ (float)i - 3.25f }, 4);
    }
    return w;
}

/* Rows of known blocks, and of random ones with scales of several sizes. */
static void check_format(struct gpu *gpu, enum quant q)
{
    /* The last of these are no normal f16. */
    static const float scales[] = { 1, 3e4f, 1e-3f, 5e-5f, 6e-7f };
    enum { EACH = 3, N = sizeof scales / sizeof *scales };
    size_t block = quant_format(q)->elements < 32 ? 32 : quant_format(q)->elements;
    for (size_t blocks = 1; blocks <= 3; blocks += 2) {
        size_t cols = blocks * block, row_bytes = quant_bytes(q, cols);
        uint8_t *all = mem_alloc((1 + EACH * N) * row_bytes);
        uint8_t *known = known_blocks(q, cols);
        memcpy(all, known, row_bytes);
        free(known);
        for (size_t i = 0; i < N; i++) {
            uint8_t *w = blocks_random(q, EACH * cols, scales[i], &noise);
            memcpy(all + (1 + EACH * i) * row_bytes, w, EACH * row_bytes);
            free(w);
        }
        check_tensor(gpu, q, all, 1 + EACH * N, cols);
        free(all);
    }
}

static void test_values(void)
{
    struct gpu *gpu = harness_open();
    for (int q = 0; q < QUANT_COUNT; q++)
        if (quant_format((enum quant)q)->runs)
            check_format(gpu, (enum quant)q);
    harness_close(gpu);
}

/* Each scale byte of the formats whose scales are powers or small floats. */
static void test_byte_scales(void)
{
    struct gpu *gpu = harness_open();
    uint8_t mx[256 * 17], nv[64 * 36];
    for (size_t i = 0; i < sizeof mx; i++)
        mx[i] = (uint8_t)(i % 17 ? block_noise(&noise) : i / 17);
    for (size_t i = 0; i < sizeof nv; i++)
        nv[i] = (uint8_t)(i % 36 < 4 ? i / 36 * 4 + i % 36 : block_noise(&noise));
    /* 2^127 times 12 is more than a float holds. */
    check_tensor(gpu, QUANT_MXFP4, mx + 17 * 2, 1, 32 * 250);
    check_tensor(gpu, QUANT_NVFP4, nv, 2, 64 * 32);
    /* What is too small for a normal float may become zero. */
    struct tensor t = tensor_of(QUANT_MXFP4, mx, 1, 64);
    struct pack_source s = { .parts = { &t }, .n_parts = 1 };
    struct loaded l;
    float got[64], want[64];
    load(&l, gpu, &s);
    read_rows(gpu, &l.m, &(uint32_t){ 0 }, 1, got);
    quant_dequantize(QUANT_MXFP4, mx, 64, want);
    for (int i = 0; i < 64; i++)
        CHECK(got[i] == want[i] || (got[i] == 0 && fabsf(want[i]) < 1.3e-37f));
    arena_release(&l.arena);
    harness_close(gpu);
}

/* Two matrices of NVFP4, with a factor for each or one for both; on the device
 * as they are, or with another format as floats. */
static void check_factors(struct gpu *gpu, const float *factors, uint64_t n, bool exact)
{
    enum { ROWS = 3, COLS = 192, ALL = 2 * ROWS * COLS };
    uint8_t *w = blocks_random(QUANT_NVFP4, ALL, 1, &noise);
    struct tensor t = tensor_of(QUANT_NVFP4, w, ROWS, COLS);
    struct tensor f = tensor_of(QUANT_F32, (const uint8_t *)factors, 1, n);
    t.ne[2] = 2;
    t.n_elements = ALL;
    t.bytes = quant_bytes(QUANT_NVFP4, ALL);
    t.factor = &f;
    struct pack_source s = { .parts = { &t }, .n_parts = 1, .exact = exact };
    struct loaded l;
    float got[ALL], want[ALL];
    load(&l, gpu, &s);
    CHECK(l.m.format == (exact ? FORMAT_F32 : FORMAT_NVFP4) && l.m.rows == 2 * ROWS);
    read_rows(gpu, &l.m, (const uint32_t[]){ 0, 1, 2, 3, 4, 5 }, 2 * ROWS, got);
    quant_dequantize(QUANT_NVFP4, w, ALL, want);
    for (int i = 0; i < ALL; i++) {
        want[i] *= factors[n > 1 ? i / (ROWS * COLS) : 0];
        CHECK(fabsf(got[i] - want[i]) <= 2e-7f * fabsf(want[i]));
    }
    CHECK(fabsf(want[0]) + fabsf(want[1]) + fabsf(want[2]) > 0);
    arena_release(&l.arena);
    free(w);
}

static void test_factors(void)
{
    static const float two[] = { 0.37f, -1234.5f };
    struct gpu *gpu = harness_open();
    for (int exact = 0; exact < 2; exact++) {
        check_factors(gpu, two, 2, exact);
        check_factors(gpu, two, 1, exact);
    }
    harness_close(gpu);
}

/* A matrix that goes to the device in several pieces: its rows repeat with a
 * period that divides no piece. */
static void test_pieces(void)
{
    struct gpu *gpu = harness_open();
    enum { ROWS = 70001, COLS = 768, PERIOD = 997, N = CTL_MAX_TOK };
    size_t row_bytes = quant_bytes(QUANT_Q5_K, COLS);
    uint8_t *w = mem_alloc(ROWS * row_bytes);
    uint8_t *few = blocks_random(QUANT_Q5_K, (size_t)PERIOD * COLS, 1, &noise);
    for (size_t r = 0; r < ROWS; r++)
        memcpy(w + r * row_bytes, few + r % PERIOD * row_bytes, row_bytes);
    struct tensor t = tensor_of(QUANT_Q5_K, w, ROWS, COLS);
    struct pack_source s = { .parts = { &t }, .n_parts = 1 };
    struct loaded l;
    load(&l, gpu, &s);
    uint32_t ids[N];
    float *got = mem_array(N * COLS, 4), *want = mem_array(N * COLS, 4);
    for (uint32_t i = 0; i < N; i++) {
        ids[i] = i * ((ROWS - 1) / (N - 1)) + (i == N - 1 ? (ROWS - 1) % (N - 1) : 0);
        quant_dequantize(QUANT_Q5_K, w + ids[i] * row_bytes, COLS,
                         want + (size_t)i * COLS);
    }
    REQUIRE(ids[N - 1] == ROWS - 1);
    read_rows(gpu, &l.m, ids, N, got);
    check_equal(got, want, N * COLS, "pieces");
    arena_release(&l.arena);
    free(few);
    free(w);
    free(got);
    free(want);
    harness_close(gpu);
}

/* ---- matrices of several tensors ----------------------------------------- */

enum { PART_ROWS = 64, PART_COLS = 512 };

/* Two tensors in one matrix: what each row is, and the format. */
static void check_pair(struct gpu *gpu, enum quant a, enum quant b, bool interleave,
                       enum device_format want_format)
{
    enum { ROWS = 2 * PART_ROWS };
    enum quant types[2] = { a, b };
    uint8_t *data[2];
    struct tensor t[2];
    struct pack_source s = { .n_parts = 2, .interleave = interleave };
    for (int i = 0; i < 2; i++) {
        data[i] = blocks_random(types[i], PART_ROWS * PART_COLS, 0.125f, &noise);
        t[i] = tensor_of(types[i], data[i], PART_ROWS, PART_COLS);
        s.parts[i] = &t[i];
    }
    struct loaded l;
    load(&l, gpu, &s);
    CHECK(l.m.format == want_format && l.m.rows == ROWS && l.m.cols == PART_COLS);
    float *got = mem_array(ROWS * PART_COLS, 4), *want = mem_array(ROWS * PART_COLS, 4);
    uint32_t ids[ROWS];
    for (uint32_t r = 0; r < ROWS; r++) {
        int part = interleave ? r / 32 % 2 : r >= PART_ROWS;
        uint32_t row = interleave ? r / 64 * 32 + r % 32 : r % PART_ROWS;
        ids[r] = r;
        size_t at = row * quant_bytes(types[part], PART_COLS);
        quant_dequantize(types[part], data[part] + at, PART_COLS,
                         want + (size_t)r * PART_COLS);
        for (int i = 0; want_format == FORMAT_F16 && i < PART_COLS; i++) {
            float *v = &want[(size_t)r * PART_COLS + (size_t)i];
            *v = quant_f16_to_f32(quant_f32_to_f16(*v));
        }
    }
    read_rows(gpu, &l.m, ids, ROWS, got);
    check_equal(got, want, ROWS * PART_COLS, quant_format(a)->name);
    arena_release(&l.arena);
    for (int i = 0; i < 2; i++)
        free(data[i]);
    free(got);
    free(want);
}

static void test_pairs(void)
{
    struct gpu *gpu = harness_open();
    for (int interleave = 0; interleave < 2; interleave++) {
        check_pair(gpu, QUANT_Q4_K, QUANT_Q4_K, interleave, FORMAT_Q4_K);
        check_pair(gpu, QUANT_Q4_K, QUANT_Q6_K, interleave, FORMAT_F16);
        check_pair(gpu, QUANT_IQ4_XS, QUANT_F32, interleave, FORMAT_F16);
        check_pair(gpu, QUANT_Q4_0, QUANT_IQ4_NL, interleave, FORMAT_F16);
        /* Different in the file, the same on the device. */
        check_pair(gpu, QUANT_PTQ1_0, QUANT_PQ2_0, interleave, FORMAT_PQ2_0);
        check_pair(gpu, QUANT_TQ2_0, QUANT_TQ1_0, interleave, FORMAT_TQ2_0);
    }
    harness_close(gpu);
}

TEST_MAIN(T(test_bits_a_weight), T(test_rows_fill_their_planes), T(test_values),
          T(test_byte_scales), T(test_factors), T(test_pieces), T(test_pairs))
