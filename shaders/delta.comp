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
#ifdef WIDE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "ctl.glsl"
#include "act.glsl"
#include "reduce.glsl"

layout(constant_id = 1) const uint INT8 = 0;
layout(constant_id = 2) const uint COLUMNS = 32; /* 32, 64 or 128 */
layout(constant_id = 3) const uint PARTS = 8;    /* power of two, <= subgroup */
layout(constant_id = 4) const uint EACH = 1;     /* columns an invocation and pass */
layout(constant_id = 5) const uint PASSES = 1;

layout(push_constant) uniform push_block { push_delta p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer proj_block { float proj[]; };
layout(set = 0, binding = 1, std430) readonly buffer proj_quads { vec4 proj4[]; };
layout(set = 0, binding = 2, std430) buffer history_block { vec4 history[]; };
layout(set = 0, binding = 3, std430) readonly buffer taps_block { vec4 taps4[]; };
layout(set = 0, binding = 4, std430) readonly buffer dt_block { float dt_bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer a_block { float ssm_a[]; };
layout(set = 0, binding = 6, std430) readonly buffer norm_block { vec4 ssm_norm[]; };
#ifdef WIDE
layout(set = 0, binding = 7, std430) buffer state_block { u64vec4 state[]; };
#else
layout(set = 0, binding = 7, std430) buffer state_block { vec4 state[]; };
#endif
#define BLOCK_X 8
#define BLOCK_S 9
#define BLOCK_SS 10
#include "block.glsl"

const uint HEAD_QUADS = STATE_DIM / 4;
const uint QUADS = HEAD_QUADS / PARTS;     /* key quads an invocation */
const uint HELD = EACH * QUADS;            /* quads of state in registers */
const uint SLICES = STATE_DIM / COLUMNS;   /* workgroups a head */
const uint OWN_QUADS = COLUMNS / 4;        /* value quads a workgroup */
/* Channel quads of a token: of q, of k, of the own values. */
const uint ITEMS = 2 * HEAD_QUADS + OWN_QUADS;
const uint TILE = COLUMNS > 64 ? 4 : 8;    /* tokens; at most 16 KiB below */
const uint GROUP = COLUMNS / PASSES / EACH * PARTS; /* spec constant 0 */
const uint SHARES = GROUP < 2 * ITEMS ? 1 : GROUP / ITEMS < TILE ? GROUP / ITEMS : TILE;
const uint ROUNDS = (SHARES * ITEMS + GROUP - 1) / GROUP;

shared vec4 made_s[TILE * ITEMS];          /* convolved */
shared vec4 out_s[TILE * OWN_QUADS];
/* decay, then factors: v in d ik, S.k in d ik, S.q in o */
shared vec4 step_s[TILE];
shared float mix_s[TILE];                  /* d ik in o */

/* a / b for small numbers; CPU devices divide integers lane by lane. */
uint small_div(uint a, uint b)
{
    return uint((float(a) + 0.5) / float(b));
}

vec4 silu(vec4 v)
{
    return v / (1.0 + exp(-v));
}

/* Quad of raw channels of token t; t < 0 is before this pass. */
vec4 channel_quad(int t, uint quad)
{
    if (t >= 0)
        return proj4[uint(t) * (p.proj_stride / 4) + quad];
    return history[(ctl.side * 3 + uint(3 + t)) * (p.conv_dim / 4) + quad];
}

/* Convolution of one quad of channels for tokens [from, to) of the tile that
 * starts with token `first`; to > from. The last inputs of the pass become the
 * history of the next one. */
void convolve_quad(uint item, uint quad, uint first, uint from, uint to, bool owner)
{
    mat4 taps = transpose(mat4(taps4[quad * 4], taps4[quad * 4 + 1], taps4[quad * 4 + 2],
                               taps4[quad * 4 + 3])); /* column j: tap j */
    int t0 = int(first + from);
    vec4 x0 = channel_quad(t0 - 3, quad);
    vec4 x1 = channel_quad(t0 - 2, quad);
    vec4 x2 = channel_quad(t0 - 1, quad);
    uint t = from;
    do {
        vec4 x3 = proj4[(first + t) * (p.proj_stride / 4) + quad];
        made_s[t * ITEMS + item] =
            silu(taps[0] * x0 + taps[1] * x1 + taps[2] * x2 + taps[3] * x3);
        x0 = x1;
        x1 = x2;
        x2 = x3;
    } while (++t < to);
    if (owner && first + to == ctl.n_tokens) {
        uint row = (1 - ctl.side) * 3, quads = p.conv_dim / 4;
        history[row * quads + quad] = x0;
        history[(row + 1) * quads + quad] = x1;
        history[(row + 2) * quads + quad] = x2;
    }
}

/* All channels that this workgroup reads, for the tile's tokens. Invocations
 * beyond one per quad take a share of the tokens. */
void convolve_tile(uint local, uint first, uint count)
{
    uint head = gl_WorkGroupID.x / SLICES, slice = gl_WorkGroupID.x % SLICES;
    uint rep = small_div(p.n_v, p.n_k);
    bool grouped = p.grouped_heads != 0;
    uint k_head = grouped ? small_div(head, rep) : head - small_div(head, p.n_k) * p.n_k;
    /* A k head's history belongs to the first v head that reads it. */
    bool first_reader = slice == 0 && head == (grouped ? k_head * rep : k_head);
    uint per = (count + SHARES - 1) / SHARES;
    [[unroll]] for (uint m = 0; m < ROUNDS; m++) {
        uint i = m * GROUP + local;
        uint item = i % ITEMS, from = i / ITEMS * per;
        uint quad = item;
        if (item < HEAD_QUADS)
            quad += k_head * HEAD_QUADS;
        else if (item < 2 * HEAD_QUADS)
            quad += (p.n_k + k_head - 1) * HEAD_QUADS;
        else
            quad += (2 * p.n_k + head - 2) * HEAD_QUADS + slice * OWN_QUADS;
        if (from < count && (SHARES * ITEMS % GROUP == 0 || i < SHARES * ITEMS))
            convolve_quad(item, quad, first, from, min(from + per, count),
                          item >= 2 * HEAD_QUADS || first_reader);
    }
}

/* The scalars of one step, by eight neighbouring invocations. */
void prepare_step(uint t, uint token, uint lane)
{
    uint head = gl_WorkGroupID.x / SLICES;
    uint row = token * p.proj_stride;
    uint b = row + p.beta_offset + head, a = row + p.alpha_offset + head;
    if (p.ba_grouped != 0) {
        uint rep = small_div(p.n_v, p.n_k);
        b += small_div(head, rep) * rep;
        a = b + rep;
    }
    float beta = 1.0 / (1.0 + exp(-proj[b]));
    float x = proj[a] + dt_bias[head];
    float softplus = max(x, 0.0) + log(1.0 + exp(-abs(x)));
    float decay = exp(ssm_a[head] * softplus);
    vec4 s = vec4(0.0);
    [[unroll]] for (uint i = 0; i < HEAD_QUADS; i += 8) {
        vec4 q = made_s[t * ITEMS + i + lane];
        vec4 k = made_s[t * ITEMS + HEAD_QUADS + i + lane];
        s += vec4(dot(q, q), dot(k, k), dot(q, k), 0.0);
    }
    s = lanes_add(s, 8);
    float iq = inversesqrt(float(STATE_DIM)) / max(sqrt(s.x), p.eps);
    float ik = 1.0 / max(sqrt(s.y), p.eps);
    if (lane == 0) {
        step_s[t] = vec4(decay, beta * ik, beta * decay * ik * ik, decay * iq);
        mix_s[t] = iq * s.z;
    }
}

/* Quad of keys that is element n of an invocation's part. */
uint key_quad(uint n, uint part)
{
#ifdef WIDE
    return 2 * (n / 2 * PARTS + part) + n % 2;
#else
    return n * PARTS + part;
#endif
}

/* One token of this invocation's columns, `column` the first of them. */
void advance(inout vec4 s[HELD], uint t, uint part, uint column)
{
    vec4 k[QUADS], q[QUADS], v4;
    [[unroll]] for (uint n = 0; n < QUADS; n++) {
        q[n] = made_s[t * ITEMS + key_quad(n, part)];
        k[n] = made_s[t * ITEMS + HEAD_QUADS + key_quad(n, part)];
    }
    vec4 f = step_s[t];
    float mix_d = mix_s[t];
    float o = 0.0;
    [[unroll]] for (uint r = 0; r < EACH; r++) {
        uint c = column + r;
        if (r % 4 == 0)
            v4 = made_s[t * ITEMS + 2 * HEAD_QUADS + c / 4];
        float v = EACH < 4 ? v4[c % 4] : v4[r % 4];
        vec4 sk = vec4(0.0), sq = vec4(0.0);
        [[unroll]] for (uint n = 0; n < QUADS; n++) {
            sk += s[r * QUADS + n] * k[n];
            sq += s[r * QUADS + n] * q[n];
        }
        float dot_k = lanes_add(sk.x + sk.y + sk.z + sk.w, PARTS);
        float dot_q = lanes_add(sq.x + sq.y + sq.z + sq.w, PARTS);
        float d = f.y * v - f.z * dot_k;
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            s[r * QUADS + n] = f.x * s[r * QUADS + n] + d * k[n];
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

void state_load(out vec4 s[HELD], uint row, uint part)
{
    [[unroll]] for (uint r = 0; r < EACH; r++) {
#ifdef WIDE
        [[unroll]] for (uint n = 0; n < QUADS; n += 2) {
            u64vec4 x = state[(row + r) * (HEAD_QUADS / 2) + n / 2 * PARTS + part];
            s[r * QUADS + n] = uintBitsToFloat(uvec4(unpackUint2x32(x.x), unpackUint2x32(x.y)));
            s[r * QUADS + n + 1] =
                uintBitsToFloat(uvec4(unpackUint2x32(x.z), unpackUint2x32(x.w)));
        }
#else
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            s[r * QUADS + n] = state[(row + r) * HEAD_QUADS + key_quad(n, part)];
#endif
    }
}

void state_store(vec4 s[HELD], uint row, uint part)
{
    [[unroll]] for (uint r = 0; r < EACH; r++) {
#ifdef WIDE
        [[unroll]] for (uint n = 0; n < QUADS; n += 2) {
            uvec4 a = floatBitsToUint(s[r * QUADS + n]);
            uvec4 b = floatBitsToUint(s[r * QUADS + n + 1]);
            state[(row + r) * (HEAD_QUADS / 2) + n / 2 * PARTS + part] =
                u64vec4(packUint2x32(a.xy), packUint2x32(a.zw), packUint2x32(b.xy),
                        packUint2x32(b.zw));
        }
#else
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            state[(row + r) * HEAD_QUADS + key_quad(n, part)] = s[r * QUADS + n];
#endif
    }
}

/* Gated results of the tile, eight invocations a block. */
void emit_tile(uint local, uint first, uint count)
{
    uint head = gl_WorkGroupID.x / SLICES, slice = gl_WorkGroupID.x % SLICES;
    uint own = head * HEAD_QUADS + slice * OWN_QUADS;
    uint base = 0;
    do {
        uint i = base + local;
        if (i < count * OWN_QUADS) {
            uint token = first + i / OWN_QUADS, c = i % OWN_QUADS;
            vec4 o = out_s[i];
            vec4 z = proj4[(token * p.proj_stride + p.z_offset) / 4 + own + c];
            block_write(token * (p.n_v * HEAD_QUADS) + own + c,
                        o * ssm_norm[slice * OWN_QUADS + c] * silu(z), o);
        }
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
    vec4 s[HELD];
    if (PASSES == 1)
        state_load(s, row, part);
    /* Loops test at their end: a CPU device would otherwise run every body
     * once more with all lanes masked. */
    uint first = 0;
    do {
        uint count = min(TILE, n_tokens - first);
        convolve_tile(local, first, count);
        barrier();
        [[unroll]] for (uint i = 0; i < TILE * 8; i += GROUP)
            if (i + local < count * 8)
                prepare_step((i + local) / 8, first + (i + local) / 8, local % 8);
        barrier();
        uint pass = 0;
        do {
            uint skip = pass * (COLUMNS / PASSES);
            if (PASSES > 1)
                state_load(s, row + skip, part);
            uint t = 0;
            do
                advance(s, t, part, column + skip);
            while (++t < count);
            if (PASSES > 1)
                state_store(s, row + skip, part);
        } while (++pass < PASSES);
        barrier();
        emit_tile(local, first, count);
        first += TILE;
    } while (first < n_tokens);
    if (PASSES == 1)
        state_store(s, row, part);
}
