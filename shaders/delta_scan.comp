/* delta_scan.comp - the chunked delta rule, step 3 of 4: the state moves from
 * sub-chunk to sub-chunk. A workgroup owns COLUMNS value columns of a v head.
 *
 * Three products a sub-chunk, all of the shape: rows from memory times columns
 * in workgroup memory. S is [keys][columns]:
 *     [K; Q] S      rows of K: R = V - exp(G) K S; of Q: exp(G) Q S
 *     [T; P T] R    rows of T: new = exp(G_last - G) T R; of Q: the readout
 *     K^T new       added to exp(G_last) S
 * An invocation has a tile of ROWS rows by four columns in the first two and
 * one of STATE_QUADS quads of keys in the third, which is its part of S. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"

layout(constant_id = 2) const uint COLUMNS = 16; /* a multiple of 4, divides 128 */
layout(constant_id = 3) const uint ROWS = 4;     /* 4 or 8, at least CHUNK / 16 */
layout(constant_id = 4) const uint AHEAD = 8;    /* rows loaded ahead: 4 or 8 */
layout(constant_id = 5) const uint HEADS = 1;    /* divides n_v / n_k */

layout(push_constant) uniform push_block { push_delta p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly restrict buffer kq_block { vec4 kq[]; };
layout(set = 0, binding = 2, std430) readonly restrict buffer k_block { vec4 k_rows[]; };
layout(set = 0, binding = 3, std430) readonly restrict buffer solved_block {
    vec4 solved[];
};
layout(set = 0, binding = 4, std430) readonly restrict buffer pace_block { vec4 pace[]; };
layout(set = 0, binding = 5, std430) restrict buffer v_block { vec4 v_rows[]; };
layout(set = 0, binding = 6, std430) restrict buffer state_block { vec4 state[]; };
#include "delta_chunk.glsl"

const uint COLUMN_QUADS = COLUMNS / 4;
const uint ROW_QUADS = ROWS / 4;
/* Invocations beside each other in a column: spec constant 0 is APART *
 * COLUMN_QUADS * HEADS. The quads of one are that far apart. */
const uint APART = 2 * CHUNK / ROWS;
const uint STATE_QUADS = HEAD_QUADS / APART;

/* Of each head: S, then R, then the rows that K^T is multiplied with. */
const uint REST = STATE_DIM * COLUMN_QUADS;
const uint OWN = REST + CHUNK * COLUMN_QUADS;
shared vec4 fold_s[HEADS * OWN];

/* Where an invocation works. */
struct place {
    uint head, k_head;
    uint part;      /* first quad of rows, and of keys */
    uint values;    /* quad of values among those of all heads */
    uint fold;      /* of its head and columns in fold_s */
};

vec4 kept[4 * STATE_QUADS]; /* this invocation's part of the state, key by key */
vec4 sum[ROWS];             /* its tile of the other products */

#define FOLD_NAME fold_state
#define FOLD_FROM kq
#define FOLD_TO sum
#define FOLD_QUADS ROW_QUADS
#include "delta_fold.glsl"
#define FOLD_NAME fold_rest
#define FOLD_FROM solved
#define FOLD_TO sum
#define FOLD_QUADS ROW_QUADS
#include "delta_fold.glsl"
#define FOLD_NAME fold_new
#define FOLD_FROM k_rows
#define FOLD_TO kept
#define FOLD_QUADS STATE_QUADS
#include "delta_fold.glsl"

place find_place(uint local)
{
    const uint BLOCKS = STATE_DIM / COLUMNS;
    uint column = local % COLUMN_QUADS, own = local / (APART * COLUMN_QUADS);
    uint unit = gl_WorkGroupID.x / BLOCKS, rep = p.n_v / p.n_k;
    place at;
    at.k_head = unit % p.n_k;
    uint reader = unit / p.n_k * HEADS + own; /* of its k head */
    at.head = p.grouped_heads != 0 ? at.k_head * rep + reader : reader * p.n_k + at.k_head;
    at.part = local / COLUMN_QUADS % APART;
    at.values =
        at.head * HEAD_QUADS + gl_WorkGroupID.x % BLOCKS * COLUMN_QUADS + column;
    at.fold = own * OWN + column;
    return at;
}

/* Four columns of four keys; memory has a column's keys beside each other. */
uint state_at(place at, uint n, uint key_quad)
{
    return (4 * at.values + n) * HEAD_QUADS + key_quad;
}

void state_load(place at)
{
    [[unroll]] for (uint q = 0; q < STATE_QUADS; q++) {
        uint keys = at.part + q * APART;
        mat4 s = transpose(mat4(state[state_at(at, 0, keys)], state[state_at(at, 1, keys)],
                                state[state_at(at, 2, keys)], state[state_at(at, 3, keys)]));
        [[unroll]] for (uint m = 0; m < 4; m++) {
            kept[4 * q + m] = s[m];
            fold_s[at.fold + (4 * keys + m) * COLUMN_QUADS] = s[m];
        }
    }
}

void state_store(place at)
{
    [[unroll]] for (uint q = 0; q < STATE_QUADS; q++) {
        mat4 s = transpose(mat4(kept[4 * q], kept[4 * q + 1], kept[4 * q + 2],
                                kept[4 * q + 3]));
        [[unroll]] for (uint n = 0; n < 4; n++)
            state[state_at(at, n, at.part + q * APART)] = s[n];
    }
}

/* The first of the workgroup's values of a token, as quads. */
uint value_at(place at, uint token)
{
    return token * p.n_v * HEAD_QUADS + at.values;
}

/* After [K; Q] S: rows of K leave R behind. */
void use_state(place at, uint sub, uint decays)
{
    [[unroll]] for (uint q = 0; q < ROW_QUADS; q++) {
        uint quad = at.part + q * APART;
        vec4 decay = pace[decays + quad % CHUNK_QUADS], value[4];
        if (quad < CHUNK_QUADS) {
            [[unroll]] for (uint m = 0; m < 4; m++)
                value[m] = v_rows[value_at(at, sub * CHUNK + 4 * quad + m)];
            [[unroll]] for (uint m = 0; m < 4; m++) {
                fold_s[at.fold + REST + (4 * quad + m) * COLUMN_QUADS] =
                    value[m] - decay[m] * sum[4 * q + m];
                sum[4 * q + m] = vec4(0.0);
            }
        } else {
            [[unroll]] for (uint m = 0; m < 4; m++)
                sum[4 * q + m] *= decay[m];
        }
    }
}

/* After [T; P T] R, which rows of Q had added to what the state gave. */
void use_rest(place at, uint sub, uint decays)
{
    [[unroll]] for (uint q = 0; q < ROW_QUADS; q++) {
        uint quad = at.part + q * APART, row = 4 * (quad % CHUNK_QUADS);
        if (quad < CHUNK_QUADS) {
            vec4 decay = pace[decays + CHUNK_QUADS + quad];
            [[unroll]] for (uint m = 0; m < 4; m++)
                fold_s[at.fold + REST + (row + m) * COLUMN_QUADS] =
                    decay[m] * sum[4 * q + m];
        } else {
            [[unroll]] for (uint m = 0; m < 4; m++)
                v_rows[value_at(at, sub * CHUNK + row + m)] = sum[4 * q + m];
        }
    }
}

/* S moves past a sub-chunk, of which `used` tokens are looked at: its own,
 * rounded up to FOLD_STEP. */
void advance(place at, uint sub, uint used)
{
    uint decays = (sub * p.n_v + at.head) * (2 * CHUNK_QUADS);
    /* First and last rows of the tile, in K and Q alike. */
    uint row = 4 * (at.part % CHUNK_QUADS);
    uint last = 4 * ((at.part + (ROW_QUADS - 1) * APART) % CHUNK_QUADS);
    float decay = pace[decays + CHUNK_QUADS - 1].w;
    if (row < used) {
        [[unroll]] for (uint i = 0; i < ROWS; i++)
            sum[i] = vec4(0.0);
        fold_state((sub * p.n_k + at.k_head) * STATE_DIM * (2 * CHUNK_QUADS) + at.part,
                   2 * CHUNK_QUADS, at.fold, STATE_DIM);
        use_state(at, sub, decays);
    }
    barrier();
    if (row < used) {
        uint count = (last + 4 + FOLD_STEP - 1) / FOLD_STEP * FOLD_STEP;
        fold_rest(decays * CHUNK + at.part, 2 * CHUNK_QUADS, at.fold + REST,
                  min(count, used));
    }
    barrier(); /* R has been read */
    if (row < used)
        use_rest(at, sub, decays);
    barrier();
    [[unroll]] for (uint i = 0; i < 4 * STATE_QUADS; i++)
        kept[i] *= decay;
    fold_new((sub * CHUNK * p.n_k + at.k_head) * HEAD_QUADS + at.part, p.n_k * HEAD_QUADS,
             at.fold + REST, used);
    [[unroll]] for (uint i = 0; i < 4 * STATE_QUADS; i++)
        fold_s[at.fold + (4 * (at.part + i / 4 * APART) + i % 4) * COLUMN_QUADS] = kept[i];
    barrier();
}

void main()
{
    if (ctl.stop != 0)
        return;
    uint n_tokens = ctl.n_tokens;
    place at = find_place(gl_LocalInvocationIndex);
    state_load(at);
    barrier();
    uint sub = 0;
    do {
        uint count = min(CHUNK, n_tokens - sub * CHUNK);
        advance(at, sub, (count + FOLD_STEP - 1) / FOLD_STEP * FOLD_STEP);
    } while (++sub * CHUNK < n_tokens);
    state_store(at);
}
