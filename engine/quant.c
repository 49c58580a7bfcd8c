/* quant.c - the table of block formats and a plain decoder for each, written
 * for clarity: these are the reference for the kernels, not a fast path.
 * All fields are little-endian and only byte-aligned. */
#include "engine/quant.h"

#include <assert.h>
#include <string.h>

static const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                       1, 13, 25, 38, 53, 69, 89, 113 };
/* E2M1 numbers times two. */
static const int8_t fp4_values[16] = { 0, 1, 2, 3, 4, 6, 8, 12,
                                       0, -1, -2, -3, -4, -6, -8, -12 };

static uint32_t load_u16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t load_u32(const uint8_t *p)
{
    return load_u16(p) | load_u16(p + 2) << 16;
}

static float bits_f32(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float load_f16(const uint8_t *p)
{
    return quant_f16_to_f32((uint16_t)load_u16(p));
}

float quant_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31)
        return bits_f32(sign | 0x7f800000 | mantissa << 13);
    if (exponent)
        return bits_f32(sign | (exponent + 112) << 23 | mantissa << 13);
    float f = (float)mantissa * 0x1p-24f; /* exact: a normal float */
    return sign ? -f : f;
}

/* x / 2^shift, rounded to nearest, ties to even; shift is 1 to 31. */
static uint32_t shift_round(uint32_t x, uint32_t shift)
{
    uint32_t kept = x >> shift, rest = x & ((1u << shift) - 1);
    uint32_t half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

uint16_t quant_f32_to_f16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t exponent = bits >> 23 & 255, mantissa = bits & 0x7fffff;
    if (exponent == 255)
        return (uint16_t)(sign | 0x7c00 | (mantissa ? 0x200 | mantissa >> 13 : 0));
    if (exponent > 142) /* 2^16 and more */
        return (uint16_t)(sign | 0x7c00);
    if (exponent > 112) { /* a carry out of the mantissa raises the exponent */
        uint32_t h = (exponent - 112) << 10;
        return (uint16_t)(sign | (h + shift_round(mantissa, 13)));
    }
    if (exponent < 102) /* below half of the smallest subnormal */
        return (uint16_t)sign;
    return (uint16_t)(sign | shift_round(mantissa | 0x800000, 126 - exponent));
}

/* ---- one value a block ------------------------------------------------- */

static void block_f32(const uint8_t *b, float *dst)
{
    *dst = bits_f32(load_u32(b));
}

static void block_f16(const uint8_t *b, float *dst)
{
    *dst = load_f16(b);
}

static void block_bf16(const uint8_t *b, float *dst)
{
    *dst = bits_f32(load_u16(b) << 16);
}

/* ---- blocks of 32: low nibbles are elements 0-15, high ones 16-31 ------- */

static int nibble(const uint8_t *qs, int e)
{
    return e < 16 ? qs[e] & 15 : qs[e - 16] >> 4;
}

static void block_q4_0(const uint8_t *b, float *dst)
{
    float d = load_f16(b);
    for (int e = 0; e < 32; e++)
        dst[e] = d * (float)(nibble(b + 2, e) - 8);
}

static void block_q4_1(const uint8_t *b, float *dst)
{
    float d = load_f16(b), m = load_f16(b + 2);
    for (int e = 0; e < 32; e++)
        dst[e] = d * (float)nibble(b + 4, e) + m;
}

static int five_bits(const uint8_t *qs, uint32_t high, int e)
{
    return nibble(qs, e) | (int)(high >> e & 1) << 4;
}

static void block_q5_0(const uint8_t *b, float *dst)
{
    float d = load_f16(b);
    uint32_t high = load_u32(b + 2);
    for (int e = 0; e < 32; e++)
        dst[e] = d * (float)(five_bits(b + 6, high, e) - 16);
}

static void block_q5_1(const uint8_t *b, float *dst)
{
    float d = load_f16(b), m = load_f16(b + 2);
    uint32_t high = load_u32(b + 4);
    for (int e = 0; e < 32; e++)
        dst[e] = d * (float)five_bits(b + 8, high, e) + m;
}

static void block_q8_0(const uint8_t *b, float *dst)
{
    float d = load_f16(b);
    for (int e = 0; e < 32; e++)
        dst[e] = d * (float)(int8_t)b[2 + e];
}

static void block_iq4_nl(const uint8_t *b, float *dst)
{
    float d = load_f16(b);
    for (int e = 0; e < 32; e++)
        dst[e] = d * (float)iq4_values[nibble(b + 2, e)];
}

