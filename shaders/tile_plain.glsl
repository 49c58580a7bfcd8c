/* tile_plain.glsl - a subgroup's part of a tile in plain arithmetic, for devices
 * without matrix units. Invocation l of a subgroup holds rows l % 8 + 8i of
 * tokens l / 8 + (LANES / 8) j. */
const uint ROW_LANES = 8, TOKEN_LANES = LANES / ROW_LANES;
const uint ROWS_EACH = SUB_ROWS / ROW_LANES, TOKENS_EACH = SUB_TOKENS / TOKEN_LANES;

struct part_t {
    float sum[ROWS_EACH][TOKENS_EACH];
};

void part_clear(out part_t part)
{
    [[unroll]] for (uint i = 0; i < ROWS_EACH; i++)
        [[unroll]] for (uint j = 0; j < TOKENS_EACH; j++)
            part.sum[i][j] = 0.0;
}

void eight(uvec4 h, out vec4 low, out vec4 high)
{
    low = vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y));
    high = vec4(unpackHalf2x16(h.z), unpackHalf2x16(h.w));
}

void part_multiply(inout part_t part, uint row, uint token)
{
    uint r = row + gl_SubgroupInvocationID % ROW_LANES;
    uint t = token + gl_SubgroupInvocationID / ROW_LANES;
    for (uint k = 0; k < DEPTH / 8; k++) {
        vec4 low[ROWS_EACH], high[ROWS_EACH];
        [[unroll]] for (uint i = 0; i < ROWS_EACH; i++)
            eight(tile_w[(r + i * ROW_LANES) * STRIDE + k], low[i], high[i]);
        [[unroll]] for (uint j = 0; j < TOKENS_EACH; j++) {
            vec4 a, b;
            eight(tile_a[(t + j * TOKEN_LANES) * STRIDE + k], a, b);
            [[unroll]] for (uint i = 0; i < ROWS_EACH; i++)
                part.sum[i][j] += dot(low[i], a) + dot(high[i], b);
        }
    }
}

/* The part's tokens 16 * group .. + 15 into `made`. */
void part_show(inout part_t part, uint group, uint row)
{
    uint r = row + gl_SubgroupInvocationID % ROW_LANES;
    uint t = gl_SubgroupInvocationID / ROW_LANES;
    [[unroll]] for (uint j = 0; j < TOKENS_EACH; j++)
        if ((t + j * TOKEN_LANES) / GROUP_TOKENS == group)
            [[unroll]] for (uint i = 0; i < ROWS_EACH; i++)
                made[(t + j * TOKEN_LANES) % GROUP_TOKENS * MADE_STRIDE + r +
                     i * ROW_LANES] = part.sum[i][j];
}
