/* sample.comp - draws the next token id from the logits, in one workgroup of
 * 16 to 1024 invocations. Decisions are those of engine/ref_sample.c: weights
 * are integers, so that sums do not depend on their order, and what leads to
 * them uses exactly rounded operations only.
 *
 * Vocabulary entries are read four at a time ("quads"; the 0 to 3 entries
 * after the last whole quad are "the tail"). They are dealt to groups in turn,
 * quad i to group i % GROUPS. The top_k-th largest of the groups' maxima is a
 * lower bound of the top_k-th largest logit, and few others lie above it; so
 * two passes over the logits leave a short list. Where it is too long (many
 * equal logits) a radix selection shortens it to what fits. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "ctl.glsl"

layout(push_constant) uniform push_block { push_sample p; };
layout(set = 0, binding = 0, std430) buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer quad_buffer { vec4 quads[]; };
layout(set = 0, binding = 1, std430) readonly buffer logit_buffer { float logits[]; };
layout(set = 0, binding = 2, std430) readonly buffer count4_buffer { uvec4 counts4[]; };
layout(set = 0, binding = 2, std430) buffer count_buffer { uint counts[]; };
layout(set = 0, binding = 3, std430) buffer out_buffer { out_block result; };

const uint MAX_GROUPS = 1024;
const uint MAX_LISTED = 512;      /* twice the longest wanted list */
const uint MAX_SUBGROUPS = 128;
const uint DIGITS = 7;            /* of 8 bits: order key, then id */
const uint ID_MASK = 0xffffffu;
const uint NEG_INF = 0x007fffffu; /* order key of -inf; 0 is below all keys */
const uint ONE = 1u << 23;        /* weight of the most likely entry */

shared uint group_max[MAX_GROUPS];      /* also the histogram of refine() */
shared uvec2 listed[MAX_LISTED];        /* order key, id */
shared uint weight[SAMPLE_MAX_K];
shared uvec2 merged[MAX_SUBGROUPS];
shared uint reached[32];                /* counters of the rounds of lower_bound() */
shared uint n_listed;
shared uvec2 edge;                      /* refine(): threshold so far */
shared uvec2 remaining;                 /* and: entries wanted, 1 if they fit */

uint n_quads, n_tail;
bool penalised;

/* A number that orders as the float does; NaN orders as -inf, -0 as 0. */
uint order_key(float v)
{
    uint u = floatBitsToUint(v);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        u = 0xff800000u;
    if (u == 0x80000000u)
        u = 0u;
    return (u & 0x80000000u) != 0u ? ~u : u | 0x80000000u;
}

float key_value(uint key)
{
    return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}

float penalise(float v, uint count)
{
    if (count == 0u)
        return v;
    precise float repeated = v > 0.0 ? v / ctl.repeat_penalty : v * ctl.repeat_penalty;
    precise float present = repeated - ctl.presence_penalty;
    precise float frequent = ctl.frequency_penalty * float(count);
    precise float left = present - frequent;
    return left;
}

vec4 penalise4(vec4 v, uint i)
{
    uvec4 c = counts4[i];
    return vec4(penalise(v.x, c.x), penalise(v.y, c.y), penalise(v.z, c.z),
                penalise(v.w, c.w));
}

uvec4 quad_keys(vec4 v)
{
    return uvec4(order_key(v.x), order_key(v.y), order_key(v.z), order_key(v.w));
}

uvec4 keys_at(uint i)
{
    vec4 v = quads[i];
    return quad_keys(penalised ? penalise4(v, i) : v);
}

/* Of entry t of the tail. */
uint tail_key(uint t)
{
    uint id = n_quads * 4u + t;
    float v = logits[id];
    return order_key(penalised ? penalise(v, counts[id]) : v);
}

uint max4(uvec4 v)
{
    return max(max(v.x, v.y), max(v.z, v.w));
}

/* Whether the four quads i, i + step, ... exist and take no penalty: then they
 * can be loaded at once, which hides the memory's latency. */
bool plain4(uint i, uint step)
{
    if (i + 3u * step >= n_quads)
        return false;
    if (!penalised)
        return true;
    uvec4 c = counts4[i] | counts4[i + step] | counts4[i + 2u * step] |
              counts4[i + 3u * step];
    return (c.x | c.y | c.z | c.w) == 0u;
}

/* The largest key of quads first, first + step, ... and the first quad that
 * has it; an entry of the tail counts as quad n_quads of its invocation. */
