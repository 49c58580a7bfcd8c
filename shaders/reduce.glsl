/* reduce.glsl - sums and maxima over aligned runs of neighbouring invocations
 * of one subgroup. `lanes` is a power of two up to the subgroup size and known
 * when the pipeline is built, so that the unused steps vanish; every
 * invocation of the run gets the result. Built from shuffles, because
 * clustered operations are not everywhere and a full subgroup reduction is
 * several times dearer than three shuffles on CPU devices. */

/* This invocation's place in the workgroup: neighbours share a subgroup. */
uint local_index()
{
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

#define LANES_FOLD(TYPE, NAME, OP)                                             \
    TYPE NAME(TYPE v, const uint lanes)                                        \
    {                                                                          \
        if (lanes > 1)                                                         \
            v = OP(v, subgroupShuffleXor(v, 1));                               \
        if (lanes > 2)                                                         \
            v = OP(v, subgroupShuffleXor(v, 2));                               \
        if (lanes > 4)                                                         \
            v = OP(v, subgroupShuffleXor(v, 4));                               \
        if (lanes > 8)                                                         \
            v = OP(v, subgroupShuffleXor(v, 8));                               \
        if (lanes > 16)                                                        \
            v = OP(v, subgroupShuffleXor(v, 16));                              \
        if (lanes > 32)                                                        \
            v = OP(v, subgroupShuffleXor(v, 32));                              \
        return v;                                                              \
    }
#define LANES_PLUS(a, b) ((a) + (b))

LANES_FOLD(float, lanes_add, LANES_PLUS)
LANES_FOLD(vec4, lanes_add, LANES_PLUS)
LANES_FOLD(int, lanes_add, LANES_PLUS)
LANES_FOLD(float, lanes_max, max)
