/* format.glsl - the weight formats after repacking (engine/pack.h). Expects
 * one FORMAT_x to be defined; binds codes and scales.
 *
 * A row is `units` units of 16 bytes; a unit holds UNIT elements, quad q of a
 * unit the elements 4q..4q+3. Each format gives
 *   UNIT              elements a unit
 *   SCALE_UNITS       units that share a scale; 0: no scales
 *   OFFSET            value that is subtracted from every code
 *   quad_float(c, q)  the four values, offset applied, scale not
 *   quad_bytes(c, q)  integer formats: the four codes as bytes, 0..127 or int8
 */
#ifdef FORMAT_f32
#define UNIT 4
#define SCALE_UNITS 0
#elif defined(FORMAT_f16) || defined(FORMAT_bf16)
#define UNIT 8
#define SCALE_UNITS 0
#elif defined(FORMAT_q8_0)
#define UNIT 16
#define SCALE_UNITS 2
#define OFFSET 0
#define INTEGER_CODES
#elif defined(FORMAT_q4_0)
#define UNIT 32
#define SCALE_UNITS 1
#define OFFSET 8
#define INTEGER_CODES
#elif defined(FORMAT_q2_0)
#define UNIT 64
#define SCALE_UNITS 1
#define OFFSET 1
#define INTEGER_CODES
#endif

#define QUADS (UNIT / 4)

layout(set = 0, binding = 1, std430) readonly buffer codes_block { uvec4 codes[]; };
layout(set = 0, binding = 2, std430) readonly buffer scales_block { uint scales[]; };

#ifdef FORMAT_f32
vec4 quad_float(uvec4 c, uint q)
{
    return uintBitsToFloat(c);
}
#elif defined(FORMAT_f16)
vec4 quad_float(uvec4 c, uint q)
{
    return vec4(unpackHalf2x16(c[2 * q]), unpackHalf2x16(c[2 * q + 1]));
}
#elif defined(FORMAT_bf16)
vec4 quad_float(uvec4 c, uint q)
{
    uvec2 w = uvec2(c[2 * q], c[2 * q + 1]);
    return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16,
                                 w.y & 0xffff0000u));
}
#elif defined(FORMAT_q8_0)
uint quad_bytes(uvec4 c, uint q)
{
    return c[q];
}
#elif defined(FORMAT_q4_0)
uint quad_bytes(uvec4 c, uint q)
{
    return c[q >> 1] >> (4 * (q & 1)) & 0x0f0f0f0fu;
}
#elif defined(FORMAT_q2_0)
uint quad_bytes(uvec4 c, uint q)
{
    return c[q >> 2] >> (2 * (q & 3)) & 0x03030303u;
}
#endif

#ifdef INTEGER_CODES
/* Sign-extends four packed bytes. */
ivec4 bytes_int(uint b)
{
    return ivec4(b << 24, b << 16, b << 8, b) >> 24;
}

vec4 quad_float(uvec4 c, uint q)
{
    return vec4(bytes_int(quad_bytes(c, q)) - OFFSET);
}
#endif

/* Scale of a unit. scale_words: uints a row of the scale plane. */
float unit_scale(uint row, uint unit, uint units)
{
#if SCALE_UNITS == 0
    return 1.0;
#else
    uint per_row = (units / SCALE_UNITS + 1) / 2;
    uint i = unit / SCALE_UNITS;
    vec2 pair = unpackHalf2x16(scales[row * per_row + i / 2]);
    return (i & 1) != 0 ? pair.y : pair.x;
#endif
}
