/* tile.comp - a matrix times the activations of a chunk (engine/kernel.h).
 *
 * A workgroup makes TILE_ROWS rows of TILE_TOKENS tokens. It goes through the
 * columns DEPTH at a time: weights are unpacked to f16, scaled, into one half
 * of workgroup memory, activations copied into the other, while the loads of
 * the next step are in flight; then each subgroup multiplies its part, of
 * SUB_ROWS by SUB_TOKENS. How, is up to the file included for it: with
 * cooperative matrices or without.
 *
 * EXPERTS: the matrix holds p.rows rows of each expert, one after the other, and
 * a workgroup takes a tile of pairs of token and slot that use the same one, as
 * group.comp lists them. SWIGLU reads the token's vector, STORE the pair's; both
 * write the pair's.
 *
 * At the end 16 tokens of all rows at a time pass through workgroup memory, so
 * that the epilogues find rows in order, whatever way the parts are held. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "ctl.glsl"
#include "act.glsl"
#include "format.glsl"
#include "format_half.glsl"

layout(constant_id = 1) const uint TILE_ROWS = 128;
layout(constant_id = 2) const uint TILE_TOKENS = 128;
layout(constant_id = 3) const uint SUB_ROWS = 64;
layout(constant_id = 4) const uint SUB_TOKENS = 32;
layout(constant_id = 5) const uint DEPTH = 64;
layout(constant_id = 6) const uint SIZE = 256;  /* invocations, as constant 0 */
layout(constant_id = 7) const uint LANES = 32;  /* the subgroup size */
layout(constant_id = 8) const uint INT8 = 1;    /* planes that are written */

#ifdef EXPERTS
layout(constant_id = 9) const uint SLOTS = 1;
#endif

layout(push_constant) uniform push_block { push_product p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 3, std430) readonly buffer act_halves { uvec4 halves[]; };
layout(set = 0, binding = 4, std430) readonly buffer act_factors { float factors[]; };

#ifdef EPILOGUE_store
layout(set = 0, binding = 5, std430) writeonly buffer out_block_ { float result[]; };
#elif defined(EPILOGUE_residual)
layout(set = 0, binding = 5, std430) buffer out_block_ { float result[]; };
#define NEXT_X 6
#define NEXT_S 7
#define NEXT_SS 8
layout(set = 0, binding = 9, std430) readonly buffer weight_block { float norm_w[]; };
#else
#define NEXT_X 5
#define NEXT_S 6
#define NEXT_SS 7
#endif
#ifdef EPILOGUE_store
#define GROUPS 6
#else
#define GROUPS 8
#define NEXT_MANY 4
#include "next.glsl"
#endif
#ifdef EXPERTS
layout(set = 0, binding = GROUPS, std430) readonly buffer groups_block { uint groups[]; };
#endif

/* Columns that one invocation unpacks at once, and how often each does so. */
const uint PIECE = UNIT < DEPTH ? UNIT : DEPTH;
const uint PIECES = DEPTH / PIECE;
const uint ITEMS = (TILE_ROWS * PIECES + SIZE - 1) / SIZE;
/* Loads of 8 activations. */
const uint ACTS = (TILE_TOKENS * (DEPTH / 8) + SIZE - 1) / SIZE;
/* A row of workgroup memory, 16 bytes more than its values: rows that are read
 * together then start in different banks. */
const uint STRIDE = DEPTH / 8 + 1;
const uint GROUP_TOKENS = 16; /* that pass through `made` at a time */
const uint MADE_STRIDE = TILE_ROWS + 4;

shared uvec4 tile_w[TILE_ROWS * STRIDE]; /* eight f16 each */
shared uvec4 tile_a[TILE_TOKENS * STRIDE];
shared float made[GROUP_TOKENS * MADE_STRIDE];

#ifdef MATRIX
#include "tile_matrix.glsl"
#else
#include "tile_plain.glsl"
#endif

