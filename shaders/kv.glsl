/* kv.glsl - rows of the K and V caches, eight dims at a time. KV_F16: pairs of
 * f16 in uints; KV_F32: floats. Expects KV_K and KV_V (the bindings) and
 * KV_ACCESS (readonly or writeonly). Index: dim / 8 counted from the cache's
 * start. */
#ifdef KV_F16
#define KV_UNIT uvec4
#else
struct kv_unit {
    vec4 lo, hi;
};
#define KV_UNIT kv_unit
#endif
layout(set = 0, binding = KV_K, std430) KV_ACCESS buffer k_cache_block { KV_UNIT k_cache[]; };
layout(set = 0, binding = KV_V, std430) KV_ACCESS buffer v_cache_block { KV_UNIT v_cache[]; };

KV_UNIT kv_pack(vec4 lo, vec4 hi)
{
#ifdef KV_F16
    return uvec4(packHalf2x16(lo.xy), packHalf2x16(lo.zw), packHalf2x16(hi.xy),
                 packHalf2x16(hi.zw));
#else
    return kv_unit(lo, hi);
#endif
}

vec4 kv_lo(KV_UNIT u)
{
#ifdef KV_F16
    return vec4(unpackHalf2x16(u.x), unpackHalf2x16(u.y));
#else
    return u.lo;
#endif
}

vec4 kv_hi(KV_UNIT u)
{
#ifdef KV_F16
    return vec4(unpackHalf2x16(u.z), unpackHalf2x16(u.w));
#else
    return u.hi;
#endif
}

/* An invocation's quads of a head whose dims `lanes` invocations share, two
 * neighbours at a time: the quads of its units. */
uint kv_quad(uint i, uint lane, const uint lanes)
{
    return 2 * (i / 2 * lanes + lane) + i % 2;
}
