/* delta.comp - the recurrent mixer between its projections and its out product:
 * causal convolution, SiLU, l2 norm, gates, the gated delta rule, and the
 * gated result as the next activation vector, for all tokens of a pass.
 *
 * A workgroup owns COLUMNS value columns of one v head and keeps that slice of
 * the state in registers over the tokens. PARTS neighbouring invocations share
 * EACH columns, each holding every PARTS-th quad of keys. Tokens are taken in
 * tiles: convolution of the tile into workgroup memory, the scalars of each
 * step, the steps one after the other without a barrier, the results.
 *
 * Per token and column, S the old state, k and q not yet normalised, ik and iq
 * the factors that normalise them (iq with 1/sqrt(STATE_DIM) in it):
 *     d = beta (v - decay S.(ik k))        S' = decay S + ik d k
 *     o = S'.(iq q) = decay iq S.q + iq ik (k.q) d
 * so both dot products are with the old state and are reduced together. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "act.glsl"
#include "reduce.glsl"
#include "wide.glsl"

layout(constant_id = 1) const uint INT8 = 0;
layout(constant_id = 2) const uint COLUMNS = 32; /* 32, 64 or 128 */
layout(constant_id = 3) const uint PARTS = 8;    /* power of two, <= subgroup */
layout(constant_id = 4) const uint EACH = 1;     /* columns an invocation and pass */
layout(constant_id = 5) const uint PASSES = 1;

