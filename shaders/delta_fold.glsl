/* delta_fold.glsl - defines FOLD_NAME: a tile of 4 FOLD_QUADS rows by four
 * columns gets the products of `count` rows of FOLD_FROM, in quads `stride`
 * apart, and as many rows of fold_s from quad b on added:
 *     FOLD_TO[4 q + m] += FOLD_FROM[a + q APART + i stride][m] fold_s[b + i COLUMN_QUADS]
 * count is a multiple of FOLD_STEP: the rows are loaded AHEAD of them at a time,
 * while those before are worked on, into two sets of registers by turns. */
#ifndef FOLD_STEP
#define FOLD_STEP (2 * AHEAD)
#define FOLD_LOAD(SET, QUADS, FROM)                                            \
    [[unroll]] for (uint i = 0; i < AHEAD; i++)                                \
        [[unroll]] for (uint q = 0; q < QUADS; q++)                            \
            SET[i * QUADS + q] = FROM[a + q * APART + i * stride];             \
    a += AHEAD * stride
#define FOLD_USE(SET, QUADS, TO)                                               \
    [[unroll]] for (uint i = 0; i < AHEAD; i++) {                              \
        vec4 y = fold_s[b + i * COLUMN_QUADS];                                 \
        [[unroll]] for (uint q = 0; q < QUADS; q++)                            \
            [[unroll]] for (uint m = 0; m < 4; m++)                            \
                TO[4 * q + m] += SET[i * QUADS + q][m] * y;                    \
    }                                                                          \
    b += AHEAD * COLUMN_QUADS
#endif

void FOLD_NAME(uint a, uint stride, uint b, uint count)
{
    vec4 even[AHEAD * FOLD_QUADS], odd[AHEAD * FOLD_QUADS];
    FOLD_LOAD(even, FOLD_QUADS, FOLD_FROM);
    for (uint done = FOLD_STEP; done < count; done += FOLD_STEP) {
        FOLD_LOAD(odd, FOLD_QUADS, FOLD_FROM);
        FOLD_USE(even, FOLD_QUADS, FOLD_TO);
        FOLD_LOAD(even, FOLD_QUADS, FOLD_FROM);
        FOLD_USE(odd, FOLD_QUADS, FOLD_TO);
    }
    FOLD_LOAD(odd, FOLD_QUADS, FOLD_FROM);
    FOLD_USE(even, FOLD_QUADS, FOLD_TO);
    FOLD_USE(odd, FOLD_QUADS, FOLD_TO);
}
#undef FOLD_NAME
#undef FOLD_FROM
#undef FOLD_TO
#undef FOLD_QUADS
