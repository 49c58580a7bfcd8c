/* format_scales.glsl - the scale planes: unit_scales(row, unit, units) gives
 * the scales of a unit's groups. Each SCALES_x says what one row has:
 *   half n   an f16 for every n units, padded to an even number
 *   pair     two f16 a unit: scale and what is added
 *   power    a byte a unit, padded to words: x stands for 2^(x-128)
 *   fp8      a byte for 16 elements: four exponent, three mantissa bits, halved;
 *            behind them the factor of the row in f32
 * and for every 256 elements
 *   xs       f16 d, then 2 high and 4 low bits of the groups' scales less 32
 *   k2       f16 d and dmin, a byte for 16 elements: scale, minimum
 *   k3       three bytes for 64 elements, 6 bits for 16: scale less 32; every
 *            fourth byte belongs to d
 *   k4       f16 d and dmin; low four bits of scale and minimum of 8 groups,
 *            then two and two high bits
 *   k6       f16 d, two bytes padding, int8 for 16 elements */
#if defined(SCALES_pair) || defined(SCALES_k2) || defined(SCALES_k4)
#define MINIMA
#define scale_t vec2
#else
#define scale_t float
#endif

#if defined(SCALES_k2) || defined(SCALES_k3) || defined(SCALES_k6) || defined(SCALES_fp8)
#define SCALE_GROUP 16
#else
#define SCALE_GROUP UNIT
#endif
#define SCALES (UNIT / SCALE_GROUP)
#define SUPER (256 / UNIT) /* units of 256 elements */

#if defined(SCALES_half)
scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    uint i = unit / SCALES_half;
    vec2 two = unpackHalf2x16(scales[row * ((units / SCALES_half + 1) / 2) + i / 2]);
    return scale_t[](i % 2 != 0 ? two.y : two.x);
}
#elif defined(SCALES_pair)
scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    return scale_t[](unpackHalf2x16(scales[row * units + unit]));
}
#elif defined(SCALES_power)
scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    uint x = scales[row * ((units + 3) / 4) + unit / 4] >> unit % 4 * 8 & 255;
    /* The two smallest are not normal floats. */
    return scale_t[](uintBitsToFloat(x < 2 ? 0x00200000u << x : x - 1 << 23));
}
#elif defined(SCALES_fp8)
float fp8_half(uint x)
{
    uint e = x >> 3 & 15, m = x & 7;
    float v = e == 0 ? float(m) / 1024.0 : uintBitsToFloat(e + 119 << 23 | m << 20);
    return x == 0x7f ? 0.0 : v;
}

scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    const uint words = (units + 1) / 2, at = row * (words + 1);
    uint x = scales[at + unit / 2] >> unit % 2 * 16;
    float factor = uintBitsToFloat(scales[at + words]);
    return scale_t[](factor * fp8_half(x & 255), factor * fp8_half(x >> 8 & 255));
}
#elif defined(SCALES_xs)
scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    uint at = (row * (units / SUPER) + unit / SUPER) * 2, g = unit % SUPER;
    uint head = scales[at], low = scales[at + 1] >> 4 * g & 15;
    uint scale = low | (head >> 16 + 2 * g & 3) << 4;
    return scale_t[](unpackHalf2x16(head).x * float(int(scale) - 32));
}
#elif defined(SCALES_k2)
scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    uint at = (row * (units / SUPER) + unit / SUPER) * 5;
    vec2 d = unpackHalf2x16(scales[at]);
    uint b = scales[at + 1 + unit % SUPER];
    scale_t k[SCALES];
    [[unroll]] for (uint i = 0; i < SCALES; i++)
        k[i] = vec2(d.x, -d.y) * vec2(b >> 8 * i & 15, b >> 8 * i + 4 & 15);
    return k;
}
#elif defined(SCALES_k3)
scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    uvec4 s = scales4[row * (units / SUPER) + unit / SUPER];
    float d = unpackHalf2x16(s.x >> 24 | s.y >> 24 << 8).x;
    uint b = s[unit % SUPER];
    scale_t k[SCALES];
    [[unroll]] for (uint i = 0; i < SCALES; i++)
        k[i] = d * float(int(b >> 6 * i & 63) - 32);
    return k;
}
#elif defined(SCALES_k4)
scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    uvec4 s = scales4[row * (units / SUPER) + unit / SUPER];
    vec2 d = unpackHalf2x16(s.x);
    uint g = unit % SUPER;
    uint low = (g < 4 ? s.y : s.z) >> 8 * (g & 3), high = s.w >> 4 * g;
    uint scale = low & 15 | (high & 3) << 4, minimum = low >> 4 & 15 | (high & 12) << 2;
    return scale_t[](vec2(d.x, -d.y) * vec2(scale, minimum));
}
#elif defined(SCALES_k6)
scale_t[SCALES] unit_scales(uint row, uint unit, uint units)
{
    uint at = (row * (units / SUPER) + unit / SUPER) * 5, g = unit % SUPER;
    float d = unpackHalf2x16(scales[at]).x;
    int b = int(scales[at + 1 + g / 2] >> g % 2 * 16);
    return scale_t[](d * float(b << 24 >> 24), d * float(b << 16 >> 24));
}
#endif