uvec2 scan(uint first, uint step)
{
    uvec2 best = uvec2(0u);
    for (uint i = first; i < n_quads; i += 4u * step) {
        if (plain4(i, step)) {
            vec4 a = quads[i], b = quads[i + step];
            vec4 c = quads[i + 2u * step], d = quads[i + 3u * step];
            uvec4 m = uvec4(max4(quad_keys(a)), max4(quad_keys(b)), max4(quad_keys(c)),
                            max4(quad_keys(d)));
            if (m.x > best.x)
                best = uvec2(m.x, i);
            if (m.y > best.x)
                best = uvec2(m.y, i + step);
            if (m.z > best.x)
                best = uvec2(m.z, i + 2u * step);
            if (m.w > best.x)
                best = uvec2(m.w, i + 3u * step);
        } else
            for (uint q = i; q < min(i + 4u * step, n_quads); q += step) {
                uint m = max4(keys_at(q));
                if (m > best.x)
                    best = uvec2(m, q);
            }
    }
    if (first < n_tail) {
        uint m = tail_key(first);
        if (m > best.x)
            best = uvec2(m, n_quads);
    }
    return best;
}

/* The id of the largest logit, the lowest one of several, for invocation 0,
 * from what each invocation's scan found. */
uint largest(uint self, uvec2 best)
{
    uint id = n_quads * 4u + self;
    if (best.y < n_quads) {
        uvec4 k = keys_at(best.y);
        id = best.y * 4u;
        id += k.x == best.x ? 0u : k.y == best.x ? 1u : k.z == best.x ? 2u : 3u;
    }
    uint key = subgroupMax(best.x);
    id = subgroupMin(best.x == key ? id : 0xffffffffu);
    if (subgroupElect())
        merged[gl_SubgroupID] = uvec2(key, id);
    barrier();
    if (self != 0u)
        return 0u;
    for (uint s = 0u; s < gl_NumSubgroups; s++) {
        uvec2 m = merged[s];
        if (m.x > key || (m.x == key && m.y < id)) {
            key = m.x;
            id = m.y;
        }
    }
    return id;
}

/* A key that at least k of the groups' maxima reach, found bit by bit down to
 * a 20th bit: a finer one would not shorten the list. */
uint lower_bound(uint self, uint width, uint groups, uint k)
{
    uint bound = 0u;
    for (uint bit = 0u; bit < 20u; bit++) {
        uint tried = bound | 0x80000000u >> bit;
        uint n = 0u;
        for (uint g = self; g < groups; g += width)
            n += group_max[g] >= tried ? 1u : 0u;
        n = subgroupAdd(n);
        if (subgroupElect() && n != 0u)
            atomicAdd(reached[bit], n);
        barrier();
        if (reached[bit] >= k)
            bound = tried;
    }
    return max(bound, NEG_INF + 1u);
}

/* Entries order by key, then by falling id. */
bool reaches(uint key, uint id, uvec2 threshold)
{
    return key > threshold.x || (key == threshold.x && (ID_MASK - id) >= threshold.y);
}

void list_entry(uint key, uint id, uvec2 threshold)
{
    if (!reaches(key, id, threshold))
        return;
    uint at = atomicAdd(n_listed, 1u);
    if (at < MAX_LISTED)
        listed[at] = uvec2(key, id);
}

void list_quad(uvec4 k, uint i, uvec2 threshold)
{
    if (max4(k) < threshold.x)
        return;
    list_entry(k.x, i * 4u, threshold);
    list_entry(k.y, i * 4u + 1u, threshold);
    list_entry(k.z, i * 4u + 2u, threshold);
    list_entry(k.w, i * 4u + 3u, threshold);
}

/* Lists what reaches the threshold; groups whose maximum does not are passed
 * over. n_listed may exceed MAX_LISTED. */
void list(uint self, uint width, uint groups, uvec2 threshold)
{
    for (uint g = self; g < groups; g += width) {
        if (group_max[g] < threshold.x)
            continue;
        for (uint i = g; i < n_quads; i += 4u * groups) {
            if (plain4(i, groups)) {
                vec4 a = quads[i], b = quads[i + groups];
                vec4 c = quads[i + 2u * groups], d = quads[i + 3u * groups];
                list_quad(quad_keys(a), i, threshold);
                list_quad(quad_keys(b), i + groups, threshold);
                list_quad(quad_keys(c), i + 2u * groups, threshold);
                list_quad(quad_keys(d), i + 3u * groups, threshold);
            } else
                for (uint q = i; q < min(i + 4u * groups, n_quads); q += groups)
                    list_quad(keys_at(q), q, threshold);
        }
    }
    if (self < n_tail)
        list_entry(tail_key(self), n_quads * 4u + self, threshold);
    barrier();
}

