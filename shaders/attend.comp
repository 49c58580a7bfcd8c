/* attend.comp - causal attention over the KV cache: one share of the positions
 * for one token and the query heads of one kv head.
 *
 * LANES neighbouring invocations are a stream: they share the dims, take every
 * STREAMS-th batch of positions and keep their own online softmax, without
 * barriers; the streams of a workgroup meet once at the end. HEADS query heads
 * are worked on at a time, so that queries and sums stay in registers.
 *
 * Partials, private to this kernel and merge.comp, T = ctl.n_tokens: sums of
 * exp(s - m) v as f32[T][n_head][splits][D], then vec2(m, sum of exp(s - m))
 * [T][n_head][splits]. A share without positions has m = NO_SCORE, sum 0. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "reduce.glsl"

layout(constant_id = 1) const uint D = 256;
layout(constant_id = 2) const uint QUERIES = 2; /* query heads a kv head */
layout(constant_id = 3) const uint LANES = 8;   /* divides D / KV_DIMS; <= subgroup */
layout(constant_id = 4) const uint STREAMS = 1; /* workgroup: LANES * STREAMS */
layout(constant_id = 5) const uint HEADS = 2;   /* divides QUERIES */
layout(constant_id = 6) const uint BATCH = 2;   /* positions a round */
layout(constant_id = 7) const uint AHEAD = 0;   /* 1: load a round ahead */

layout(push_constant) uniform push_block { push_attend p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer q_block { vec4 q_in[]; };
#define KV_K 2
#define KV_V 3
#define KV_ACCESS readonly
#include "kv.glsl"
layout(set = 0, binding = 4, std430) writeonly buffer sums_block { vec4 sums[]; };
layout(set = 0, binding = 4, std430) writeonly buffer max_block { vec2 maxima[]; };

const float NO_SCORE = -1.0e30;      /* finite: differences are never NaN */
const uint UNITS = D / KV_DIMS / LANES; /* of a row, an invocation */
const uint OWN = KV_QUADS * UNITS;   /* quads an invocation */
const uint HELD = HEADS * OWN;
const uint SCORES = HEADS * BATCH;   /* of a round */
const uint VALUES = UNITS * BATCH;

/* Half of the streams hand their sums over, at most 15 KiB (engine/tune.c). */
const uint SHARED_QUADS = STREAMS > 1 ? STREAMS / 2 * LANES * HELD : 1;
const uint SHARED_MAXIMA = STREAMS > 1 ? STREAMS * HEADS : 1;
shared vec4 sums_s[SHARED_QUADS];
shared vec2 maxima_s[SHARED_MAXIMA];

/* A stream's part of HEADS queries, and what it has seen so far: the highest
 * score, the sum of exp(score - m), and that sum with the values. */
vec4 query[HELD], acc[HELD];
float m[HEADS], l[HEADS];
/* Keys and values of the round that was loaded last. */
KV_UNIT keys[VALUES], values[VALUES];

/* Where a head's partials of this token and share go. */
uint slot(uint head)
{
    return (gl_WorkGroupID.z * p.n_head + head) * p.splits + gl_WorkGroupID.y;
}

/* Loads positions first, first + STREAMS, .., BATCH of them; beyond the end the
 * last one. */
void load_batch(uint first, uint end, uint lane)
{
    [[unroll]] for (uint b = 0; b < BATCH; b++) {
        uint row = min(first + b * STREAMS, end - 1) * p.n_head_kv + gl_WorkGroupID.x;
        uint at = row * (D / KV_DIMS) + lane;
        [[unroll]] for (uint u = 0; u < UNITS; u++)
            keys[b * UNITS + u] = k_cache[at + u * LANES];
        [[unroll]] for (uint u = 0; u < UNITS; u++)
            values[b * UNITS + u] = v_cache[at + u * LANES];
    }
}

/* q.k of a batch with every head; beyond the end below NO_SCORE, so that it
 * weighs nothing even alone. */
void score_batch(uint first, uint end, KV_UNIT k[VALUES], out float score[SCORES])
{
    [[unroll]] for (uint b = 0; b < BATCH; b++) {
        vec4 s[HEADS];
        [[unroll]] for (uint h = 0; h < HEADS; h++)
            s[h] = vec4(0.0);
        [[unroll]] for (uint u = 0; u < UNITS; u++) {
            vec4 key[KV_QUADS] = kv_quads(k[b * UNITS + u]);
            [[unroll]] for (uint h = 0; h < HEADS; h++)
                [[unroll]] for (uint j = 0; j < KV_QUADS; j++)
                    s[h] += key[j] * query[h * OWN + u * KV_QUADS + j];
        }
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            float dot_qk = lanes_add(s[h].x + s[h].y + s[h].z + s[h].w, LANES);
            score[h * BATCH + b] = first + b * STREAMS < end ? dot_qk : 2.0 * NO_SCORE;
        }
    }
}

