/* kv.glsl - rows of the K and V caches, one unit of 16 bytes at a time. KV_F16:
 * eight dims as pairs of f16; KV_F32: four floats. Expects KV_K and KV_V (the
 * bindings) and KV_ACCESS (readonly or writeonly). Index: dim / KV_DIMS counted
 * from the cache's start. */
#ifdef KV_F16
#define KV_DIMS 8
#define KV_UNIT uvec4
#else
#define KV_DIMS 4
#define KV_UNIT vec4
#endif
#define KV_QUADS (KV_DIMS / 4)

layout(set = 0, binding = KV_K, std430) KV_ACCESS buffer k_cache_block {
    KV_UNIT k_cache[];
};
layout(set = 0, binding = KV_V, std430) KV_ACCESS buffer v_cache_block {
    KV_UNIT v_cache[];
};

#ifdef KV_F16
vec4[KV_QUADS] kv_quads(KV_UNIT u)
{
    return vec4[KV_QUADS](vec4(unpackHalf2x16(u.x), unpackHalf2x16(u.y)),
                          vec4(unpackHalf2x16(u.z), unpackHalf2x16(u.w)));
}

KV_UNIT kv_pack(vec4 v[KV_QUADS])
{
    return uvec4(packHalf2x16(v[0].xy), packHalf2x16(v[0].zw), packHalf2x16(v[1].xy),
                 packHalf2x16(v[1].zw));
}
#else
vec4[KV_QUADS] kv_quads(KV_UNIT u)
{
    return vec4[KV_QUADS](u);
}

KV_UNIT kv_pack(vec4 v[KV_QUADS])
{
    return v[0];
}
#endif

/* Quad i of an invocation, of a head whose units `lanes` invocations share. */
uint kv_quad(uint i, uint lane, const uint lanes)
{
    return KV_QUADS * (i / KV_QUADS * lanes + lane) + i % KV_QUADS;
}
