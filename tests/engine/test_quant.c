/* test_quant.c - block formats against published values, f16 over all values. */
#include "engine/quant.h"
#include "tests/test.h"

#include <stdint.h>

/* A block is filled with byte[i] = 37 i + 11 mod 256, then d = 0.5 and, where
 * the format has one, m = 0.25 are put in place. */
struct known {
    enum quant q;
    int d_at, m_at; /* -1: no such field */
    double first[4], middle[2], last[2], sum, weighted;
};

static const struct known known[] = {
    { QUANT_Q4_0, 0, -1, { -1.5, 1, 3.5, -2 }, { -1.5, -0.5 }, { -1.5, 0 }, -10.5, -259 },
    { QUANT_Q4_1, 0, 2, { 7.75, 2.25, 4.75, 7.25 }, { 4.75, 6.25 }, { 5.25, 6.25 },
      130.5, 2123.5 },
    { QUANT_Q5_0, 0, -1, { 4.5, -1, 1.5, -4 }, { 7, 0 }, { 7, 0.5 }, 7.5, 56 },
    { QUANT_Q5_1, 0, 2, { 9.75, 12.25, 14.75, 9.25 }, { 9.75, 2.75 }, { 1.75, 2.75 },
      260.5, 4082.5 },
    { QUANT_Q8_0, 0, -1, { 42.5, 61, -48.5, -30 }, { -45.5, -27 }, { -42.5, -24 },
      -88, -4040 },
    { QUANT_Q2_K, 80, 82, { 16.5, 0, 5.5, 11 }, { 3.75, -0.75 }, { 2.25, 2.25 },
      1029.5, 121565 },
    { QUANT_Q3_K, 108, -1, { 40.5, -54, 13.5, -27 }, { 1, 0 }, { -14, 21 },
      479, 88572.5 },
    { QUANT_Q4_K, 0, 2, { 157.75, -12.75, 64.75, 142.25 }, { 211.5, -3 },
      { 18.25, 24.25 }, 27220, 3786420 },
    { QUANT_Q5_K, 0, 2, { 405.75, -12.75, 312.75, 142.25 }, { 523.5, -3 },
      { 48.25, 54.25 }, 58108, 8013724 },
    { QUANT_Q6_K, 208, -1, { -715.5, 848, 291.5, -265 }, { -175.5, 208 }, { -20, -30 },
      2306, 392210 },
    { QUANT_IQ4_NL, 0, -1, { -17.5, 12.5, 56.5, -24.5 }, { -17.5, -5 }, { -17.5, 0.5 },
      -128.5, -3459.5 },
    { QUANT_IQ4_XS, 0, -1, { 32.5, -0.5, -34.5, 41.5 }, { -292.5, 4.5 }, { 176, -8 },
      -5502.5, -1045567 },
    { QUANT_TQ1_0, 52, -1, { -0.5, -0.5, -0.5, 0 }, { 0, -0.5 }, { -0.5, -0.5 },
      -1, -65.5 },
    { QUANT_TQ2_0, 64, -1, { 1, -0.5, 0, 0.5 }, { 1, -0.5 }, { -0.5, -0.5 },
      64.5, 8622.5 },
    { QUANT_MXFP4, -1, -1, { 0, 6, -2, -12 }, { 3, 6 }, { 3, 6 }, 25, 638 },
    { QUANT_NVFP4, -1, -1, { -6, 2, -0.5, -4 }, { -9, 3 },
      { -0.08203125, 0.0068359375 }, -21.4248046875, -861.3037109375 },
    { QUANT_Q1_0, 0, -1, { 0.5, -0.5, 0.5, -0.5 }, { 0.5, -0.5 }, { -0.5, 0.5 },
      0, -266 },
    { QUANT_Q2_0, 0, -1, { 0, 0, 0, 0 }, { 0, 1 }, { -0.5, 0.5 }, 15, 406.5 },
    { QUANT_PQ2_0, 0, -1, { 0, 0, 0, 0 }, { 0, 0 }, { 0, 1 }, 32, 1997 },
    { QUANT_PTQ1_0, 26, -1, { -0.5, -0.5, -0.5, 0 }, { 0, -0.5 }, { 0.5, 0.5 }, 0, 83 },
};

static void put_f16(uint8_t *b, int at, float f)
{
    if (at < 0)
        return;
    uint16_t h = quant_f32_to_f16(f);
    b[at] = (uint8_t)h;
    b[at + 1] = (uint8_t)(h >> 8);
}

static void fill_block(const struct known *k, uint8_t *b)
{
    for (uint32_t i = 0; i < quant_format(k->q)->bytes; i++)
        b[i] = (uint8_t)(37 * i + 11);
    put_f16(b, k->d_at, 0.5f);
    put_f16(b, k->m_at, 0.25f);
    static const uint8_t scales[4] = { 0x38, 0x40, 0x3c, 0x07 };
    if (k->q == QUANT_MXFP4)
        b[0] = 128;
    if (k->q == QUANT_NVFP4)
        memcpy(b, scales, sizeof scales);
}

