/* format_floats.glsl - weights that are floats; they have no scales. */
#ifdef FORMAT_f32
#define UNIT 4
#else
#define UNIT 8
#endif
#define SCALE_GROUP UNIT
#define scale_t float

struct weight_unit {
    uvec4 low;
    scale_t scale[1];
};

weight_unit unit_load(uint row, uint unit, uint units)
{
    return weight_unit(codes[row * units + unit], scale_t[1](1.0));
}

vec4 quad_float(weight_unit w, uint q)
{
#if defined(FORMAT_f32)
    return uintBitsToFloat(w.low);
#elif defined(FORMAT_f16)
    return vec4(unpackHalf2x16(w.low[2 * q]), unpackHalf2x16(w.low[2 * q + 1]));
#else
    uvec2 v = uvec2(w.low[2 * q], w.low[2 * q + 1]);
    return uintBitsToFloat(uvec4(v.x << 16, v.x & 0xffff0000u, v.y << 16,
                                 v.y & 0xffff0000u));
#endif
}
