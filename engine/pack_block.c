/* pack_block.c - blocks of each file format taken apart: codes to one a byte,
 * scales to the form of the device. Words are little-endian. */
#include "engine/pack_block.h"

#include <string.h>

/* ---- eight codes at a time ----------------------------------------------- */

#define BYTES 0x0101010101010101ull

static uint64_t get8(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void put8(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

/* n low nibbles, then n high ones. */
static void nibbles(const uint8_t *qs, uint8_t *q, int n)
{
    for (int i = 0; i < n; i += 8) {
        uint64_t v = get8(qs + i);
        put8(q + i, v & 15 * BYTES);
        put8(q + n + i, v >> 4 & 15 * BYTES);
    }
}

/* Eight bits to a byte each: the product has the whole byte in each of eight,
 * of which one bit is kept, and the sum moves any bit to the top. */
static uint64_t spread_bits(uint8_t bits)
{
    uint64_t kept = bits * BYTES & 0x8040201008040201ull;
    return (kept + 127 * BYTES) >> 7 & BYTES;
}

/* Adds bit e of 32 to code e, as bit 4. */
static void fifth_bits(const uint8_t *high, uint8_t *q)
{
    for (int i = 0; i < 4; i++)
        put8(q + 8 * i, get8(q + 8 * i) | spread_bits(high[i]) << 4);
}

/* n codes of two bits, four in a byte one after the other. */
static void two_bits(const uint8_t *qs, uint8_t *q, int n)
{
    for (int i = 0; i < n / 8; i++) {
        uint64_t v = qs[2 * i] | (uint64_t)qs[2 * i + 1] << 32;
        v = (v | v << 12) & 0x000f000f000f000full;
        put8(q + 8 * i, (v | v << 6) & 3 * BYTES);
    }
}

/* Four fields of two bits in each of 32 bytes: 128 codes. */
static void fields_of_32(const uint8_t *qs, uint8_t *q)
{
    for (int i = 0; i < 32; i += 8) {
        uint64_t v = get8(qs + i);
        for (int f = 0; f < 4; f++)
            put8(q + 32 * f + i, v >> 2 * f & 3 * BYTES);
    }
}

/* Adds `bits` bits of each of 32 bytes to 32 codes, from bit `to` on. */
static void add_high(const uint8_t *from, int shift, int bits, int to, uint8_t *q)
{
    uint64_t mask = ((1u << bits) - 1) * BYTES;
    for (int i = 0; i < 32; i += 8)
        put8(q + i, get8(q + i) | (get8(from + i) >> shift & mask) << to);
}

/* ---- blocks: codes to bytes q, scales to s ------------------------------ */

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
        put8(q + 8 * i, spread_bits(b[2 + i]));
}

/* Digits 0 to count-1 of n bytes that hold fractions in base 3: all first
 * digits, then all second ones. Returns the codes' end. Four bytes at a time,
 * with room for the products between them. */
static uint8_t *base3(const uint8_t *bytes, int n, int count, uint8_t *q)
{
    static const uint8_t power[5] = { 1, 3, 9, 27, 81 };
    const uint64_t low = 0x00ff00ff00ff00ffull;
    for (int d = 0; d < count; d++) {
        int i = 0;
        for (; i + 8 <= n; i += 8) {
            uint64_t v = get8(bytes + i);
            uint64_t even = (v & low) * power[d] & low;
            uint64_t odd = (v >> 8 & low) * power[d] & low;
            put8(q + i, (3 * even >> 8 & low) | (3 * odd & ~low));
        }
        for (; i < n; i++)
            q[i] = (uint8_t)(3 * (uint8_t)(bytes[i] * power[d]) >> 8);
        q += n;
    }
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
        add_high(b, g, 1, 2, q + 32 * g);
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
        add_high(b + 16, g, 1, 4, q + 32 * g);
}

static void block_q6_k(const uint8_t *b, uint8_t *q, uint8_t *s)
{
    memcpy(s, b + 208, 2);
    memset(s + 2, 0, 2);
    memcpy(s + 4, b + 192, 16);
    for (int half = 0; half < 2; half++, q += 128) {
        nibbles(b + 64 * half, q, 64);
        for (int k = 0; k < 4; k++)
            add_high(b + 128 + 32 * half, 2 * k, 2, 4, q + 32 * k);
    }
}

/* ---- table -------------------------------------------------------------- */

const struct pack_block pack_blocks[QUANT_COUNT] = {
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
