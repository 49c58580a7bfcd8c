/* next.glsl - a subgroup writes one block of the activation vector that the
 * next step consumes (engine/kernel.h). Expects NEXT_X, NEXT_S, NEXT_SS (the
 * bindings) and ACT_int8 or ACT_float, or the spec constant INT8 instead.
 *
 * A block's 32 values are spread over the subgroup: value next_index(k) is
 * element k of the invocation, NEXT_EACH of them, for subgroups from 8 on.
 * Four neighbours in value order sit in four neighbouring invocations. */
#define NEXT_EACH (ACT_BLOCK / 8)

#if defined(ACT_int8)
#define NEXT_INT8 true
#elif defined(ACT_float)
#define NEXT_INT8 false
#else
#define NEXT_INT8 (INT8 != 0)
#endif

layout(set = 0, binding = NEXT_X, std430) writeonly buffer next_x_block { uint next_x[]; };
layout(set = 0, binding = NEXT_S, std430) writeonly buffer next_s_block { vec2 next_s[]; };
layout(set = 0, binding = NEXT_SS, std430) writeonly buffer next_ss_block { float next_ss[]; };

/* Index in the block of element k; ACT_BLOCK or more: no such value. */
uint next_index(uint k)
{
    return gl_SubgroupInvocationID + k * gl_SubgroupSize;
}

#ifdef NEXT_MANY
/* next_write, below, for NEXT_MANY tokens at once, whose reductions then overlap;
 * only those that are there. */
void next_write_many(uint token[NEXT_MANY], bool there[NEXT_MANY], uint block, uint n,
                     float v[NEXT_MANY][NEXT_EACH], float w[NEXT_EACH])
{
    vec4 amax = vec4(0.0), ss = vec4(0.0), sum = vec4(0.0);
    [[unroll]] for (uint t = 0; t < NEXT_MANY; t++)
        [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
            amax[t] = max(amax[t], abs(v[t][k] * w[k]));
            ss[t] += v[t][k] * v[t][k];
        }
    amax = subgroupMax(amax);
    ss = subgroupAdd(ss);
    [[unroll]] for (uint t = 0; t < NEXT_MANY; t++) {
        uint first = token[t] * n + block * ACT_BLOCK;
        [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
            uint i = next_index(k);
            if (NEXT_INT8) {
                int q = act_round(v[t][k] * w[k], amax[t]);
                sum[t] += float(q);
                uint word = uint(q & 255) << (8 * (i & 3));
                word |= subgroupShuffleXor(word, 1);
                word |= subgroupShuffleXor(word, 2);
                if (i < ACT_BLOCK && (i & 3) == 0 && there[t])
                    next_x[(first + i) / 4] = word;
            } else if (i < ACT_BLOCK && there[t]) {
                next_x[first + i] = floatBitsToUint(v[t][k] * w[k]);
            }
        }
    }
    sum = NEXT_INT8 ? subgroupAdd(sum) : vec4(0.0);
    if (subgroupElect())
        [[unroll]] for (uint t = 0; t < NEXT_MANY; t++)
            if (there[t]) {
                uint at = (token[t] * n + block * ACT_BLOCK) / ACT_BLOCK;
                float scale = act_scale(amax[t]);
                next_s[at] = vec2(scale, scale * sum[t]);
                next_ss[at] = ss[t];
            }
}
#endif

/* Writes block `block` of token's vector of n values v * w; v is 0 where
 * next_index is out of the block. All invocations of the subgroup call it. */
void next_write(uint token, uint block, uint n, float v[NEXT_EACH], float w[NEXT_EACH])
{
    float amax = 0.0, ss = 0.0;
    [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
        amax = max(amax, abs(v[k] * w[k]));
        ss += v[k] * v[k];
    }
    amax = subgroupMax(amax);
    ss = subgroupAdd(ss);
    uint first = token * n + block * ACT_BLOCK;
    int sum = 0;
    [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
        uint i = next_index(k);
        if (NEXT_INT8) {
            int q = act_round(v[k] * w[k], amax);
            sum += q;
            uint word = uint(q & 255) << (8 * (i & 3));
            word |= subgroupShuffleXor(word, 1);
            word |= subgroupShuffleXor(word, 2);
            if (i < ACT_BLOCK && (i & 3) == 0)
                next_x[(first + i) / 4] = word;
        } else if (i < ACT_BLOCK) {
            next_x[first + i] = floatBitsToUint(v[k] * w[k]);
        }
    }
    sum = NEXT_INT8 ? subgroupAdd(sum) : 0;
    if (subgroupElect()) {
        float scale = act_scale(amax);
        next_s[first / ACT_BLOCK] = vec2(scale, scale * float(sum));
        next_ss[first / ACT_BLOCK] = ss;
    }
}