static void test_known_blocks(void)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct known *k = &known[i];
        const struct quant_format *f = quant_format(k->q);
        uint32_t n = f->elements;
        /* Exact-size heap blocks, so that a sanitiser sees any overrun; the
         * odd source address shows that no alignment is assumed. */
        uint8_t *b = malloc(f->bytes + 1);
        float *v = malloc(2 * n * sizeof *v);
        fill_block(k, b + 1);
        quant_dequantize(k->q, b + 1, n, v);
        double sum = 0, weighted = 0;
        for (uint32_t e = 0; e < n; e++) {
            sum += v[e];
            weighted += (e + 1.0) * v[e];
        }
        bool same = sum == k->sum && weighted == k->weighted;
        for (int e = 0; e < 4; e++)
            same &= v[e] == k->first[e];
        for (int e = 0; e < 2; e++)
            same &= v[n / 2 + (unsigned)e] == k->middle[e] &&
                    v[n - 2 + (unsigned)e] == k->last[e];
        if (!same)
            printf("# %s: sum %.9g weighted %.9g first %g %g %g %g\n", f->name, sum,
                   weighted, v[0], v[1], v[2], v[3]);
        CHECK(same);
        free(v);
        free(b);
    }
}

/* Each format that has a decoder is in the table above, plain ones aside. */
static void test_no_format_untested(void)
{
    for (int q = 0; q < QUANT_COUNT; q++) {
        const struct quant_format *f = quant_format((enum quant)q);
        bool listed = q == QUANT_F32 || q == QUANT_F16 || q == QUANT_BF16;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            listed |= known[i].q == (enum quant)q;
        CHECK(listed == (f->decode != NULL));
        CHECK(!f->runs || f->decode);
    }
}

static void test_several_blocks(void)
{
    uint8_t b[3 * 18];
    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (uint8_t)(37 * i + 11);
    float all[192], one[64];
    quant_dequantize(QUANT_Q2_0, b, 192, all);
    for (int k = 0; k < 3; k++) {
        quant_dequantize(QUANT_Q2_0, b + 18 * k, 64, one);
        CHECK(!memcmp(one, all + 64 * k, sizeof one));
    }
    quant_dequantize(QUANT_Q2_0, b, 0, all);
}

static void test_plain_floats(void)
{
    const float in[3] = { 1.5f, -0.0f, 3.0e38f };
    float out[3];
    quant_dequantize(QUANT_F32, in, 3, out);
    CHECK(!memcmp(in, out, sizeof in));
    const uint8_t bf[6] = { 0xc0, 0x3f, 0x00, 0x80, 0x80, 0x7f };
    quant_dequantize(QUANT_BF16, bf, 3, out);
    CHECK(out[0] == 1.5f && out[1] == 0 && signbit(out[1]) && isinf(out[2]));
    const uint8_t half[4] = { 0x00, 0x3e, 0x01, 0x80 };
    quant_dequantize(QUANT_F16, half, 2, out);
    CHECK(out[0] == 1.5f && out[1] == -0x1p-24f);
}

/* Two-digit scales: powers of two over the whole range of a byte. */
static void test_mxfp4_scales(void)
{
    for (int e8 = 0; e8 < 256; e8++) {
        uint8_t b[17] = { (uint8_t)e8, 0x21 };
        float v[32];
        quant_dequantize(QUANT_MXFP4, b, 32, v);
        CHECK(v[0] == ldexpf(1, e8 - 128) && v[16] == ldexpf(2, e8 - 128));
        CHECK(v[1] == 0 && v[31] == 0);
    }
}

static void test_nvfp4_scales(void)
{
    for (int x = 0; x < 128; x++) {
        uint8_t b[36] = { (uint8_t)x };
        b[4] = 0x02;
        float v[64];
        quant_dequantize(QUANT_NVFP4, b, 64, v);
        int exponent = x >> 3, mantissa = x & 7;
        double want = exponent ? ldexp(1 + mantissa / 8.0, exponent - 7)
                               : ldexp(mantissa, -9);
        CHECK(v[0] == (float)(x == 0x7f ? 0 : want));
    }
}

/* Every base-3 byte as its encoder makes it gives its digits back. */
static void test_base3_digits(void)
{
    for (int number = 0; number < 243; number++) {
        int digits[5], rest = number;
        for (int n = 4; n >= 0; n--, rest /= 3)
            digits[n] = rest % 3;
        uint8_t b[54] = { 0 };
        b[5] = (uint8_t)((256 * number + 242) / 243);
        put_f16(b, 52, 1);
        float v[256];
        quant_dequantize(QUANT_TQ1_0, b, 256, v);
        for (int n = 0; n < 5; n++)
            CHECK(v[5 + 32 * n] == (float)(digits[n] - 1));
    }
}

