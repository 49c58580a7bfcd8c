/* attend.comp - attention of one token over one split of its history, for all
 * query heads that share a kv head.
 *
 * The invocations of a subgroup share the D values of a head, QUADS quads each;
 * subgroups take positions in turn, each with a running maximum and sum of its
 * own, without a barrier, and are merged once at the end. HEADS query heads at
 * a time, so that a key and value row serves them all. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "reduce.glsl"
#include "kv.glsl"

layout(constant_id = 1) const uint D = 256;
layout(constant_id = 2) const uint GROUP = 2;    /* query heads a kv head */
layout(constant_id = 3) const uint SUBGROUP = 8; /* invocations a subgroup */
layout(constant_id = 4) const uint HEADS = 2;    /* at a time, divides GROUP */

layout(push_constant) uniform push_block { push_attend p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer q_block { vec4 query[]; };
layout(set = 0, binding = 2, std430) readonly buffer k_block { KV_QUAD k_cache[]; };
layout(set = 0, binding = 3, std430) readonly buffer v_block { KV_QUAD v_cache[]; };
layout(set = 0, binding = 4, std430) writeonly buffer out_block_ { float partial[]; };

const uint QUADS = D / 4 > SUBGROUP ? D / 4 / SUBGROUP : 1;
const uint MAX_SUBGROUPS = 8;
const float LOWEST = -1e30; /* finite, so that differences are never NaN */

shared vec4 merge_acc[MAX_SUBGROUPS][D / 4];
shared vec2 merge_ml[MAX_SUBGROUPS]; /* maximum, sum */

/* One subgroup's results for HEADS heads. */
vec4 acc[HEADS][QUADS];
float top[HEADS], sum[HEADS];

void scan(uint first_head, uint kv_head, uint token, uint begin, uint end)
{
    uint lane = gl_SubgroupInvocationID;
    bool mine = lane < D / 4; /* a head of 64 values has fewer quads than some subgroups */
    vec4 q[HEADS][QUADS];
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        top[h] = LOWEST;
        sum[h] = 0.0;
        [[unroll]] for (uint j = 0; j < QUADS; j++) {
            uint at = (token * p.n_head + first_head + h) * (D / 4) + j * SUBGROUP + lane;
            q[h][j] = mine ? query[at] * p.scale : vec4(0.0);
            acc[h][j] = vec4(0.0);
        }
    }
    for (uint pos = begin + gl_SubgroupID; pos < end; pos += gl_NumSubgroups) {
        uint row = (pos * p.n_head_kv + kv_head) * (D / 4) + (mine ? lane : 0);
        vec4 k[QUADS], v[QUADS];
        [[unroll]] for (uint j = 0; j < QUADS; j++) {
            k[j] = kv_load(k_cache[row + j * SUBGROUP]);
            v[j] = kv_load(v_cache[row + j * SUBGROUP]);
        }
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            float s = 0.0;
            [[unroll]] for (uint j = 0; j < QUADS; j++)
                s += dot(q[h][j], k[j]);
            s = lanes_add(s, SUBGROUP);
            float m = max(top[h], s), old = exp(top[h] - m), w = exp(s - m);
            top[h] = m;
            sum[h] = sum[h] * old + w;
            [[unroll]] for (uint j = 0; j < QUADS; j++)
                acc[h][j] = acc[h][j] * old + w * v[j];
        }
    }
}

/* Joins the subgroups' results of head h and writes them. */
void finish(uint h, uint head, uint token)
{
    uint lane = gl_SubgroupInvocationID;
    if (lane < D / 4)
        [[unroll]] for (uint j = 0; j < QUADS; j++)
            merge_acc[gl_SubgroupID][j * SUBGROUP + lane] = acc[h][j];
    if (lane == 0)
        merge_ml[gl_SubgroupID] = vec2(top[h], sum[h]);
    barrier();
    float m = LOWEST, l = 0.0;
    for (uint s = 0; s < gl_NumSubgroups; s++)
        m = max(m, merge_ml[s].x);
    for (uint s = 0; s < gl_NumSubgroups; s++)
        l += merge_ml[s].y * exp(merge_ml[s].x - m);
    uint out_at = ((token * p.n_head + head) * p.splits + gl_WorkGroupID.y) * (D + 2);
    for (uint c = local_index(); c < D / 4; c += gl_WorkGroupSize.x) {
        vec4 v = vec4(0.0);
        for (uint s = 0; s < gl_NumSubgroups; s++)
            v += merge_acc[s][c] * exp(merge_ml[s].x - m);
        [[unroll]] for (uint k = 0; k < 4; k++)
            partial[out_at + 4 * c + k] = v[k];
    }
    if (local_index() == 0) {
        partial[out_at + D] = m;
        partial[out_at + D + 1] = l;
    }
    barrier();
}

void main()
{
    uint kv_head = gl_WorkGroupID.x, token = gl_WorkGroupID.z;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    uint length = ctl.pos + token + 1;
    uint each = (length + p.splits - 1) / p.splits;
    uint begin = min(gl_WorkGroupID.y * each, length), end = min(begin + each, length);
    for (uint g = 0; g < GROUP; g += HEADS) {
        uint first_head = kv_head * GROUP + g;
        scan(first_head, kv_head, token, begin, end);
        [[unroll]] for (uint h = 0; h < HEADS; h++)
            finish(h, first_head + h, token);
    }
}
