/* pack_rows.c - rows of weights as the device wants them. A row goes block by
 * block: its format's function spreads the codes to one a byte and rewrites the
 * scales; the codes are then gathered into fields. Scales keep the precision
 * of the file. */
#include "engine/pack.h"

#include "base/mem.h"
#include "engine/pack_block.h"

#include <stdlib.h>
#include <string.h>

/* How a format's rows look on the device. low_bits 0: floats, as in the file */
static const struct layout {
    uint16_t scale_elements, scale_bytes; /* bytes for so many elements */
    uint8_t low_bits, high_bits; /* of a code; 16 bytes of low bits are a unit */
    bool by_bits;                /* a unit is a word for each bit of its codes */
    uint8_t float_bytes;
    bool factor;                 /* behind a row's scales, in f32 */
} layouts[FORMAT_COUNT] = {
    [FORMAT_F32] = { .float_bytes = 4 },
    [FORMAT_F16] = { .float_bytes = 2 },
    [FORMAT_BF16] = { .float_bytes = 2 },
    [FORMAT_Q8_0] = { 32, 2, 8, 0, false, 0 },
    [FORMAT_Q4_0] = { 32, 2, 4, 0, false, 0 },
    [FORMAT_Q4_1] = { 32, 4, 4, 0, false, 0 },
    [FORMAT_Q5_0] = { 32, 2, 4, 1, false, 0 },
    [FORMAT_Q5_1] = { 32, 4, 4, 1, false, 0 },
    [FORMAT_Q2_0] = { 64, 2, 2, 0, false, 0 },
    [FORMAT_PQ2_0] = { 128, 2, 2, 0, false, 0 },
    [FORMAT_TQ2_0] = { 256, 2, 2, 0, false, 0 },
    [FORMAT_Q1_0] = { 128, 2, 1, 0, false, 0 },
    [FORMAT_IQ4_NL] = { 32, 2, 4, 0, true, 0 },
    [FORMAT_IQ4_XS] = { 256, 8, 4, 0, true, 0 },
    [FORMAT_MXFP4] = { 32, 1, 4, 0, true, 0 },
    [FORMAT_NVFP4] = { .scale_elements = 64, .scale_bytes = 4, .low_bits = 4,
                       .by_bits = true, .factor = true },
    [FORMAT_Q2_K] = { 256, 20, 2, 0, false, 0 },
    [FORMAT_Q3_K] = { 256, 16, 2, 1, false, 0 },
    [FORMAT_Q4_K] = { 256, 16, 4, 0, false, 0 },
    [FORMAT_Q5_K] = { 256, 16, 4, 1, false, 0 },
    [FORMAT_Q6_K] = { 256, 20, 4, 2, false, 0 },
};

enum device_format pack_format(const struct pack_source *s)
{
    enum device_format f = pack_blocks[s->parts[0]->type].format;
    if (s->exact)
        return FORMAT_F32;
    for (uint32_t i = 1; i < s->n_parts; i++)
        if (pack_blocks[s->parts[i]->type].format != f)
            return FORMAT_F16;
    return f;
}

static uint32_t unit_elements(enum device_format f)
{
    const struct layout *l = &layouts[f];
    return l->low_bits ? 128u / l->low_bits : 16u / l->float_bytes;
}

uint32_t pack_units(enum device_format f, uint32_t cols)
{
    return cols / unit_elements(f);
}

size_t pack_code_bytes(enum device_format f, uint32_t cols)
{
    size_t high = (size_t)cols * layouts[f].high_bits / 8;
    return (size_t)pack_units(f, cols) * 16 + (high + 15) / 16 * 16;
}

size_t pack_scale_bytes(enum device_format f, uint32_t cols)
{
    const struct layout *l = &layouts[f];
    if (!l->low_bits)
        return 0;
    size_t scales = ((size_t)cols / l->scale_elements * l->scale_bytes + 3) / 4 * 4;
    return scales + (l->factor ? sizeof(float) : 0);
}