static void block_mxfp4(const uint8_t *b, float *dst)
{
    /* 2^(b[0] - 128); the two smallest are subnormal floats. */
    float d = bits_f32(b[0] < 2 ? 0x00200000u << b[0] : (uint32_t)(b[0] - 1) << 23);
    for (int e = 0; e < 32; e++)
        dst[e] = d * (float)fp4_values[nibble(b + 1, e)];
}

/* An unsigned E4M3 number, halved because fp4_values are doubled. */
static float nvfp4_scale(uint8_t x)
{
    if (x == 0 || x == 0x7f)
        return 0;
    uint32_t exponent = x >> 3 & 15, mantissa = x & 7;
    if (exponent == 0)
        return (float)mantissa * 0x1p-10f;
    return bits_f32((exponent + 119) << 23 | mantissa << 20);
}

static void block_nvfp4(const uint8_t *b, float *dst)
{
    for (int e = 0; e < 64; e++) {
        int s = e >> 4, j = e & 15;
        uint8_t q = b[4 + 8 * s + (j & 7)];
        dst[e] = nvfp4_scale(b[s]) * (float)fp4_values[j < 8 ? q & 15 : q >> 4];
    }
}

/* ---- one and two bits, and base-3 digits -------------------------------- */

static void block_q1_0(const uint8_t *b, float *dst)
{
    float d = load_f16(b);
    for (int e = 0; e < 128; e++)
        dst[e] = b[2 + (e >> 3)] >> (e & 7) & 1 ? d : -d;
}

static void two_bits(const uint8_t *b, int n, float *dst)
{
    float d = load_f16(b);
    for (int e = 0; e < n; e++)
        dst[e] = d * (float)((b[2 + (e >> 2)] >> 2 * (e & 3) & 3) - 1);
}

static void block_q2_0(const uint8_t *b, float *dst)
{
    two_bits(b, 64, dst);
}

static void block_pq2_0(const uint8_t *b, float *dst)
{
    two_bits(b, 128, dst);
}

/* Digit n (0: most significant) of a byte that holds a fraction in base 3. */
static int base3_digit(uint8_t byte, int n)
{
    static const uint8_t power[5] = { 1, 3, 9, 27, 81 };
    uint8_t rest = (uint8_t)(byte * power[n]);
    return 3 * rest >> 8;
}

static void block_ptq1_0(const uint8_t *b, float *dst)
{
    float d = load_f16(b + 26);
    for (int e = 0; e < 128; e++) {
        int digit;
        if (e < 80)
            digit = base3_digit(b[e & 15], e >> 4);
        else if (e < 120)
            digit = base3_digit(b[16 + ((e - 80) & 7)], (e - 80) >> 3);
        else
            digit = base3_digit(b[24 + ((e - 120) & 1)], (e - 120) >> 1);
        dst[e] = d * (float)(digit - 1);
    }
}

static void block_tq1_0(const uint8_t *b, float *dst)
{
    float d = load_f16(b + 52);
    for (int e = 0; e < 256; e++) {
        int digit;
        if (e < 160)
            digit = base3_digit(b[e & 31], e >> 5);
        else if (e < 240)
            digit = base3_digit(b[32 + ((e - 160) & 15)], (e - 160) >> 4);
        else
            digit = base3_digit(b[48 + ((e - 240) & 3)], (e - 240) >> 2);
        dst[e] = d * (float)(digit - 1);
    }
}

static void block_tq2_0(const uint8_t *b, float *dst)
{
    float d = load_f16(b + 64);
    for (int e = 0; e < 256; e++) {
        uint8_t q = b[32 * (e >> 7) + (e & 31)];
        dst[e] = d * (float)((q >> 2 * (e >> 5 & 3) & 3) - 1);
    }
}

/* ---- blocks of 256 with scales for groups of 16 or 32 ------------------- */

static void block_q2_k(const uint8_t *b, float *dst)
{
    float d = load_f16(b + 80), dmin = load_f16(b + 82);
    for (int e = 0; e < 256; e++) {
        int q = b[16 + 32 * (e >> 7) + (e & 31)] >> 2 * (e >> 5 & 3) & 3;
        uint8_t scale = b[e >> 4];
        dst[e] = d * (float)(scale & 15) * (float)q - dmin * (float)(scale >> 4);
    }
}

