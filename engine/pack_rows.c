/* pack_rows.c - rows of weights as the device wants them. A row goes block by
 * block: its format's function spreads the codes to one a byte and rewrites the
 * scales; the codes are then gathered into fields. Scales keep the precision
 * of the file. */
#include "engine/pack.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { SUPER = 256 }; /* elements of the largest block */

/* How a format's rows look on the device. low_bits 0: floats, as in the file */
static const struct layout {
    uint8_t low_bits, high_bits; /* of a code; 16 bytes of low bits are a unit */
    uint8_t float_bytes;
    uint16_t scale_elements, scale_bytes; /* bytes for so many elements */
} layouts[FORMAT_COUNT] = {
    [FORMAT_F32] = { .float_bytes = 4 },
    [FORMAT_F16] = { .float_bytes = 2 },
    [FORMAT_BF16] = { .float_bytes = 2 },
    [FORMAT_Q8_0] = { 8, 0, 0, 32, 2 },
    [FORMAT_Q4_0] = { 4, 0, 0, 32, 2 },
    [FORMAT_Q4_1] = { 4, 0, 0, 32, 4 },
    [FORMAT_Q5_0] = { 4, 1, 0, 32, 2 },
    [FORMAT_Q5_1] = { 4, 1, 0, 32, 4 },
    [FORMAT_Q2_0] = { 2, 0, 0, 64, 2 },
    [FORMAT_PQ2_0] = { 2, 0, 0, 128, 2 },
    [FORMAT_TQ2_0] = { 2, 0, 0, 256, 2 },
    [FORMAT_Q1_0] = { 1, 0, 0, 128, 2 },
    [FORMAT_IQ4_NL] = { 4, 0, 0, 32, 2 },
    [FORMAT_IQ4_XS] = { 4, 0, 0, 256, 8 },
    [FORMAT_MXFP4] = { 4, 0, 0, 32, 1 },
    [FORMAT_NVFP4] = { 4, 0, 0, 64, 4 },
    [FORMAT_Q2_K] = { 2, 0, 0, 256, 20 },
    [FORMAT_Q3_K] = { 2, 1, 0, 256, 16 },
    [FORMAT_Q4_K] = { 4, 0, 0, 256, 16 },
    [FORMAT_Q5_K] = { 4, 1, 0, 256, 16 },
    [FORMAT_Q6_K] = { 4, 2, 0, 256, 20 },
};

/* ---- blocks: codes to bytes q, scales to s ------------------------------ */

/* n low nibbles, then n high ones. */
static void nibbles(const uint8_t *qs, uint8_t *q, int n)
{
    for (int i = 0; i < n; i++)
        q[i] = qs[i] & 15;
    for (int i = 0; i < n; i++)
        q[n + i] = qs[i] >> 4;
}

/* Adds bit e of 32 to code e, as bit 4. */
static void fifth_bits(const uint8_t *high, uint8_t *q)
{
    for (int e = 0; e < 32; e++)
        q[e] |= (uint8_t)((high[e >> 3] >> (e & 7) & 1) << 4);
}

static void block_q8_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 2);
    memcpy(q, b + 2, 32);
}

/* Q4_0 and IQ4_NL: the codes differ in what they stand for. */
static void block_q4_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 2);
    nibbles(b + 2, q, 16);
}

static void block_q4_1(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 4);
    nibbles(b + 4, q, 16);
}

static void block_q5_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 2);
    nibbles(b + 6, q, 16);
    fifth_bits(b + 2, q);
}

static void block_q5_1(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 4);
    nibbles(b + 8, q, 16);
    fifth_bits(b + 4, q);
}

static void two_bits(const uint8_t *qs, uint8_t *q, int n)
{
    for (int i = 0; i < n / 4; i++)
        for (int k = 0; k < 4; k++)
            q[4 * i + k] = qs[i] >> 2 * k & 3;
}

static void block_q2_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 2);
    two_bits(b + 2, q, 64);
}

static void block_pq2_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 2);
    two_bits(b + 2, q, 128);
}

static void block_q1_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 2);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 8; k++)
            q[8 * i + k] = b[2 + i] >> k & 1;
}

/* Digits 0 to count-1 of n bytes that hold fractions in base 3: all first
 * digits, then all second ones. Returns the codes' end. */
static uint8_t *base3(const uint8_t *bytes, int n, int count, uint8_t *q)
{
    static const uint8_t power[5] = { 1, 3, 9, 27, 81 };
    for (int d = 0; d < count; d++)
        for (int i = 0; i < n; i++)
            *q++ = (uint8_t)(3 * (uint8_t)(bytes[i] * power[d]) >> 8);
    return q;
}

static void block_ptq1_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b + 26, 2);
    base3(b + 24, 2, 4, base3(b + 16, 8, 5, base3(b, 16, 5, q)));
}