/* Gathers bits [shift, shift + bits) of n codes: element 4j+i of a word's goes
 * to bit 8i + bits*j. */
static void gather(const uint8_t *q, uint32_t n, uint32_t shift, uint32_t bits,
                   uint8_t *out)
{
    const uint64_t mask = ((1u << bits) - 1) * 0x0101010101010101ull;
    for (uint32_t e = 0; e < n; out += 4) {
        uint32_t word = 0;
        for (uint32_t at = 0; at < 8; at += 2 * bits, e += 8) {
            uint64_t v;
            memcpy(&v, q + e, 8);
            v = v >> shift & mask;
            word |= (uint32_t)(v | v >> 32 << bits) << at;
        }
        memcpy(out, &word, 4);
    }
}

/* Units of 32 codes of 4 bits, bit after bit. */
static void gather_by_bits(const uint8_t *q, uint32_t n, uint8_t *out)
{
    for (uint32_t e = 0; e < n; e += 32)
        for (uint32_t bit = 0; bit < 4; bit++, out += 4)
            gather(q + e, 32, bit, 1, out);
}

static void pack_codes(enum device_format f, enum quant type, const uint8_t *row,
                       uint32_t cols, uint8_t *codes, uint8_t *scales)
{
    const struct layout *l = &layouts[f];
    const struct quant_format *q = quant_format(type);
    uint8_t *high = codes + (size_t)pack_units(f, cols) * 16;
    for (uint32_t e = 0; e < cols; e += q->elements, row += q->bytes) {
        uint8_t spread[PACK_BLOCK_MAX];
        uint8_t *s = scales + (size_t)e / l->scale_elements * l->scale_bytes;
        pack_blocks[type].spread(row, spread, s);
        uint8_t *low = codes + (size_t)e * l->low_bits / 8;
        if (l->low_bits == 8)
            memcpy(low, spread, q->elements);
        else if (l->by_bits)
            gather_by_bits(spread, q->elements, low);
        else
            gather(spread, q->elements, 0, l->low_bits, low);
        if (l->high_bits)
            gather(spread, q->elements, l->low_bits, l->high_bits,
                   high + (size_t)e * l->high_bits / 8);
    }
}

static void to_f32(const struct pack_row_source *row, uint32_t cols, float *values)
{
    quant_dequantize(row->type, row->data, cols, values);
    for (uint32_t i = 0; row->factor != 1 && i < cols; i++)
        values[i] *= row->factor;
}

static void to_f16(const struct pack_row_source *row, uint32_t cols, uint8_t *codes)
{
    float *values = mem_array(cols, sizeof *values);
    to_f32(row, cols, values);
    for (uint32_t i = 0; i < cols; i++) {
        uint16_t h = quant_f32_to_f16(values[i]);
        memcpy(codes + 2 * (size_t)i, &h, 2);
    }
    free(values);
}

void pack_row(enum device_format f, const struct pack_row_source *row, uint32_t cols,
              uint8_t *codes, uint8_t *scales)
{
    size_t code_bytes = pack_code_bytes(f, cols), scale_bytes = pack_scale_bytes(f, cols);
    if (f == FORMAT_F32 && row->type != QUANT_F32) {
        to_f32(row, cols, (float *)(void *)codes);
    } else if (pack_blocks[row->type].format != f) {
        to_f16(row, cols, codes);
    } else if (!layouts[f].low_bits) {
        memcpy(codes, row->data, code_bytes);
    } else {
        /* What pads the planes. */
        memset(codes + code_bytes - 16, 0, 16);
        memset(scales + scale_bytes - 4, 0, 4);
        pack_codes(f, row->type, row->data, cols, codes, scales);
        if (layouts[f].factor)
            memcpy(scales + scale_bytes - sizeof(float), &row->factor, sizeof(float));
    }
}