/* Takes the values of a batch in. */
void weigh_batch(float score[SCORES], KV_UNIT v[VALUES])
{
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        float top = m[h];
        [[unroll]] for (uint b = 0; b < BATCH; b++)
            top = max(top, score[h * BATCH + b]);
        float keep = exp(m[h] - top);
        m[h] = top;
        l[h] *= keep;
        [[unroll]] for (uint i = 0; i < OWN; i++)
            acc[h * OWN + i] *= keep;
        [[unroll]] for (uint b = 0; b < BATCH; b++) {
            float w = exp(score[h * BATCH + b] - top);
            l[h] += w;
            [[unroll]] for (uint u = 0; u < UNITS; u++) {
                vec4 value[KV_QUADS] = kv_quads(v[b * UNITS + u]);
                [[unroll]] for (uint j = 0; j < KV_QUADS; j++)
                    acc[h * OWN + u * KV_QUADS + j] += w * value[j];
            }
        }
    }
}

/* The first stream's maxima and sums become those of all. Every invocation of
 * the workgroup comes here. */
void merge_streams(uint lane, uint stream)
{
    if (lane == 0)
        [[unroll]] for (uint h = 0; h < HEADS; h++)
            maxima_s[h * STREAMS + stream] = vec2(m[h], l[h]);
    barrier();
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        float top = NO_SCORE, sum = 0.0;
        [[unroll]] for (uint s = 0; s < STREAMS; s++)
            top = max(top, maxima_s[h * STREAMS + s].x);
        [[unroll]] for (uint s = 0; s < STREAMS; s++)
            sum += exp(maxima_s[h * STREAMS + s].x - top) * maxima_s[h * STREAMS + s].y;
        float f = exp(m[h] - top);
        m[h] = top;
        l[h] = sum;
        [[unroll]] for (uint i = 0; i < OWN; i++)
            acc[h * OWN + i] *= f;
    }
    /* A stream hands over through the slot that only it has read before. */
    [[unroll]] for (uint givers = STREAMS / 2; givers > 0; givers /= 2) {
        uint at = stream % givers * HELD * LANES + lane;
        if (stream >= givers && stream < 2 * givers)
            [[unroll]] for (uint i = 0; i < HELD; i++)
                sums_s[at + i * LANES] = acc[i];
        barrier();
        if (stream < givers)
            [[unroll]] for (uint i = 0; i < HELD; i++)
                acc[i] += sums_s[at + i * LANES];
    }
}

/* HEADS query heads from head0 on over positions [begin, end). */
void attend_heads(uint head0, uint begin, uint end, uint lane, uint stream)
{
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        m[h] = NO_SCORE;
        l[h] = 0.0;
        [[unroll]] for (uint i = 0; i < OWN; i++) {
            uint row = gl_WorkGroupID.z * p.n_head + head0 + h;
            query[h * OWN + i] = p.scale * q_in[row * (D / 4) + kv_quad(i, lane, LANES)];
            acc[h * OWN + i] = vec4(0.0);
        }
    }
    /* Tested at its end, like all loops here: a CPU device would otherwise run
     * the body once more with all lanes masked. It counts what is the same for
     * all streams: shuffles must not stand in divergent code. */
    uint first = begin;
    if (AHEAD != 0)
        load_batch(first + stream, end, lane);
    do {
        if (AHEAD == 0)
            load_batch(first + stream, end, lane);
        KV_UNIT k[VALUES], v[VALUES];
        [[unroll]] for (uint i = 0; i < VALUES; i++) {
            k[i] = keys[i];
            v[i] = values[i];
        }
        if (AHEAD != 0)
            load_batch(first + stream + STREAMS * BATCH, end, lane);
        float score[SCORES];
        score_batch(first + stream, end, k, score);
        weigh_batch(score, v);
        first += STREAMS * BATCH;
    } while (first < end);
    if (STREAMS > 1)
        merge_streams(lane, stream);
    if (stream == 0)
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            uint at = slot(head0 + h);
            [[unroll]] for (uint i = 0; i < OWN; i++)
                sums[at * (D / 4) + kv_quad(i, lane, LANES)] = acc[h * OWN + i];
            if (lane == 0)
                maxima[ctl.n_tokens * p.n_head * p.splits * (D / 2) + at] = vec2(m[h], l[h]);
        }
}

void main()
{
    uint token = gl_WorkGroupID.z;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    uint local = local_index();
    uint n = ctl.pos + token + 1;
    uint share = (n + p.splits - 1) / p.splits;
    uint begin = min(gl_WorkGroupID.y * share, n);
    uint end = min(begin + share, n); /* at least 1 */
    uint head0 = 0;
    do {
        attend_heads(gl_WorkGroupID.x * QUERIES + head0, begin, end, local % LANES,
                     local / LANES);
        head0 += HEADS;
        if (STREAMS > 1 && head0 < QUERIES)
            barrier(); /* what was handed over has been read */
    } while (head0 < QUERIES);
}
