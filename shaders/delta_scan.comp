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
 * COLUMN_QUADS. The quads of one are that far apart. */
const uint APART = 2 * CHUNK / ROWS;
const uint STATE_QUADS = HEAD_QUADS / APART;

shared vec4 fold_s[(STATE_DIM + 2 * CHUNK) * COLUMN_QUADS];
const uint REST = STATE_DIM * COLUMN_QUADS;        /* R */
const uint NEW = (STATE_DIM + CHUNK) * COLUMN_QUADS;

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

/* Four columns of four keys; memory has a column's keys beside each other. */
uint state_at(uint n, uint key_quad, uint column)
{
    return (gl_WorkGroupID.x * COLUMNS + 4 * column + n) * HEAD_QUADS + key_quad;
}

void state_load(uint part, uint column)
{
    [[unroll]] for (uint q = 0; q < STATE_QUADS; q++) {
        uint keys = part + q * APART;
        mat4 s = transpose(mat4(state[state_at(0, keys, column)],
                                state[state_at(1, keys, column)],
                                state[state_at(2, keys, column)],
                                state[state_at(3, keys, column)]));
        [[unroll]] for (uint m = 0; m < 4; m++) {
            kept[4 * q + m] = s[m];
            fold_s[(4 * keys + m) * COLUMN_QUADS + column] = s[m];
        }
    }
}

void state_store(uint part, uint column)
{
    [[unroll]] for (uint q = 0; q < STATE_QUADS; q++) {
        mat4 s = transpose(mat4(kept[4 * q], kept[4 * q + 1], kept[4 * q + 2],
                                kept[4 * q + 3]));
        [[unroll]] for (uint n = 0; n < 4; n++)
            state[state_at(n, part + q * APART, column)] = s[n];
    }
}

/* Where the workgroup's values of a token are. */
uint value_at(uint token, uint column)
{
    return token * p.n_v * HEAD_QUADS + gl_WorkGroupID.x * COLUMN_QUADS + column;
}

/* After [K; Q] S: rows of K leave R behind. */
void use_state(uint sub, uint part, uint column, uint decays)
{
    [[unroll]] for (uint q = 0; q < ROW_QUADS; q++) {
        uint quad = part + q * APART, at = quad % CHUNK_QUADS;
        vec4 decay = pace[decays + at];
        [[unroll]] for (uint m = 0; m < 4; m++) {
            sum[4 * q + m] *= decay[m];
            if (quad < CHUNK_QUADS) {
                uint i = 4 * at + m;
                fold_s[REST + i * COLUMN_QUADS + column] =
                    v_rows[value_at(sub * CHUNK + i, column)] - sum[4 * q + m];
                sum[4 * q + m] = vec4(0.0);
            }
        }
    }
}

/* After [T; P T] R, which rows of Q had added to what the state gave. */
void use_rest(uint sub, uint part, uint column, uint decays)
{
    [[unroll]] for (uint q = 0; q < ROW_QUADS; q++) {
        uint quad = part + q * APART, at = quad % CHUNK_QUADS;
        vec4 decay = pace[decays + CHUNK_QUADS + at];
        [[unroll]] for (uint m = 0; m < 4; m++) {
            uint i = 4 * at + m;
            if (quad < CHUNK_QUADS)
                fold_s[NEW + i * COLUMN_QUADS + column] = decay[m] * sum[4 * q + m];
            else
                v_rows[value_at(sub * CHUNK + i, column)] = sum[4 * q + m];
        }
    }
}

/* S moves past a sub-chunk, of which `used` tokens are looked at: its own,
 * rounded up to FOLD_STEP. */
void advance(uint sub, uint part, uint column, uint used)
{
    uint head = gl_WorkGroupID.x * COLUMNS / STATE_DIM, k_head = key_head(head);
    uint decays = (sub * p.n_v + head) * (2 * CHUNK_QUADS);
    /* First and last rows of the tile, in K and Q alike. */
    uint row = 4 * (part % CHUNK_QUADS);
    uint last = 4 * ((part + (ROW_QUADS - 1) * APART) % CHUNK_QUADS);
    if (row < used) {
        [[unroll]] for (uint i = 0; i < ROWS; i++)
            sum[i] = vec4(0.0);
        fold_state((sub * p.n_k + k_head) * STATE_DIM * (2 * CHUNK_QUADS) + part,
                   2 * CHUNK_QUADS, column, STATE_DIM);
        use_state(sub, part, column, decays);
    }
    barrier();
    if (row < used) {
        uint count = (last + 4 + FOLD_STEP - 1) / FOLD_STEP * FOLD_STEP;
        fold_rest(decays * CHUNK + part, 2 * CHUNK_QUADS, REST + column, min(count, used));
        use_rest(sub, part, column, decays);
    }
    barrier();
    float decay = pace[decays + CHUNK_QUADS - 1].w;
    [[unroll]] for (uint i = 0; i < 4 * STATE_QUADS; i++)
        kept[i] *= decay;
    fold_new((sub * CHUNK * p.n_k + k_head) * HEAD_QUADS + part, p.n_k * HEAD_QUADS,
             NEW + column, used);
    [[unroll]] for (uint i = 0; i < 4 * STATE_QUADS; i++)
        fold_s[(4 * (part + i / 4 * APART) + i % 4) * COLUMN_QUADS + column] = kept[i];
    barrier();
}

void main()
{
    if (ctl.stop != 0)
        return;
    uint n_tokens = ctl.n_tokens;
    uint part = gl_LocalInvocationIndex / COLUMN_QUADS;
    uint column = gl_LocalInvocationIndex % COLUMN_QUADS;
    state_load(part, column);
    barrier();
    uint sub = 0;
    do {
        uint count = min(CHUNK, n_tokens - sub * CHUNK);
        advance(sub, part, column, (count + FOLD_STEP - 1) / FOLD_STEP * FOLD_STEP);
    } while (++sub * CHUNK < n_tokens);
    state_store(part, column);
}