layout(push_constant) uniform push_block { push_delta p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer proj_block { float proj[]; };
layout(set = 0, binding = 1, std430) readonly buffer proj_quads { vec4 proj4[]; };
layout(set = 0, binding = 1, std430) readonly buffer proj_wides { WIDE_VEC proj_wide[]; };
layout(set = 0, binding = 2, std430) buffer history_block { WIDE_VEC history[]; };
layout(set = 0, binding = 3, std430) readonly buffer taps_block { WIDE_VEC taps_wide[]; };
layout(set = 0, binding = 4, std430) readonly buffer dt_block { float dt_bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer a_block { float ssm_a[]; };
layout(set = 0, binding = 6, std430) readonly buffer norm_block { vec4 ssm_norm[]; };
layout(set = 0, binding = 7, std430) buffer state_block { WIDE_VEC state[]; };
#define BLOCK_X 8
#define BLOCK_S 9
#define BLOCK_SS 10
#include "block.glsl"

/* Vectors of WIDE channels or keys: of a head, of the own values. */
const uint HEAD_VECS = STATE_DIM / WIDE;
const uint OWN_VECS = COLUMNS / WIDE;
const uint OWN_QUADS = COLUMNS / 4;
const uint VECS = HEAD_VECS / PARTS;       /* of keys, an invocation */
const uint QUADS = VECS * WIDE_QUADS;
const uint HELD = EACH * QUADS;            /* quads of state in registers */
const uint SLICES = STATE_DIM / COLUMNS;   /* workgroups a head */
/* Channel vectors of a token: of q, of k, of the own values. */
const uint ITEMS = 2 * HEAD_VECS + OWN_VECS;
const uint TILE = COLUMNS > 64 ? 6 : 8;    /* tokens; at most 16 KiB below */
const uint GROUP = COLUMNS / PASSES / EACH * PARTS; /* spec constant 0 */
const uint SHARES = GROUP < 2 * ITEMS ? 1 : GROUP / ITEMS < TILE ? GROUP / ITEMS : TILE;

shared WIDE_VEC made_s[TILE * ITEMS];      /* convolved */
shared vec4 out_s[TILE * OWN_QUADS];
shared vec4 gate_s[TILE * OWN_QUADS];      /* what the results are multiplied by */
shared vec2 pace_s[TILE];                  /* decay, beta */
/* decay, then factors: v in d ik, S.k in d ik, S.q in o */
shared vec4 step_s[TILE];
shared float mix_s[TILE];                  /* d ik in o */

vec4 held[HELD]; /* this invocation's part of the state, column by column */

/* a / b for small numbers; CPU devices divide integers lane by lane. */
uint small_div(uint a, uint b)
{
    return uint((float(a) + 0.5) / float(b));
}

vec4 silu(vec4 v)
{
    return v / (1.0 + exp(-v));
}

/* Raw channels of token t; t < 0 is before this pass. */
vec4[WIDE_QUADS] channels(int t, uint vec)
{
    if (t >= 0)
        return wide_quads(proj_wide[uint(t) * (p.proj_stride / WIDE) + vec]);
    return wide_quads(history[(ctl.side * 3 + uint(3 + t)) * (p.conv_dim / WIDE) + vec]);
}

/* Convolution of one vector of channels for tokens [from, to) of the tile that
 * starts with token `first`; to > from. The last inputs of the pass become the
 * history of the next one. */
void convolve_vec(uint item, uint vec, uint first, uint from, uint to, bool owner)
{
    vec4 taps[4 * WIDE_QUADS]; /* of one channel each */
    [[unroll]] for (uint i = 0; i < 4; i++) {
        vec4[WIDE_QUADS] some = wide_quads(taps_wide[vec * 4 + i]);
        [[unroll]] for (uint j = 0; j < WIDE_QUADS; j++)
            taps[i * WIDE_QUADS + j] = some[j];
    }
    int t0 = int(first + from);
    vec4 x0[WIDE_QUADS] = channels(t0 - 3, vec);
    vec4 x1[WIDE_QUADS] = channels(t0 - 2, vec);
    vec4 x2[WIDE_QUADS] = channels(t0 - 1, vec);
    uint t = from;
    do {
        uint at = (first + t) * (p.proj_stride / WIDE) + vec;
        vec4 x3[WIDE_QUADS] = wide_quads(proj_wide[at]);
        vec4 y[WIDE_QUADS];
        [[unroll]] for (uint j = 0; j < WIDE_QUADS; j++) {
            mat4 w = transpose(mat4(taps[4 * j], taps[4 * j + 1], taps[4 * j + 2],
                                    taps[4 * j + 3]));
            y[j] = silu(w[0] * x0[j] + w[1] * x1[j] + w[2] * x2[j] + w[3] * x3[j]);
        }
        made_s[t * ITEMS + item] = wide_pack(y);
        x0 = x1;
        x1 = x2;
        x2 = x3;
    } while (++t < to);
    if (owner && first + to == ctl.n_tokens) {
        uint row = (1 - ctl.side) * 3, vecs = p.conv_dim / WIDE;
        history[row * vecs + vec] = wide_pack(x0);
        history[(row + 1) * vecs + vec] = wide_pack(x1);
        history[(row + 2) * vecs + vec] = wide_pack(x2);
    }
}

/* All channels that this workgroup reads, for the tile's tokens. Invocations
 * beyond one per vector take a share of the tokens. */
void convolve_tile(uint local, uint first, uint count)
{
    uint head = gl_WorkGroupID.x / SLICES, slice = gl_WorkGroupID.x % SLICES;
    uint rep = small_div(p.n_v, p.n_k);
    bool grouped = p.grouped_heads != 0;
    uint k_head = grouped ? small_div(head, rep) : head - small_div(head, p.n_k) * p.n_k;
    /* A k head's history belongs to the first v head that reads it. */
    bool first_reader = slice == 0 && head == (grouped ? k_head * rep : k_head);
    uint per = (count + SHARES - 1) / SHARES;
    uint base = 0;
    do {
        uint i = base + local;
        uint item = i % ITEMS, from = i / ITEMS * per;
        uint vec = item;
        if (item < HEAD_VECS)
            vec += k_head * HEAD_VECS;
        else if (item < 2 * HEAD_VECS)
            vec += (p.n_k + k_head - 1) * HEAD_VECS;
        else
            vec += (2 * p.n_k + head - 2) * HEAD_VECS + slice * OWN_VECS;
        if (from < count && (SHARES * ITEMS % GROUP == 0 || i < SHARES * ITEMS))
            convolve_vec(item, vec, first, from, min(from + per, count),
                         item >= 2 * HEAD_VECS || first_reader);
        base += GROUP;
    } while (base < SHARES * ITEMS);
}

/* What does not wait for the convolution. It is begun by other subgroups than
 * that, so that their loads are under way together. */
void gate_tile(uint local, uint first, uint count)
{
    uint head = gl_WorkGroupID.x / SLICES, slice = gl_WorkGroupID.x % SLICES;
    uint own = (p.z_offset + head * STATE_DIM + slice * COLUMNS) / 4;
    uint base = 0;
    do {
        uint i = base + (local ^ GROUP / 2), c = i % OWN_QUADS;
        if (i < count * OWN_QUADS) {
            vec4 z = proj4[(first + i / OWN_QUADS) * (p.proj_stride / 4) + own + c];
            gate_s[i] = ssm_norm[slice * OWN_QUADS + c] * silu(z);
        }
        base += GROUP;
    } while (base < count * OWN_QUADS);
    base = 0;
    do {
        uint t = base + GROUP - 1 - local;
        if (t < count) {
            uint row = (first + t) * p.proj_stride;
            uint b = row + p.beta_offset + head, a = row + p.alpha_offset + head;
            if (p.ba_grouped != 0) {
                uint rep = small_div(p.n_v, p.n_k);
                b += small_div(head, rep) * rep;
                a = b + rep;
            }
            float x = proj[a] + dt_bias[head];
            float softplus = max(x, 0.0) + log(1.0 + exp(-abs(x)));
            pace_s[t] = vec2(exp(ssm_a[head] * softplus), 1.0 / (1.0 + exp(-proj[b])));
        }
        base += GROUP;
    } while (base < count);
}

/* The scalars of one step, by eight neighbouring invocations. */
void prepare_step(uint t, uint lane, bool store)
{
    vec4 s = vec4(0.0);
    [[unroll]] for (uint i = 0; i < HEAD_VECS; i += 8) {
        vec4 q[WIDE_QUADS] = wide_quads(made_s[t * ITEMS + i + lane]);
        vec4 k[WIDE_QUADS] = wide_quads(made_s[t * ITEMS + HEAD_VECS + i + lane]);
        [[unroll]] for (uint j = 0; j < WIDE_QUADS; j++)
            s += vec4(dot(q[j], q[j]), dot(k[j], k[j]), dot(q[j], k[j]), 0.0);
    }
    s = lanes_add(s, 8);
    float iq = inversesqrt(float(STATE_DIM)) / max(sqrt(s.x), p.eps);
    float ik = 1.0 / max(sqrt(s.y), p.eps);
    float decay = pace_s[t].x, beta = pace_s[t].y;
    if (store && lane == 0) {
        step_s[t] = vec4(decay, beta * ik, beta * decay * ik * ik, decay * iq);
        mix_s[t] = iq * s.z;
    }
}

/* One token of this invocation's columns, `column` the first of them. */
void advance(uint t, uint part, uint column)
{
    vec4 k[QUADS], q[QUADS], v[WIDE_QUADS];
    [[unroll]] for (uint n = 0; n < VECS; n++) {
        uint at = t * ITEMS + n * PARTS + part;
        vec4 some_q[WIDE_QUADS] = wide_quads(made_s[at]);
        vec4 some_k[WIDE_QUADS] = wide_quads(made_s[at + HEAD_VECS]);
        [[unroll]] for (uint j = 0; j < WIDE_QUADS; j++) {
            q[n * WIDE_QUADS + j] = some_q[j];
            k[n * WIDE_QUADS + j] = some_k[j];
        }
    }
    vec4 f = step_s[t];
    float mix_d = mix_s[t];
    float o = 0.0;
    [[unroll]] for (uint r = 0; r < EACH; r++) {
        uint c = column + r;
        if (r % WIDE == 0)
            v = wide_quads(made_s[t * ITEMS + 2 * HEAD_VECS + c / WIDE]);
        vec4 sk = vec4(0.0), sq = vec4(0.0);
        [[unroll]] for (uint n = 0; n < QUADS; n++) {
            sk += held[r * QUADS + n] * k[n];
            sq += held[r * QUADS + n] * q[n];
        }
        float dot_k = lanes_add(sk.x + sk.y + sk.z + sk.w, PARTS);
        float dot_q = lanes_add(sq.x + sq.y + sq.z + sq.w, PARTS);
        uint at = EACH < WIDE ? c : r; /* a constant where that can be */
        float d = f.y * v[at / 4 % WIDE_QUADS][at % 4] - f.z * dot_k;
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            held[r * QUADS + n] = f.x * held[r * QUADS + n] + d * k[n];
        /* Lane r of the run keeps result r: one store for PARTS columns. */
        if (r % PARTS == part)
            o = f.w * dot_q + mix_d * d;
        if (r % PARTS == PARTS - 1 || r == EACH - 1) {
            uint own = r / PARTS * PARTS + part;
            if (EACH % PARTS == 0 || own < EACH)
                out_s[t * OWN_QUADS + (column + own) / 4][(column + own) % 4] = o;
        }
    }
}

void state_load(uint row, uint part)
{
    [[unroll]] for (uint i = 0; i < EACH * VECS; i++) {
        vec4 some[WIDE_QUADS] =
            wide_quads(state[(row + i / VECS) * HEAD_VECS + i % VECS * PARTS + part]);
        [[unroll]] for (uint j = 0; j < WIDE_QUADS; j++)
            held[i * WIDE_QUADS + j] = some[j];
    }
}

void state_store(uint row, uint part)
{
    [[unroll]] for (uint i = 0; i < EACH * VECS; i++) {
        vec4 some[WIDE_QUADS];
        [[unroll]] for (uint j = 0; j < WIDE_QUADS; j++)
            some[j] = held[i * WIDE_QUADS + j];
        state[(row + i / VECS) * HEAD_VECS + i % VECS * PARTS + part] = wide_pack(some);
    }
}

/* Gated results of the tile, eight invocations a block. */
void emit_tile(uint local, uint first, uint count)
{
    uint own = gl_WorkGroupID.x * OWN_QUADS;
    uint base = 0;
    do {
        bool mine = base + local < count * OWN_QUADS;
        uint i = mine ? base + local : local % BLOCK_LANES;
        uint token = first + i / OWN_QUADS;
        block_write(token * (p.n_v * STATE_DIM / 4) + own + i % OWN_QUADS,
                    out_s[i] * gate_s[i], out_s[i], mine);
        base += GROUP;
    } while (base < count * OWN_QUADS);
}

void main()
{
    if (ctl.stop != 0)
        return;
    uint n_tokens = ctl.n_tokens;
    uint local = local_index();
    uint part = local % PARTS;
    uint column = local / PARTS * EACH;
    uint row = gl_WorkGroupID.x * COLUMNS + column;
    if (PASSES == 1)
        state_load(row, part);
    /* Loops test at their end: a CPU device would otherwise run every body
     * once more with all lanes masked. */
    uint first = 0;
    do {
        uint count = min(TILE, n_tokens - first);
        convolve_tile(local, first, count);
        gate_tile(local, first, count);
        barrier();
        uint base = 0;
        do {
            uint t = min((base + local) / 8, count - 1); /* shuffles: all come */
            prepare_step(t, local % 8, base + local < count * 8);
            base += GROUP;
        } while (base < count * 8);
        barrier();
        uint pass = 0;
        do {
            uint skip = pass * (COLUMNS / PASSES);
            if (PASSES > 1)
                state_load(row + skip, part);
            uint t = 0;
            do
                advance(t, part, column + skip);
            while (++t < count);
            if (PASSES > 1)
                state_store(row + skip, part);
        } while (++pass < PASSES);
        barrier();
        emit_tile(local, first, count);
        first += TILE;
        if (first < n_tokens)
            barrier(); /* the gates have been read */
    } while (first < n_tokens);
    if (PASSES == 1)
        state_store(row, part);
}
