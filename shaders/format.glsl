/* format.glsl - the weight formats after repacking (engine/pack.h). Expects
 * one FORMAT_x to be defined; binds codes and scales. What a kernel uses:
 *   UNIT              elements a unit of 16 bytes of codes
 *   SCALE_GROUP       elements of a unit that share a scale
 *   INTEGER_CODES     defined for codes; not for weights that are floats
 *   OFFSET            what every code stands for too much
 *   MINIMA            defined where a scale has a term to add, too
 *   unit_load(row, unit, units)  one unit of a row that has `units` of them
 *   quad_bytes(w, q)  codes of elements 4q..4q+3 as bytes, 0..127 or int8
 *   quad_float(w, q)  the same as floats, OFFSET taken off
 *   scaled(k, dot, total)  see below */
layout(set = 0, binding = 1, std430) readonly buffer codes_block { uvec4 codes[]; };
layout(set = 0, binding = 1, std430) readonly buffer codes_block1 { uint codes1[]; };
layout(set = 0, binding = 1, std430) readonly buffer codes_block2 { uvec2 codes2[]; };
layout(set = 0, binding = 2, std430) readonly buffer scales_block { uint scales[]; };
layout(set = 0, binding = 2, std430) readonly buffer scales_block4 { uvec4 scales4[]; };

/* LOW_BITS, HIGH_BITS: see format_codes.glsl; TABLE_x: format_tables.glsl;
 * SCALES_x: format_scales.glsl */
#if defined(FORMAT_q8_0)
#define LOW_BITS 8
#define SCALES_half 2
#elif defined(FORMAT_q4_0)
#define LOW_BITS 4
#define OFFSET 8
#define SCALES_half 1
#elif defined(FORMAT_q4_1)
#define LOW_BITS 4
#define SCALES_pair
#elif defined(FORMAT_q5_0)
#define LOW_BITS 4
#define HIGH_BITS 1
#define OFFSET 16
#define SCALES_half 1
#elif defined(FORMAT_q5_1)
#define LOW_BITS 4
#define HIGH_BITS 1
#define SCALES_pair
#elif defined(FORMAT_q2_0)
#define LOW_BITS 2
#define OFFSET 1
#define SCALES_half 1
#elif defined(FORMAT_pq2_0)
#define LOW_BITS 2
#define OFFSET 1
#define SCALES_half 2
#elif defined(FORMAT_tq2_0)
#define LOW_BITS 2
#define OFFSET 1
#define SCALES_half 4
#elif defined(FORMAT_q1_0)
#define LOW_BITS 1
#define OFFSET 1
#define SCALES_half 1
#elif defined(FORMAT_iq4_nl)
#define LOW_BITS 4
#define TABLE_iq4
#define SCALES_half 1
#elif defined(FORMAT_iq4_xs)
#define LOW_BITS 4
#define TABLE_iq4
#define SCALES_xs
#elif defined(FORMAT_mxfp4)
#define LOW_BITS 4
#define TABLE_fp4
#define SCALES_power
#elif defined(FORMAT_nvfp4)
#define LOW_BITS 4
#define TABLE_fp4
#define SCALES_fp8
#elif defined(FORMAT_q2_k)
#define LOW_BITS 2
#define SCALES_k2
#elif defined(FORMAT_q3_k)
#define LOW_BITS 2
#define HIGH_BITS 1
#define OFFSET 4
#define SCALES_k3
#elif defined(FORMAT_q4_k)
#define LOW_BITS 4
#define SCALES_k4
#elif defined(FORMAT_q5_k)
#define LOW_BITS 4
#define HIGH_BITS 1
#define SCALES_k4
#elif defined(FORMAT_q6_k)
#define LOW_BITS 4
#define HIGH_BITS 2
#define OFFSET 32
#define SCALES_k6
#endif

#ifdef LOW_BITS
#define INTEGER_CODES
#define UNIT (128 / LOW_BITS)
#ifndef HIGH_BITS
#define HIGH_BITS 0
#endif
#ifndef OFFSET
#define OFFSET 0
#endif
#include "format_scales.glsl"
#if defined(TABLE_iq4) || defined(TABLE_fp4)
#include "format_tables.glsl"
#else
#include "format_codes.glsl"
#endif

/* Sign-extends four packed bytes. */
ivec4 bytes_int(uint b)
{
    return ivec4(b << 24, b << 16, b << 8, b) >> 24;
}

vec4 quad_float(weight_unit w, uint q)
{
    return vec4(bytes_int(quad_bytes(w, q)) - OFFSET);
}
#else
#include "format_floats.glsl"
#endif

#define QUADS (UNIT / 4)

/* What elements that share the scale k add to a row's result: dot is the sum
 * of (code - OFFSET) * activation over them, total that of the activations. */
float scaled(scale_t k, float dot, float total)
{
#ifdef MINIMA
    return k.x * dot + k.y * total;
#else
    return k * dot;
#endif
}