/* Position in the workgroup; neighbours in it are neighbours in a subgroup. */
uint local()
{
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

uvec2 packed(f16vec4 v)
{
    return uvec2(packFloat2x16(v.xy), packFloat2x16(v.zw));
}

/* PIECE elements of a unit, from its quad on, to place `at` of tile_w, counted
 * in elements. */
void place_piece(uint at, weight_unit w, uint quad)
{
#if UNIT == 4
    /* Half of what tile_w holds in one piece: the other half is a neighbour's. */
    uvec2 own = packed(quad_half(w, 0));
    uvec2 other = subgroupShuffleXor(own, 1);
    if (at % 8 == 0)
        tile_w[at / 8] = uvec4(own, other);
#else
    [[unroll]] for (uint q = 0; q < PIECE / 4; q += 2)
        tile_w[at / 8 + q / 2] =
            uvec4(packed(quad_half(w, quad + q)), packed(quad_half(w, quad + q + 1)));
#endif
}

/* What a workgroup works on: vectors, rows from base on. */
struct task {
    uint base, first, n;
};

#ifdef EXPERTS
task task_of(uint group)
{
    uint at = GROUP_HEAD + GROUP_TILE * group;
    return task(groups[at] * p.rows, groups[at + 1], groups[at + 2]);
}

/* The vector that column i of the tile reads, and the one that it writes. */
uint output_of(task t, uint i)
{
    return groups[p.list_at + t.first + min(i, t.n - 1)];
}

uint input_of(task t, uint i)
{
#ifdef EPILOGUE_store
    return output_of(t, i);
#else
    return output_of(t, i) / SLOTS;
#endif
}
#else
task task_of(uint group)
{
    uint first = group * TILE_TOKENS;
    return task(0, first, ctl.n_tokens - first);
}

uint output_of(task t, uint i)
{
    return t.first + i;
}

uint input_of(task t, uint i)
{
    return t.first + i;
}
#endif

/* Where in `halves` this invocation's activations start. The rows have zeros
 * beyond the last column, and there is room beyond the last one. */
void place_acts(task t, out uint from[ACTS])
{
    const uint stride = (p.cols + HALF_COLS - 1) / HALF_COLS * (HALF_COLS / 8);
    [[unroll]] for (uint i = 0; i < ACTS; i++) {
        uint item = i * SIZE + local();
        uint column = min(item / (DEPTH / 8), TILE_TOKENS - 1);
        from[i] = input_of(t, column) * stride + item % (DEPTH / 8);
    }
}

/* Loads the columns from k on, for unpacking later. */
void fetch(uint k, uint base, uint from[ACTS], out weight_unit w[ITEMS],
           out uvec4 a[ACTS])
{
    [[unroll]] for (uint i = 0; i < ITEMS; i++) {
        uint item = i * SIZE + local();
        uint row = min(gl_WorkGroupID.y * TILE_ROWS + item / PIECES, p.rows - 1);
        uint col = min(k + item % PIECES * PIECE, p.cols - 1);
        w[i] = unit_load(base + row, col / UNIT, p.units);
    }
    [[unroll]] for (uint i = 0; i < ACTS; i++)
        a[i] = halves[from[i] + k / 8];
}

/* Unpacks what fetch(k) has loaded. */
void place(uint k, weight_unit w[ITEMS], uvec4 a[ACTS])
{
    [[unroll]] for (uint i = 0; i < ITEMS; i++) {
        uint item = i * SIZE + local();
        uint at = item / PIECES * STRIDE * 8 + item % PIECES * PIECE;
        uint quad = PIECE == UNIT ? 0 : (k + item % PIECES * PIECE) % UNIT / 4;
        if (TILE_ROWS * PIECES % SIZE == 0 || item < TILE_ROWS * PIECES)
            place_piece(at, w[i], quad);
    }
    [[unroll]] for (uint i = 0; i < ACTS; i++) {
        uint item = i * SIZE + local();
        if (TILE_TOKENS * (DEPTH / 8) % SIZE == 0 || item < TILE_TOKENS * (DEPTH / 8))
            tile_a[item / (DEPTH / 8) * STRIDE + item % (DEPTH / 8)] = a[i];
    }
}

/* ---- epilogues: 32 rows of a few tokens of the group, or 32 gate and 32 up - */

#ifdef EPILOGUE_swiglu
const uint BLOCK_ROWS = 2 * ACT_BLOCK;
#else
const uint BLOCK_ROWS = ACT_BLOCK;
#endif
const uint AT_ONCE = 4;

/* The vectors from column `from` of the tile on: where they go, whether there are
 * any, and what their values are to be multiplied with. */
struct few {
    uint vector[AT_ONCE];
    bool there[AT_ONCE];
    float factor[AT_ONCE];
};

few few_of(task t, uint from)
{
    few f;
    [[unroll]] for (uint j = 0; j < AT_ONCE; j++) {
        uint i = min(from + j, t.n - 1);
        f.there[j] = from + j < t.n;
        f.vector[j] = output_of(t, i);
        f.factor[j] = factors[input_of(t, i)] / HALF_SCALE;
    }
    return f;
}

/* column: of `made`, for the first of them. */
void finish_block(few f, uint row, uint column)
{
#ifdef EPILOGUE_store
    for (uint i = gl_SubgroupInvocationID; i < BLOCK_ROWS; i += gl_SubgroupSize) {
        uint at = gl_WorkGroupID.y * TILE_ROWS + row + i;
        [[unroll]] for (uint j = 0; j < AT_ONCE; j++)
            if (at < p.rows && f.there[j])
                result[f.vector[j] * p.out_stride + p.out_offset + at] =
                    made[(column + j) * MADE_STRIDE + row + i] * f.factor[j];
    }
#else
    float v[AT_ONCE][NEXT_EACH], w[NEXT_EACH];
    [[unroll]] for (uint k = 0; k < NEXT_EACH; k++) {
        uint i = next_index(k), at = gl_WorkGroupID.y * TILE_ROWS + row + i;
        bool in_block = i < ACT_BLOCK;
#ifdef EPILOGUE_swiglu
        w[k] = 1.0;
#else
        w[k] = in_block ? norm_w[at] : 0.0;
#endif
        [[unroll]] for (uint j = 0; j < AT_ONCE; j++) {
            uint from = (column + j) * MADE_STRIDE + row + i;
            v[j][k] = 0.0;
            if (!in_block)
                continue;
#ifdef EPILOGUE_swiglu
            float gate = made[from] * f.factor[j];
            v[j][k] = gate / (1.0 + exp(-gate)) * made[from + ACT_BLOCK] * f.factor[j];
#else
            v[j][k] = result[f.vector[j] * p.rows + at] + made[from] * f.factor[j];
#endif
        }
#ifdef EPILOGUE_residual
        [[unroll]] for (uint j = 0; j < AT_ONCE; j++)
            if (in_block && f.there[j])
                result[f.vector[j] * p.rows + at] = v[j][k];
#endif
    }
    next_write_many(f.vector, f.there,
                    (gl_WorkGroupID.y * TILE_ROWS + row) / BLOCK_ROWS,
                    p.rows / (BLOCK_ROWS / ACT_BLOCK), v, w);
#endif
}

void finish_group(task t, uint from)
{
    const uint blocks = TILE_ROWS / BLOCK_ROWS;
    for (uint b = gl_SubgroupID; b < GROUP_TOKENS / AT_ONCE * blocks;
         b += gl_NumSubgroups) {
        uint i = b / blocks * AT_ONCE, row = b % blocks * BLOCK_ROWS;
        if (from + i < t.n && gl_WorkGroupID.y * TILE_ROWS + row < p.rows)
            finish_block(few_of(t, from + i), row, i);
    }
}

void main()
{
#ifdef EXPERTS
    if (ctl.stop != 0 || gl_WorkGroupID.x >= groups[0])
        return;
#else
    if (ctl.stop != 0 || gl_WorkGroupID.x * TILE_TOKENS >= ctl.n_tokens)
        return;
#endif
    const uint across = TILE_TOKENS / SUB_TOKENS;
    uint sub_row = gl_SubgroupID / across * SUB_ROWS;
    uint sub_token = gl_SubgroupID % across * SUB_TOKENS;
    task t = task_of(gl_WorkGroupID.x);
    weight_unit w[ITEMS];
    uvec4 a[ACTS];
    uint from[ACTS];
    part_t part;
    part_clear(part);
    place_acts(t, from);
    fetch(0, t.base, from, w, a);
    for (uint k = 0; k < p.cols; k += DEPTH) {
        barrier();
        place(k, w, a);
        barrier();
        if (k + DEPTH < p.cols)
            fetch(k + DEPTH, t.base, from, w, a);
        part_multiply(part, sub_row, sub_token);
    }
    [[unroll]] for (uint g = 0; g < TILE_TOKENS / GROUP_TOKENS; g++) {
        if (g * GROUP_TOKENS / SUB_TOKENS * SUB_TOKENS == sub_token)
            part_show(part, g % (SUB_TOKENS / GROUP_TOKENS), sub_row);
        barrier();
        finish_group(t, g * GROUP_TOKENS);
        barrier();
    }
}