/* Counts an entry whose digits so far are those of the threshold. */
void tally(uint key, uint id, uvec2 prefix, uvec2 mask, uint digit)
{
    uvec2 v = uvec2(key, ID_MASK - id);
    if ((v & mask) != prefix)
        return;
    uint shift = digit < 4u ? 24u - 8u * digit : 48u - 8u * digit;
    atomicAdd(group_max[(digit < 4u ? v.x : v.y) >> shift & 255u], 1u);
}

/* Chooses the next digit of the threshold: the lowest bin that still belongs
 * to the `wanted` best. done: all that reaches it fits the list. */
void choose_digit(uint digit)
{
    uint wanted = remaining.x, bin = 255u;
    for (; bin > 0u && group_max[bin] < wanted; bin--)
        wanted -= group_max[bin];
    uint shift = digit < 4u ? 24u - 8u * digit : 48u - 8u * digit;
    if (digit < 4u)
        edge.x |= bin << shift;
    else
        edge.y |= bin << shift;
    bool fits = group_max[bin] - wanted <= MAX_LISTED - SAMPLE_MAX_K;
    remaining = uvec2(wanted, fits ? 1u : 0u);
}

/* A threshold that at least k entries reach and at most MAX_LISTED, by radix
 * selection over key and id; exact after the last digit, as ids differ. */
uvec2 refine(uint self, uint width, uint k)
{
    if (self == 0u) {
        edge = uvec2(0u);
        remaining = uvec2(k, 0u);
    }
    for (uint digit = 0u; digit < DIGITS; digit++) {
        for (uint b = self; b < 256u; b += width)
            group_max[b] = 0u;
        barrier();
        uvec2 prefix = edge;
        uvec2 mask = uvec2(~(0xffffffffu >> 8u * digit), 0u);
        if (digit >= 4u)
            mask = uvec2(0xffffffffu, ID_MASK & ~(ID_MASK >> 8u * (digit - 4u)));
        for (uint i = self; i < n_quads; i += width) {
            uvec4 v = keys_at(i);
            tally(v.x, i * 4u, prefix, mask, digit);
            tally(v.y, i * 4u + 1u, prefix, mask, digit);
            tally(v.z, i * 4u + 2u, prefix, mask, digit);
            tally(v.w, i * 4u + 3u, prefix, mask, digit);
        }
        if (self < n_tail)
            tally(tail_key(self), n_quads * 4u + self, prefix, mask, digit);
        barrier();
        if (self == 0u)
            choose_digit(digit);
        barrier();
        if (remaining.y != 0u)
            break;
    }
    return edge;
}

bool before(uvec2 a, uvec2 b)
{
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}

/* Sorts the n entries of the list (bitonic). */
void sort_list(uint self, uint width, uint n)
{
    uint padded = 2u;
    while (padded < n)
        padded *= 2u;
    for (uint i = n + self; i < padded; i += width)
        listed[i] = uvec2(0u);
    barrier();
    for (uint size = 2u; size <= padded; size *= 2u)
        for (uint stride = size / 2u; stride > 0u; stride /= 2u) {
            for (uint t = self; t < padded / 2u; t += width) {
                uint i = 2u * t - (t & stride - 1u), j = i + stride;
                uvec2 a = listed[i], b = listed[j];
                if (before(b, a) == ((i & size) == 0u)) {
                    listed[i] = b;
                    listed[j] = a;
                }
            }
            barrier();
        }
}

/* exp(x) for x <= 0, the same on every device: 2^n times a polynomial for
 * 2^f, relative error 8e-8. */
float exp_reproducible(float x)
{
    if (!(x > -80.0))
        return 0.0;
    precise float y = x * 1.44269504;
    float n = floor(y);
    precise float f = y - n;
    precise float v = 0.00020817918 * f;
    v = (v + 0.0012692166) * f;
    v = (v + 0.0096521955) * f;
    v = (v + 0.055496022) * f;
    v = (v + 0.2402272) * f;
    v = (v + 0.6931472) * f;
    v = v + 1.0;
    precise float scaled = v * uintBitsToFloat(uint(int(n) + 127) << 23);
    return scaled;
}

/* Weights of the best n entries relative to the first, in units of 1 / ONE; 0
 * under min_p. */
void weigh(uint self, uint width, uint n)
{
    float top = key_value(listed[0].x);
    for (uint i = self; i < n; i += width) {
        precise float below = key_value(listed[i].x) - top;
        precise float x = below * ctl.inv_temperature;
        float w = listed[i].x == listed[0].x ? 1.0 : exp_reproducible(x);
        precise float units = w * float(ONE);
        weight[i] = w < ctl.min_p ? 0u : uint(units);
    }
    barrier();
}