static void block_tq1_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b + 52, 2);
    base3(b + 48, 4, 4, base3(b + 32, 16, 5, base3(b, 32, 5, q)));
}

/* Four fields of two bits in each of 32 bytes: 128 codes. */
static void fields_of_32(const uint8_t *qs, uint8_t *q)
{
    for (int f = 0; f < 4; f++)
        for (int i = 0; i < 32; i++)
            q[32 * f + i] = qs[i] >> 2 * f & 3;
}

static void block_tq2_0(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b + 64, 2);
    fields_of_32(b, q);
    fields_of_32(b + 32, q + 128);
}

static void block_iq4_xs(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 8);
    for (int g = 0; g < 8; g++)
        nibbles(b + 8 + 16 * g, q + 32 * g, 16);
}

static void block_mxfp4(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    *s = b[0];
    nibbles(b + 1, q, 16);
}

static void block_nvfp4(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b, 4);
    for (int g = 0; g < 4; g++)
        nibbles(b + 4 + 8 * g, q + 16 * g, 8);
}

static void block_q2_k(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b + 80, 4);
    memcpy(s + 4, b, 16);
    fields_of_32(b + 16, q);
    fields_of_32(b + 48, q + 128);
}

/* Scales: 4 low bits in bytes 0 to 7, 2 high ones in bytes 8 to 11. */
static void block_q3_k(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    const uint8_t *sc = b + 96;
    uint32_t words[4] = { (uint32_t)b[108] << 24, (uint32_t)b[109] << 24, 0, 0 };
    for (int i = 0; i < 16; i++) {
        uint32_t low = i < 8 ? sc[i] & 15 : sc[i - 8] >> 4;
        uint32_t high = sc[8 + (i & 3)] >> 2 * (i >> 2) & 3;
        words[i >> 2] |= (low | high << 4) << 6 * (i & 3);
    }
    memcpy(s, words, 16);
    fields_of_32(b + 32, q);
    fields_of_32(b + 64, q + 128);
    for (int g = 0; g < 8; g++)
        for (int i = 0; i < 32; i++)
            q[32 * g + i] |= (uint8_t)((b[i] >> g & 1) << 2);
}

/* Scales and minima of 6 bits: the file has those of groups 0 to 3 in bytes 0
 * to 7; of groups 4 to 7 the low bits in bytes 8 to 11, the high ones on top
 * of the others. */
static void scales_q4_k(const uint8_t *b, uint8_t *s)
{
    const uint8_t *f = b + 4;
    memcpy(s, b, 4);
    memset(s + 12, 0, 4);
    for (int g = 0; g < 8; g++) {
        uint8_t low = g < 4 ? (uint8_t)((f[g] & 15) | f[g + 4] << 4) : f[g + 4];
        int scale = g < 4 ? f[g] >> 4 & 3 : f[g - 4] >> 6;
        int minimum = g < 4 ? f[g + 4] >> 4 & 3 : f[g] >> 6;
        s[4 + g] = low;
        s[12 + g / 2] |= (uint8_t)((scale | minimum << 2) << 4 * (g & 1));
    }
}

static void block_q4_k(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    scales_q4_k(b, s);
    for (int g = 0; g < 4; g++)
        nibbles(b + 16 + 32 * g, q + 64 * g, 32);
}

static void block_q5_k(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    scales_q4_k(b, s);
    for (int g = 0; g < 4; g++)
        nibbles(b + 48 + 32 * g, q + 64 * g, 32);
    for (int g = 0; g < 8; g++)
        for (int i = 0; i < 32; i++)
            q[32 * g + i] |= (uint8_t)((b[16 + i] >> g & 1) << 4);
}

static void block_q6_k(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b + 208, 2);
    memset(s + 2, 0, 2);
    memcpy(s + 4, b + 192, 16);
    for (int half = 0; half < 2; half++, q += 128) {
        nibbles(b + 64 * half, q, 64);
        for (int k = 0; k < 4; k++)
            for (int i = 0; i < 32; i++)
                q[32 * k + i] |=
                    (uint8_t)((b[128 + 32 * half + i] >> 2 * k & 3) << 4);
    }
}

/* ---- rows --------------------------------------------------------------- */

