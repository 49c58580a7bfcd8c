/* qk.comp - norm and rotation of a token's query and key heads, and its K/V
 * cache row. One workgroup a head and token; heads beyond n_head are k heads,
 * which write the v head of the same number too. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "ctl.glsl"
#include "kv.glsl"

layout(constant_id = 1) const uint D = 256;

layout(push_constant) uniform push_block { push_qk p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer proj_block { float proj[]; };
layout(set = 0, binding = 2, std430) readonly buffer q_norm_block { float q_norm[]; };
layout(set = 0, binding = 3, std430) readonly buffer k_norm_block { float k_norm[]; };
layout(set = 0, binding = 4, std430) readonly buffer rope_block { vec2 rope[]; };
layout(set = 0, binding = 5, std430) writeonly buffer q_block { vec4 q_out[]; };
layout(set = 0, binding = 6, std430) writeonly buffer k_block { KV_QUAD k_cache[]; };
layout(set = 0, binding = 7, std430) writeonly buffer v_block { KV_QUAD v_cache[]; };

shared float sums[64];

/* Sum over the workgroup, which has at most 64 subgroups. */
float group_sum(float v)
{
    v = subgroupAdd(v);
    if (gl_NumSubgroups == 1)
        return v;
    if (subgroupElect())
        sums[gl_SubgroupID] = v;
    barrier();
    float sum = 0.0;
    for (uint i = 0; i < gl_NumSubgroups; i++)
        sum += sums[i];
    return sum;
}

float normed(uint first, uint i, float factor, bool is_q)
{
    return proj[first + i] * factor * (is_q ? q_norm[i] : k_norm[i]);
}

/* Value i of the rotated head: pairs (i, i + pairs) turn, the rest stays. */
float rotated(uint first, uint i, float factor, bool is_q, uint row)
{
    float v = normed(first, i, factor, is_q);
    if (i >= 2 * p.rope_pairs)
        return v;
    bool low = i < p.rope_pairs;
    float other = normed(first, low ? i + p.rope_pairs : i - p.rope_pairs, factor, is_q);
    vec2 turn = rope[row * p.rope_pairs + (low ? i : i - p.rope_pairs)];
    return low ? v * turn.x - other * turn.y : v * turn.x + other * turn.y;
}

void main()
{
    uint token = gl_WorkGroupID.y, head = gl_WorkGroupID.x;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    bool is_q = head < p.n_head;
    uint kv_head = head - p.n_head, base = token * p.proj_stride;
    uint first = base + (is_q ? head * 2 * D : p.k_offset + kv_head * D);
    float ss = 0.0;
    for (uint i = gl_LocalInvocationIndex; i < D; i += gl_WorkGroupSize.x)
        ss += proj[first + i] * proj[first + i];
    float factor = inversesqrt(group_sum(ss) / float(D) + p.eps);
    uint row = ctl.pos + token;
    for (uint c = gl_LocalInvocationIndex; c < D / 4; c += gl_WorkGroupSize.x) {
        vec4 v;
        for (uint k = 0; k < 4; k++)
            v[k] = rotated(first, 4 * c + k, factor, is_q, row);
        if (is_q) {
            q_out[(token * p.n_head + head) * (D / 4) + c] = v;
        } else {
            uint at = (row * p.n_head_kv + kv_head) * (D / 4) + c;
            uint from = base + p.v_offset + kv_head * D + 4 * c;
            k_cache[at] = kv_store(v);
            v_cache[at] = kv_store(vec4(proj[from], proj[from + 1], proj[from + 2],
                                        proj[from + 3]));
        }
    }
}