/* Philox4x32-10 (Salmon et al., 2011), first word of the block. */
uint philox(uint counter, uvec2 key)
{
    uvec4 c = uvec4(counter, 0u, 0u, 0u);
    for (uint round = 0u; round < 10u; round++) {
        uint hi0, lo0, hi1, lo1;
        umulExtended(0xd2511f53u, c.x, hi0, lo0);
        umulExtended(0xcd9e8d57u, c.z, hi1, lo1);
        c = uvec4(hi1 ^ c.y ^ key.x, lo1, hi0 ^ c.w ^ key.y, lo0);
        key += uvec2(0x9e3779b9u, 0xbb67ae85u);
    }
    return c.x;
}

/* Cuts the sorted list to the smallest prefix with top_p of their weight,
 * one at least, and draws one of these. */
uint draw(uint n)
{
    uint total = 0u, enough, low;
    for (uint i = 0u; i < n; i++)
        total += weight[i];
    if (ctl.top_p < 1.0) { /* ceil(total * top_p), of which 24 bits count */
        umulExtended(total, uint(ctl.top_p * 16777216.0) << 8, enough, low);
        enough = max(1u, enough + (low != 0u ? 1u : 0u));
    } else
        enough = total;
    uint kept = 0u;
    for (uint i = 0u; i < n && kept < enough; i++)
        kept += weight[i];
    uint random = philox(ctl.pos + ctl.n_tokens, uvec2(ctl.seed_lo, ctl.seed_hi));
    uint point;
    umulExtended(kept, random, point, low); /* uniform in [0, kept) */
    uint i = 0u;
    for (; i + 1u < n && point >= weight[i]; i++)
        point -= weight[i];
    return listed[i].y;
}

/* The id that temperature, cuts and chance choose, for invocation 0. */
uint drawn(uint self, uint width, uint groups, uint k)
{
    uvec2 threshold = uvec2(lower_bound(self, width, groups, k), 0u);
    list(self, width, groups, threshold);
    if (n_listed > MAX_LISTED) {
        threshold = refine(self, width, k);
        for (uint g = self; g < groups; g += width)
            group_max[g] = 0xffffffffu;
        if (self == 0u)
            n_listed = 0u;
        barrier();
        list(self, width, groups, threshold);
    }
    uint n = n_listed;
    if (n == 0u) /* nothing but -inf */
        return 0u;
    sort_list(self, width, n);
    n = min(n, k);
    weigh(self, width, n);
    return self == 0u ? draw(n) : 0u;
}

/* Makes the drawn id part of the timeline; by one invocation. */
void advance(uint id)
{
    uint stop = 0u;
    for (uint i = 0u; i < min(ctl.n_eog, CTL_MAX_EOG); i++)
        stop |= ctl.eog[i] == id ? 1u : 0u;
    uint n = ctl.n_out;
    result.ids[n] = id;
    result.n_out = n + 1u;
    result.stop = stop;
    ctl.n_out = n + 1u;
    ctl.stop = stop;
    counts[id] += 1u;
    if (p.advance != 0u) {
        ctl.pos += ctl.n_tokens;
        ctl.n_tokens = 1u;
        ctl.tokens[0] = id;
        ctl.side ^= 1u;
    }
}

void main()
{
    uint n_vocab = ctl.n_vocab, k = min(ctl.top_k, min(n_vocab, SAMPLE_MAX_K));
    if (ctl.stop != 0u || ctl.n_out >= CTL_MAX_IDS || n_vocab == 0u)
        return;
    n_quads = n_vocab / 4u;
    n_tail = n_vocab % 4u;
    penalised = ctl.repeat_penalty != 1.0 || ctl.presence_penalty != 0.0 ||
                ctl.frequency_penalty != 0.0;
    uint self = gl_LocalInvocationIndex, width = gl_WorkGroupSize.x;
    uint groups = width;
    while (groups < 2u * k && groups + width <= MAX_GROUPS)
        groups += width;
    uvec2 best;
    for (uint g = self; g < groups; g += width) {
        best = scan(g, groups);
        group_max[g] = best.x;
    }
    if (self == 0u)
        n_listed = 0u;
    for (uint i = self; i < 32u; i += width)
        reached[i] = 0u;
    barrier();
    uint id = k <= 1u ? largest(self, best) : drawn(self, width, groups, k);
    if (self == 0u)
        advance(id);
}
