/* kv.glsl - rows of the K/V cache, four values at a time. Expects KV_F16 or
 * KV_F32. */
#ifdef KV_F16
#define KV_QUAD uvec2
vec4 kv_load(uvec2 w)
{
    return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
}

uvec2 kv_store(vec4 v)
{
    return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}
#else
#define KV_QUAD vec4
vec4 kv_load(vec4 v)
{
    return v;
}

vec4 kv_store(vec4 v)
{
    return v;
}
#endif