/* 6-bit scale i of 16: 4 low bits in bytes 0-7, 2 high bits in bytes 8-11. */
static int q3_scale(const uint8_t *scales, int i)
{
    int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4;
    int high = scales[8 + (i & 3)] >> 2 * (i >> 2) & 3;
    return (low | high << 4) - 32;
}

static void block_q3_k(const uint8_t *b, float *dst)
{
    float d = load_f16(b + 108);
    for (int e = 0; e < 256; e++) {
        int half = e >> 7, s = e >> 5 & 3, l = e & 31;
        int q = b[32 + 32 * half + l] >> 2 * s & 3;
        bool high = b[l] >> (4 * half + s) & 1;
        dst[e] = d * (float)q3_scale(b + 96, e >> 4) * (float)(q - (high ? 0 : 4));
    }
}

/* Scale and minimum of group g of 8, six bits each, packed in 12 bytes. */
static void q4_scale(const uint8_t *s, int g, int *scale, int *min)
{
    if (g < 4) {
        *scale = s[g] & 63;
        *min = s[g + 4] & 63;
    } else {
        *scale = (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
        *min = s[g + 4] >> 4 | s[g] >> 6 << 4;
    }
}

/* high: 32 bytes with bit g for group g, or NULL. */
static void q4_groups(const uint8_t *b, const uint8_t *high, const uint8_t *qs,
                      float *dst)
{
    float d = load_f16(b), dmin = load_f16(b + 2);
    for (int e = 0; e < 256; e++) {
        int g = e >> 5, l = e & 31, scale, min;
        q4_scale(b + 4, g, &scale, &min);
        int q = qs[32 * (g >> 1) + l] >> 4 * (g & 1) & 15;
        if (high)
            q |= (high[l] >> g & 1) << 4;
        dst[e] = d * (float)scale * (float)q - dmin * (float)min;
    }
}

static void block_q4_k(const uint8_t *b, float *dst)
{
    q4_groups(b, NULL, b + 16, dst);
}

static void block_q5_k(const uint8_t *b, float *dst)
{
    q4_groups(b, b + 16, b + 48, dst);
}

static void block_q6_k(const uint8_t *b, float *dst)
{
    float d = load_f16(b + 208);
    for (int e = 0; e < 256; e++) {
        int half = e >> 7, k = e >> 5 & 3, l = e & 31;
        int low = b[64 * half + 32 * (k & 1) + l] >> 4 * (k >> 1) & 15;
        int high = b[128 + 32 * half + l] >> 2 * k & 3;
        float scale = d * (float)(int8_t)b[192 + (e >> 4)];
        dst[e] = scale * (float)((low | high << 4) - 32);
    }
}

static void block_iq4_xs(const uint8_t *b, float *dst)
{
    float d = load_f16(b);
    uint32_t scales_h = load_u16(b + 2);
    for (int e = 0; e < 256; e++) {
        int g = e >> 5;
        int low = b[4 + (g >> 1)] >> 4 * (g & 1) & 15;
        int scale = (low | (int)(scales_h >> 2 * g & 3) << 4) - 32;
        dst[e] = d * (float)scale * (float)iq4_values[nibble(b + 8 + 16 * g, e & 31)];
    }
}

/* ---- table -------------------------------------------------------------- */

#define QUANT_ROW(name, id, elements, bytes, decode, runs)                     \
    [QUANT_##name] = { #name, decode, id, elements, bytes, runs },
static const struct quant_format formats[QUANT_COUNT] = { QUANTS(QUANT_ROW) };
#undef QUANT_ROW

const struct quant_format *quant_format(enum quant q)
{
    assert((unsigned)q < QUANT_COUNT);
    return &formats[q];
}

int quant_from_ggml(uint32_t file_id)
{
    for (int q = 0; q < QUANT_COUNT; q++)
        if (formats[q].file_id == file_id)
            return q;
    return -1;
}

size_t quant_bytes(enum quant q, size_t n)
{
    const struct quant_format *f = quant_format(q);
    assert(n % f->elements == 0);
    return n / f->elements * f->bytes;
}

void quant_dequantize(enum quant q, const void *src, size_t n, float *dst)
{
    const struct quant_format *f = quant_format(q);
    assert(f->decode && n % f->elements == 0);
    const uint8_t *block = src;
    for (size_t e = 0; e < n; e += f->elements, block += f->bytes)
        f->decode(block, dst + e);
}