/* The device format of each file format; base-3 digits become 2-bit codes. */
static const struct source {
    enum device_format format;
    void (*block)(const uint8_t *b, uint8_t *q, uint8_t *s); /* NULL: floats */
} sources[QUANT_COUNT] = {
    [QUANT_F32] = { FORMAT_F32, NULL },
    [QUANT_F16] = { FORMAT_F16, NULL },
    [QUANT_BF16] = { FORMAT_BF16, NULL },
    [QUANT_Q8_0] = { FORMAT_Q8_0, block_q8_0 },
    [QUANT_Q4_0] = { FORMAT_Q4_0, block_q4_0 },
    [QUANT_Q4_1] = { FORMAT_Q4_1, block_q4_1 },
    [QUANT_Q5_0] = { FORMAT_Q5_0, block_q5_0 },
    [QUANT_Q5_1] = { FORMAT_Q5_1, block_q5_1 },
    [QUANT_Q2_0] = { FORMAT_Q2_0, block_q2_0 },
    [QUANT_PQ2_0] = { FORMAT_PQ2_0, block_pq2_0 },
    [QUANT_PTQ1_0] = { FORMAT_PQ2_0, block_ptq1_0 },
    [QUANT_Q1_0] = { FORMAT_Q1_0, block_q1_0 },
    [QUANT_IQ4_NL] = { FORMAT_IQ4_NL, block_q4_0 },
    [QUANT_IQ4_XS] = { FORMAT_IQ4_XS, block_iq4_xs },
    [QUANT_MXFP4] = { FORMAT_MXFP4, block_mxfp4 },
    [QUANT_NVFP4] = { FORMAT_NVFP4, block_nvfp4 },
    [QUANT_Q2_K] = { FORMAT_Q2_K, block_q2_k },
    [QUANT_Q3_K] = { FORMAT_Q3_K, block_q3_k },
    [QUANT_Q4_K] = { FORMAT_Q4_K, block_q4_k },
    [QUANT_Q5_K] = { FORMAT_Q5_K, block_q5_k },
    [QUANT_Q6_K] = { FORMAT_Q6_K, block_q6_k },
    [QUANT_TQ1_0] = { FORMAT_TQ2_0, block_tq1_0 },
    [QUANT_TQ2_0] = { FORMAT_TQ2_0, block_tq2_0 },
};

enum device_format pack_format(const struct pack_source *s)
{
    enum device_format f = sources[s->parts[0]->type].format;
    if (s->exact)
        return FORMAT_F32;
    for (uint32_t i = 1; i < s->n_parts; i++)
        if (sources[s->parts[i]->type].format != f)
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
    return ((size_t)cols / l->scale_elements * l->scale_bytes + 3) / 4 * 4;
}

/* Gathers bits [shift, shift + bits) of n codes: element 4j+i of a word's goes
 * to bit 8i + bits*j. */
static void gather(const uint8_t *q, uint32_t n, uint32_t shift, uint32_t bits,
                   uint8_t *out)
{
    const uint32_t mask = ((1u << bits) - 1) * 0x01010101u;
    for (uint32_t e = 0; e < n; out += 4) {
        uint32_t word = 0;
        for (uint32_t at = 0; at < 8; at += bits, e += 4) {
            uint32_t quad;
            memcpy(&quad, q + e, 4);
            word |= (quad >> shift & mask) << at;
        }
        memcpy(out, &word, 4);
    }
}

static void pack_codes(enum device_format f, enum quant type, const uint8_t *row,
                       uint32_t cols, uint8_t *codes, uint8_t *scales)
{
    const struct layout *l = &layouts[f];
    const struct quant_format *q = quant_format(type);
    uint8_t *high = codes + (size_t)pack_units(f, cols) * 16;
    for (uint32_t e = 0; e < cols; e += q->elements, row += q->bytes) {
        uint8_t spread[SUPER];
        sources[type].block(row, spread,
                            scales + (size_t)e / l->scale_elements * l->scale_bytes);
        gather(spread, q->elements, 0, l->low_bits, codes + (size_t)e * l->low_bits / 8);
        if (l->high_bits)
            gather(spread, q->elements, l->low_bits, l->high_bits,
                   high + (size_t)e * l->high_bits / 8);
    }
}

static void convert_to_f16(enum quant type, const uint8_t *row, uint32_t cols,
                           uint8_t *codes)
{
    float *values = mem_array(cols, sizeof *values);
    quant_dequantize(type, row, cols, values);
    for (uint32_t i = 0; i < cols; i++) {
        uint16_t h = quant_f32_to_f16(values[i]);
        memcpy(codes + 2 * (size_t)i, &h, 2);
    }
    free(values);
}

void pack_row(enum device_format f, enum quant type, const uint8_t *row, uint32_t cols,
              uint8_t *codes, uint8_t *scales)
{
    size_t code_bytes = pack_code_bytes(f, cols), scale_bytes = pack_scale_bytes(f, cols);
    if (f == FORMAT_F32) {
        quant_dequantize(type, row, cols, (float *)(void *)codes);
    } else if (sources[type].format != f) {
        convert_to_f16(type, row, cols, codes);
    } else if (!layouts[f].low_bits) {
        memcpy(codes, row, code_bytes);
    } else {
        /* What pads the planes. */
        memset(codes + code_bytes - 16, 0, 16);
        memset(scales + scale_bytes - 4, 0, 4);
        pack_codes(f, type, row, cols, codes, scales);
    }
}
