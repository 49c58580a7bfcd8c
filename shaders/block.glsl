/* block.glsl - eight neighbouring invocations write one block of an activation
 * vector (engine/kernel.h), four values each. Expects BLOCK_X, BLOCK_S,
 * BLOCK_SS (the bindings) and the spec constant INT8. */
#define BLOCK_LANES (ACT_BLOCK / 4)

layout(set = 0, binding = BLOCK_X, std430) writeonly buffer block_q {
    uint block_int8[];
};
layout(set = 0, binding = BLOCK_X, std430) writeonly buffer block_f {
    vec4 block_f32[];
};
layout(set = 0, binding = BLOCK_S, std430) writeonly buffer block_s {
    vec2 block_scale[];
};
layout(set = 0, binding = BLOCK_SS, std430) writeonly buffer block_ss {
    float block_sumsq[];
};

/* Quad `quad` of the plane gets v; `raw` is what the sum of squares is of.
 * Every invocation of the subgroup calls it, those with nothing to write too:
 * shuffles must not stand in divergent code. */
void block_write(uint quad, vec4 v, vec4 raw, bool store)
{
    float ss = lanes_add(dot(raw, raw), BLOCK_LANES);
    vec2 scale = vec2(0.0);
    if (INT8 != 0) {
        vec4 a = abs(v);
        float amax = lanes_max(max(max(a.x, a.y), max(a.z, a.w)), BLOCK_LANES);
        ivec4 q = ivec4(act_round(v.x, amax), act_round(v.y, amax), act_round(v.z, amax),
                        act_round(v.w, amax));
        int sum = lanes_add(q.x + q.y + q.z + q.w, BLOCK_LANES);
        if (store)
            block_int8[quad] = act_pack(q);
        scale.x = act_scale(amax);
        scale.y = scale.x * float(sum);
    } else if (store) {
        block_f32[quad] = v;
    }
    if (store && quad % BLOCK_LANES == 0) {
        if (INT8 != 0)
            block_scale[quad / BLOCK_LANES] = scale;
        block_sumsq[quad / BLOCK_LANES] = ss;
    }
}
