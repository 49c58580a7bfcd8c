/* qk.comp - per token and head: RMS norm of q or k, rotary embedding (NeoX
 * pairs: dim i with dim i + rope_pairs), q to its buffer, k and v to row
 * ctl.pos + token of the caches. The workgroup is a run of lanes inside one
 * subgroup, so nothing waits; an invocation reads the partners of its rotated
 * dims again instead of exchanging them. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"
#include "reduce.glsl"

layout(constant_id = 1) const uint D = 256;
layout(constant_id = 2) const uint LANES = 8; /* the workgroup; divides D / 8 */

layout(push_constant) uniform push_block { push_qk p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer proj_block { vec4 proj[]; };
layout(set = 0, binding = 2, std430) readonly buffer q_norm_block { vec4 q_norm[]; };
layout(set = 0, binding = 3, std430) readonly buffer k_norm_block { vec4 k_norm[]; };
layout(set = 0, binding = 4, std430) readonly buffer rope_block { vec4 rope[]; };
layout(set = 0, binding = 5, std430) writeonly buffer q_block { vec4 q_out[]; };
#define KV_K 6
#define KV_V 7
#define KV_ACCESS writeonly
#include "kv.glsl"

const uint QUADS = D / 4;
const uint EACH = QUADS / LANES; /* quads an invocation */

vec4 norm_weight(bool is_q, uint quad)
{
    if (is_q)
        return q_norm[quad];
    return k_norm[quad];
}

/* Quad y of a normalised vector after rotation; base: its raw values. */
vec4 rotate(vec4 y, uint quad, uint base, bool is_q, float inv, uint position)
{
    uint half_quads = p.rope_pairs / 4;
    bool low = quad < half_quads;
    uint partner = low ? quad + half_quads : quad - half_quads;
    vec4 other = proj[base + partner] * norm_weight(is_q, partner) * inv;
    uint pair = (position * p.rope_pairs + (low ? quad : partner) * 4) / 2;
    vec4 a = rope[pair], b = rope[pair + 1];
    vec4 c = vec4(a.xz, b.xz), s = vec4(a.yw, b.yw);
    return low ? y * c - other * s : other * s + y * c;
}

void main()
{
    uint token = gl_WorkGroupID.y, head = gl_WorkGroupID.x;
    if (ctl.stop != 0 || token >= ctl.n_tokens)
        return;
    uint lane = local_index();
    bool is_q = head < p.n_head;
    uint row = token * p.proj_stride;
    uint base = (row + (is_q ? head * p.q_width : p.k_offset + (head - p.n_head) * D)) / 4;
    vec4 x[EACH];
    vec4 sum = vec4(0.0);
    [[unroll]] for (uint i = 0; i < EACH; i++) {
        x[i] = proj[base + kv_quad(i, lane, LANES)];
        sum += x[i] * x[i];
    }
    float total = lanes_add(sum.x + sum.y + sum.z + sum.w, LANES);
    float inv = inversesqrt(total / float(D) + p.eps);
    uint position = ctl.pos + token;
    [[unroll]] for (uint i = 0; i < EACH; i++) {
        uint quad = kv_quad(i, lane, LANES);
        x[i] *= norm_weight(is_q, quad) * inv;
        if (quad < p.rope_pairs / 2)
            x[i] = rotate(x[i], quad, base, is_q, inv, position);
    }
    if (is_q) {
        [[unroll]] for (uint i = 0; i < EACH; i++)
            q_out[(token * p.n_head + head) * QUADS + kv_quad(i, lane, LANES)] = x[i];
        return;
    }
    uint b = head - p.n_head;
    uint v_base = (row + p.v_offset + b * D) / 4;
    uint cache = (position * p.n_head_kv + b) * (D / KV_DIMS);
    [[unroll]] for (uint i = 0; i < EACH; i += KV_QUADS) {
        vec4 k[KV_QUADS], v[KV_QUADS];
        [[unroll]] for (uint j = 0; j < KV_QUADS; j++) {
            k[j] = x[i + j];
            v[j] = proj[v_base + kv_quad(i + j, lane, LANES)];
        }
        uint unit = cache + i / KV_QUADS * LANES + lane;
        k_cache[unit] = kv_pack(k);
        v_cache[unit] = kv_pack(v);
    }
}