static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double v = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -v : v;
}

static void test_f16_all_values(void)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = quant_f16_to_f32((uint16_t)h);
        uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;
        if (exponent == 31 && mantissa) {
            CHECK(isnan(f) && isnan(quant_f16_to_f32(quant_f32_to_f16(f))));
            continue;
        }
        if (exponent == 31)
            CHECK(isinf(f) && (f < 0) == (h >= 0x8000));
        else
            CHECK((double)f == half_value((uint16_t)h));
        CHECK(quant_f32_to_f16(f) == h); /* the sign of zero included */
    }
}

/* At and beside each midpoint of neighbouring halves. */
static void test_f16_rounding(void)
{
    for (uint32_t h = 0; h < 0x7bff; h++) {
        double low = half_value((uint16_t)h), high = half_value((uint16_t)(h + 1));
        float middle = (float)((low + high) / 2); /* exact */
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);
        CHECK(quant_f32_to_f16(middle) == even);
        CHECK(quant_f32_to_f16(nextafterf(middle, 0)) == h);
        CHECK(quant_f32_to_f16(nextafterf(middle, INFINITY)) == h + 1);
        CHECK(quant_f32_to_f16(-middle) == (even | 0x8000));
    }
    CHECK(quant_f32_to_f16(65519.996f) == 0x7bff);
    CHECK(quant_f32_to_f16(65520) == 0x7c00);
    CHECK(quant_f32_to_f16(-3e38f) == 0xfc00);
    CHECK(quant_f32_to_f16(1e-45f) == 0 && quant_f32_to_f16(0x1p-25f) == 0);
    CHECK(quant_f32_to_f16(NAN) != 0x7c00 && isnan(quant_f16_to_f32(quant_f32_to_f16(NAN))));
}

static void test_table(void)
{
    static const struct { uint32_t id, elements, bytes; const char *name; } rows[] = {
        { 0, 1, 4, "F32" },      { 1, 1, 2, "F16" },      { 2, 32, 18, "Q4_0" },
        { 3, 32, 20, "Q4_1" },   { 6, 32, 22, "Q5_0" },   { 7, 32, 24, "Q5_1" },
        { 8, 32, 34, "Q8_0" },   { 9, 32, 36, "Q8_1" },   { 10, 256, 84, "Q2_K" },
        { 11, 256, 110, "Q3_K" }, { 12, 256, 144, "Q4_K" }, { 13, 256, 176, "Q5_K" },
        { 14, 256, 210, "Q6_K" }, { 15, 256, 292, "Q8_K" }, { 16, 256, 66, "IQ2_XXS" },
        { 17, 256, 74, "IQ2_XS" }, { 18, 256, 98, "IQ3_XXS" }, { 19, 256, 50, "IQ1_S" },
        { 20, 32, 18, "IQ4_NL" }, { 21, 256, 110, "IQ3_S" }, { 22, 256, 82, "IQ2_S" },
        { 23, 256, 136, "IQ4_XS" }, { 24, 1, 1, "I8" },   { 25, 1, 2, "I16" },
        { 26, 1, 4, "I32" },     { 27, 1, 8, "I64" },     { 28, 1, 8, "F64" },
        { 29, 256, 56, "IQ1_M" }, { 30, 1, 2, "BF16" },   { 34, 256, 54, "TQ1_0" },
        { 35, 256, 66, "TQ2_0" }, { 39, 32, 17, "MXFP4" }, { 40, 64, 36, "NVFP4" },
        { 41, 128, 18, "Q1_0" }, { 42, 64, 18, "Q2_0" },  { 142, 128, 34, "PQ2_0" },
        { 143, 128, 28, "PTQ1_0" },
    };
    CHECK(sizeof rows / sizeof *rows == QUANT_COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int q = quant_from_ggml(rows[i].id);
        REQUIRE(q >= 0);
        const struct quant_format *f = quant_format((enum quant)q);
        CHECK(f->elements == rows[i].elements && f->bytes == rows[i].bytes);
        CHECK_STR(f->name, rows[i].name);
        CHECK(quant_bytes((enum quant)q, 512) == 512 / f->elements * f->bytes);
    }
    static const uint32_t absent[] = { 4, 5, 31, 32, 33, 36, 37, 38, 43, 141, 144,
                                       0xffffffff };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        CHECK(quant_from_ggml(absent[i]) == -1);
}

TEST_MAIN(T(test_known_blocks), T(test_no_format_untested), T(test_several_blocks),
          T(test_plain_floats), T(test_mxfp4_scales), T(test_nvfp4_scales),
          T(test_base3_digits), T(test_f16_all_values), T(test_f16_rounding),
          T(test_table))
