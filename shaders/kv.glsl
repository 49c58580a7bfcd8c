/* kv.glsl - rows of the K and V caches, one unit at a time: the dims that one
 * load or store moves (shaders/wide.glsl). KV_F16: pairs of f16; KV_F32: floats.
 * Expects KV_K and KV_V (the bindings) and KV_ACCESS (readonly or writeonly).
 * Index: dim / KV_DIMS counted from the cache's start. */
#include "wide.glsl"

#ifdef KV_F16
#define KV_DIMS (2 * WIDE)
#ifdef WIDE_LOADS
#define KV_UNIT u64vec4
#else
#define KV_UNIT uvec4
#endif
#else
#define KV_DIMS WIDE
#define KV_UNIT WIDE_VEC
#endif
#define KV_QUADS (KV_DIMS / 4)

layout(set = 0, binding = KV_K, std430) KV_ACCESS buffer k_cache_block {
    KV_UNIT k_cache[];
};
layout(set = 0, binding = KV_V, std430) KV_ACCESS buffer v_cache_block {
    KV_UNIT v_cache[];
};

#ifdef KV_F16
vec4 kv_halves(uint a, uint b)
{
    return vec4(unpackHalf2x16(a), unpackHalf2x16(b));
}

#ifdef WIDE_LOADS
vec4[KV_QUADS] kv_quads(KV_UNIT u)
{
    uvec2 a = unpackUint2x32(u.x), b = unpackUint2x32(u.y);
    uvec2 c = unpackUint2x32(u.z), d = unpackUint2x32(u.w);
    return vec4[KV_QUADS](kv_halves(a.x, a.y), kv_halves(b.x, b.y), kv_halves(c.x, c.y),
                          kv_halves(d.x, d.y));
}
#else
vec4[KV_QUADS] kv_quads(KV_UNIT u)
{
    return vec4[KV_QUADS](kv_halves(u.x, u.y), kv_halves(u.z, u.w));
}

KV_UNIT kv_pack(vec4 v[KV_QUADS])
{
    return uvec4(packHalf2x16(v[0].xy), packHalf2x16(v[0].zw), packHalf2x16(v[1].xy),
                 packHalf2x16(v[1].zw));
}
#endif
#else
vec4[KV_QUADS] kv_quads(KV_UNIT u)
{
    return wide_quads(u);
}

KV_UNIT kv_pack(vec4 v[KV_QUADS])
{
    return wide_pack(v);
}
#endif

/* Quad i of an invocation, of a head whose units `lanes` invocations share. */
uint kv_quad(uint i, uint lane, const uint lanes)
{
    return KV_QUADS * (i / KV_QUADS * lanes + lane) + i % KV_QUADS;
}
