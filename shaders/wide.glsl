/* wide.glsl - the widest vector of floats that one load or store moves. Without
 * WIDE_LOADS four floats. With it eight, as 64-bit integers: a CPU device makes
 * an instruction of every lane's load, whatever its width, so that half as many
 * take half the time; the device must have 64-bit integers in shaders. */
#ifdef WIDE_LOADS
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

#define WIDE 8
#define WIDE_VEC u64vec4

vec4[2] wide_quads(u64vec4 v)
{
    return vec4[2](uintBitsToFloat(uvec4(unpackUint2x32(v.x), unpackUint2x32(v.y))),
                   uintBitsToFloat(uvec4(unpackUint2x32(v.z), unpackUint2x32(v.w))));
}

u64vec4 wide_pack(vec4 q[2])
{
    uvec4 a = floatBitsToUint(q[0]), b = floatBitsToUint(q[1]);
    return u64vec4(packUint2x32(a.xy), packUint2x32(a.zw), packUint2x32(b.xy),
                   packUint2x32(b.zw));
}
#else
#define WIDE 4
#define WIDE_VEC vec4

vec4[1] wide_quads(vec4 v)
{
    return vec4[1](v);
}

vec4 wide_pack(vec4 q[1])
{
    return q[0];
}
#endif
#define WIDE_QUADS (WIDE / 4)
