/* delta_fold.glsl - defines FOLD_NAME: a tile of 4 FOLD_QUADS rows by four
 * columns gets the products of `count` rows of FOLD_FROM, in quads `stride`
 * apart, and as many rows of fold_s from quad b on added:
 *     FOLD_TO[4 q + m] += FOLD_FROM[a + q APART + i stride][m] fold_s[b + i COLUMN_QUADS]
 * count is a multiple of AHEAD, so many rows are loaded while those before
 * them are worked on. */
void FOLD_NAME(uint a, uint stride, uint b, uint count)
{
    vec4 now[AHEAD * FOLD_QUADS], next[AHEAD * FOLD_QUADS];
    [[unroll]] for (uint i = 0; i < AHEAD; i++)
        [[unroll]] for (uint q = 0; q < FOLD_QUADS; q++)
            next[i * FOLD_QUADS + q] = FOLD_FROM[a + q * APART + i * stride];
    uint done = 0;
    do {
        [[unroll]] for (uint i = 0; i < AHEAD * FOLD_QUADS; i++)
            now[i] = next[i];
        a += AHEAD * stride;
        done += AHEAD;
        if (done < count)
            [[unroll]] for (uint i = 0; i < AHEAD; i++)
                [[unroll]] for (uint q = 0; q < FOLD_QUADS; q++)
                    next[i * FOLD_QUADS + q] = FOLD_FROM[a + q * APART + i * stride];
        [[unroll]] for (uint i = 0; i < AHEAD; i++) {
            vec4 y = fold_s[b + i * COLUMN_QUADS];
            [[unroll]] for (uint q = 0; q < FOLD_QUADS; q++)
                [[unroll]] for (uint m = 0; m < 4; m++)
                    FOLD_TO[4 * q + m] += now[i * FOLD_QUADS + q][m] * y;
        }
        b += AHEAD * COLUMN_QUADS;
    } while (done < count);
}
#undef FOLD_NAME
#undef FOLD_FROM
#undef FOLD_TO
#undef FOLD_QUADS
