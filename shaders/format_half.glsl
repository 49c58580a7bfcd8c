/* format_half.glsl - quad_half(w, q): elements 4q..4q+3 of a unit as f16, scaled
 * and times HALF_SCALE, which keeps small scales away from the subnormals.
 *
 * 1024 + n is 0x6400 + n in f16, for n up to 1023: a byte becomes a number by
 * an OR and a subtraction. */
#ifdef INTEGER_CODES
#define HALF_SCALE 16.0
#if LOW_BITS == 8 || defined(TABLE_iq4) || defined(TABLE_fp4)
#define HALF_FLIP 0x80808080u /* int8 */
#define HALF_ZERO 1152.0
#else
#define HALF_FLIP 0u
#define HALF_ZERO (1024.0 + float(OFFSET))
#endif

f16vec4 quad_half(weight_unit w, uint q)
{
    uint b = quad_bytes(w, q) ^ HALF_FLIP;
    f16vec2 low = unpackFloat2x16(b & 0xffu | (b & 0xff00u) << 8 | 0x64006400u);
    f16vec2 high = unpackFloat2x16(b >> 16 & 0xffu | b >> 8 & 0xff0000u | 0x64006400u);
    f16vec4 v = f16vec4(low, high) - float16_t(HALF_ZERO);
    scale_t k = w.scale[q * 4 / SCALE_GROUP] * HALF_SCALE;
#ifdef MINIMA
    return v * float16_t(k.x) + float16_t(k.y);
#else
    return v * float16_t(k);
#endif
}
#else
#define HALF_SCALE 1.0

f16vec4 quad_half(weight_unit w, uint q)
{
#ifdef FORMAT_f16
    return f16vec4(unpackFloat2x16(w.low[2 * q]), unpackFloat2x16(w.low[2 * q + 1]));
#else
    return f16vec4(quad_float(w, q));
#endif
}
#endif
