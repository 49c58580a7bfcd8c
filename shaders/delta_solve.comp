/* delta_solve.comp - the chunked delta rule, step 2 of 4: what does not depend
 * on the state. A workgroup makes T, P T and the decays of one v head and
 * sub-chunk.
 *
 * A and P are lower triangles, A without its diagonal, so that they share one
 * square in workgroup memory: A_ij at [i][j], P_ij at [j][i]. A becomes T
 * without its diagonal of ones: blocks of 16 by substitution, an invocation a
 * column, then twice as large ones from two on the diagonal and the one below
 * them, X = -T22 A21 T11, until there is one. Every matrix on the way is a
 * part of T, whose entries do not grow: none is larger than 1. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "ctl.glsl"

layout(constant_id = 2) const uint GROUP = 256; /* as spec constant 0; >= CHUNK */

layout(push_constant) uniform push_block { push_delta p; };
layout(set = 0, binding = 0, std430) readonly buffer ctl_buffer { ctl_block ctl; };
layout(set = 0, binding = 1, std430) readonly buffer proj_block { float proj[]; };
layout(set = 0, binding = 2, std430) readonly buffer dt_block { float dt_bias[]; };
layout(set = 0, binding = 3, std430) readonly buffer a_block { float ssm_a[]; };
layout(set = 0, binding = 4, std430) readonly restrict buffer kq_block { vec4 kq[]; };
layout(set = 0, binding = 5, std430) writeonly buffer solved_block { vec4 solved[]; };
layout(set = 0, binding = 6, std430) writeonly buffer pace_block { float pace[]; };
#include "delta_chunk.glsl"

const uint N = CHUNK_QUADS; /* quads a row */
const uint BLOCK = 16;
/* Quads of X that an invocation makes of the largest block. */
const uint EACH = (CHUNK * CHUNK / 16 + GROUP - 1) / GROUP;
/* Logarithm of a decay that is 0 as a float. */
const float LEAST_GATE = -104.0;

shared vec4 square_s[CHUNK * N];
shared vec4 gate_s[N];      /* logarithm of each token's decay */
shared float beta_s[CHUNK];
shared vec2 total_s[CHUNK]; /* G as the sum of two floats */

void read_gate(uint i, uint token, uint head)
{
    uint b = token * p.proj_stride + p.beta_offset + head;
    uint a = token * p.proj_stride + p.alpha_offset + head;
    if (p.ba_grouped != 0) {
        uint rep = p.n_v / p.n_k;
        b += head / rep * rep;
        a = b + rep;
    }
    float gate = 0.0, beta = 0.0;
    if (token < ctl.n_tokens) {
        float x = proj[a] + dt_bias[head];
        float softplus = max(x, 0.0) + log(1.0 + exp(-abs(x)));
        gate = max(ssm_a[head] * softplus, LEAST_GATE);
        beta = 1.0 / (1.0 + exp(-proj[b]));
    }
    gate_s[i / 4][i % 4] = gate;
    beta_s[i] = beta;
}

/* G_i to twice a float's precision: differences of large sums must be right
 * to a float's precision of small ones. */
void sum_gates(uint i)
{
    precise float high = 0.0, low = 0.0;
    vec4 next = gate_s[0];
    for (uint q = 0; q < N; q++) {
        vec4 gates = next;
        next = gate_s[min(q + 1, N - 1)];
        [[unroll]] for (uint e = 0; e < 4; e++) {
            precise float g = 4 * q + e <= i ? gates[e] : 0.0;
            precise float sum = high + g;
            precise float part = sum - high;
            low += (high - (sum - part)) + (g - part);
            high = sum;
        }
    }
    total_s[i] = vec2(high, low);
}

/* exp(G_i - G_j); where j is after i, where it may overflow, nobody looks. */
float decay(uint i, uint j)
{
    vec2 a = total_s[i], b = total_s[j];
    precise float high = a.x - b.x;
    precise float low = a.y - b.y;
    return exp(high + low);
}

/* The same for the four j of a quad. */
vec4 decays(uint i, uint quad)
{
    return vec4(decay(i, 4 * quad), decay(i, 4 * quad + 1), decay(i, 4 * quad + 2),
                decay(i, 4 * quad + 3));
}

const uint AHEAD = 2; /* keys loaded ahead */

/* AHEAD keys of two quads of kq, and what they add to the products. */
struct key_rows {
    vec4 a[AHEAD], b[AHEAD];
};

key_rows load_keys(uint row, uint column, uint key)
{
    key_rows k;
    [[unroll]] for (uint i = 0; i < AHEAD; i++) {
        k.a[i] = kq[(key + i) * 2 * N + row];
        k.b[i] = kq[(key + i) * 2 * N + column];
    }
    return k;
}

void use_keys(inout vec4 sum[4], key_rows k)
{
    [[unroll]] for (uint i = 0; i < AHEAD; i++)
        [[unroll]] for (uint m = 0; m < 4; m++)
            sum[m] += k.a[i][m] * k.b[i];
}

/* Dot products of four rows and four columns over all keys. */
vec4[4] products(uint row, uint column)
{
    vec4 sum[4] = vec4[4](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
    key_rows even = load_keys(row, column, 0), odd;
    for (uint key = 2 * AHEAD; key < STATE_DIM; key += 2 * AHEAD) {
        odd = load_keys(row, column, key - AHEAD);
        use_keys(sum, even);
        even = load_keys(row, column, key);
        use_keys(sum, odd);
    }
    odd = load_keys(row, column, STATE_DIM - AHEAD);
    use_keys(sum, even);
    use_keys(sum, odd);
    return sum;
}

/* Four by four of A, rows of quad r and columns of quad c, r >= c. */
void keep_written(vec4 sum[4], uint r, uint c)
{
    [[unroll]] for (uint m = 0; m < 4; m++)
        sum[m] *= beta_s[4 * r + m];
    [[unroll]] for (uint m = 0; m < 4; m++) {
        if (r != c)
            square_s[(4 * r + m) * N + c] = sum[m];
        else
            [[unroll]] for (uint n = 0; n < m; n++)
                square_s[(4 * r + m) * N + c][n] = sum[m][n];
    }
}

/* The same of P, transposed. */
void keep_read(vec4 sum[4], uint r, uint c)
{
    [[unroll]] for (uint n = 0; n < 4; n++) {
        if (r != c)
            square_s[(4 * c + n) * N + r] =
                vec4(sum[0][n], sum[1][n], sum[2][n], sum[3][n]);
        else
            [[unroll]] for (uint m = n; m < 4; m++)
                square_s[(4 * c + n) * N + r][m] = sum[m][n];
    }
}

/* A and P in tiles of four by four; each triangle has N (N + 1) / 2 of them,
 * N + 1 of each pair of rows from the two ends. */
void make_triangles(uint local, uint sub, uint head)
{
    const uint TILES = N * (N + 1) / 2;
    uint at = (sub * p.n_k + key_head(head)) * STATE_DIM * (2 * N);
    uint t = local;
    while (t < 2 * TILES) {
        bool reads = t >= TILES;
        uint u = reads ? t - TILES : t, pair = u / (N + 1), x = u % (N + 1);
        uint r = x <= pair ? pair : N - 1 - pair;
        uint c = x <= pair ? x : x - pair - 1;
        vec4 sum[4] = products(at + (reads ? N + r : r), at + c);
        [[unroll]] for (uint m = 0; m < 4; m++)
            sum[m] *= decays(4 * r + m, c);
        if (reads)
            keep_read(sum, r, c);
        else
            keep_written(sum, r, c);
        t += GROUP;
    }
}

/* Row i of T, columns of quad q. */
vec4 t_quad(uint i, uint q)
{
    uvec4 j = 4 * q + uvec4(0, 1, 2, 3);
    return mix(vec4(equal(j, uvec4(i))), square_s[i * N + q], lessThan(j, uvec4(i)));
}

/* Column j of P, rows of quad q. */
vec4 p_quad(uint j, uint q)
{
    uvec4 i = 4 * q + uvec4(0, 1, 2, 3);
    return mix(vec4(0.0), square_s[j * N + q], greaterThanEqual(i, uvec4(j)));
}

/* The blocks on the diagonal. */
void solve_blocks(uint local)
{
    uint first = local / BLOCK * BLOCK, column = local % BLOCK;
    float x[BLOCK];
    if (local < CHUNK)
        [[unroll]] for (uint i = 0; i < BLOCK; i++) {
            float s = 0.0;
            [[unroll]] for (uint q = 0; q < (i + 3) / 4; q++) {
                vec4 a = square_s[(first + i) * N + first / 4 + q];
                [[unroll]] for (uint e = 0; e < 4; e++)
                    if (4 * q + e < i)
                        s += a[e] * x[4 * q + e];
            }
            x[i] = (i == column ? 1.0 : 0.0) - s;
        }
    barrier();
    if (local < CHUNK)
        [[unroll]] for (uint i = 1; i < BLOCK; i++)
            if (i > column)
                square_s[(first + i) * N + (first + column) / 4][column % 4] = x[i];
    barrier();
}

/* Blocks of twice `size` from those of that size: first A21 T11, then X. */
void join_blocks(uint local, const uint size)
{
    const uint COUNT = CHUNK * size / 8; /* quads below the diagonal blocks */
    vec4 x[EACH];
    for (uint side = 0; side < 2; side++) {
        [[unroll]] for (uint n = 0; n < EACH; n++) {
            uint u = n * GROUP + local;
            uint pair = u / (size * size / 4), q = u % (size / 4);
            uint r = u / (size / 4) % size, top = pair * 2 * size;
            x[n] = vec4(0.0);
            if (u < COUNT) {
                uint i = top + size + r, l = 0;
                do {
                    vec4 a = side == 0 ? square_s[i * N + top / 4 + l]
                                       : -t_quad(i, (top + size) / 4 + l);
                    uint row = top + side * size + 4 * l;
                    [[unroll]] for (uint e = 0; e < 4; e++)
                        x[n] += a[e] * (side == 0 ? t_quad(row + e, top / 4 + q)
                                                  : square_s[(row + e) * N + top / 4 + q]);
                } while (++l < size / 4);
            }
        }
        barrier();
        [[unroll]] for (uint n = 0; n < EACH; n++) {
            uint u = n * GROUP + local;
            uint pair = u / (size * size / 4), q = u % (size / 4);
            uint r = u / (size / 4) % size, top = pair * 2 * size;
            if (u < COUNT)
                square_s[(top + size + r) * N + top / 4 + q] = x[n];
        }
        barrier();
    }
}

/* Quad i of rows and j of columns of P T, column by column; j <= i. Only the
 * quads on the diagonal are not all T or all P. */
vec4[4] read_tile(uint i, uint j)
{
    vec4 sum[4] = vec4[4](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
    [[unroll]] for (uint e = 0; e < 4; e++) {
        vec4 a = t_quad(4 * j + e, j), b = p_quad(4 * j + e, i);
        [[unroll]] for (uint c = 0; c < 4; c++)
            sum[c] += a[c] * b;
    }
    for (uint l = j + 1; l < i; l++)
        [[unroll]] for (uint e = 0; e < 4; e++) {
            vec4 a = square_s[(4 * l + e) * N + j], b = square_s[(4 * l + e) * N + i];
            [[unroll]] for (uint c = 0; c < 4; c++)
                sum[c] += a[c] * b;
        }
    if (i != j)
        [[unroll]] for (uint e = 0; e < 4; e++) {
            vec4 a = square_s[(4 * i + e) * N + j], b = p_quad(4 * i + e, i);
            [[unroll]] for (uint c = 0; c < 4; c++)
                sum[c] += a[c] * b;
        }
    return sum;
}

/* T and P T, transposed, columns multiplied by beta; the upper triangles are
 * zeros. */
void store(uint local, uint at)
{
    uint t = local;
    while (t < N * N) {
        uint i = t % N, j = t / N;
        mat4 made = mat4(0.0);
        vec4 reads[4] = vec4[4](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
        if (j <= i) {
            made = transpose(mat4(t_quad(4 * i, j), t_quad(4 * i + 1, j),
                                  t_quad(4 * i + 2, j), t_quad(4 * i + 3, j)));
            reads = read_tile(i, j);
        }
        [[unroll]] for (uint c = 0; c < 4; c++) {
            float beta = beta_s[4 * j + c];
            uint to = at + (4 * j + c) * 2 * N + i;
            solved[to] = beta * made[c];
            solved[to + N] = beta * reads[c];
        }
        t += GROUP;
    }
}

void main()
{
    uint head = gl_WorkGroupID.x, sub = gl_WorkGroupID.y;
    if (ctl.stop != 0 || sub * CHUNK >= ctl.n_tokens)
        return;
    uint local = gl_LocalInvocationIndex;
    if (local < CHUNK)
        read_gate(local, sub * CHUNK + local, head);
    barrier();
    if (local < CHUNK)
        sum_gates(local);
    barrier();
    make_triangles(local, sub, head);
    uint at = sub * p.n_v + head;
    if (local < CHUNK) {
        pace[at * 2 * CHUNK + local] = exp(total_s[local].x + total_s[local].y);
        pace[(at * 2 + 1) * CHUNK + local] = decay(CHUNK - 1, local);
    }
    barrier();
    solve_blocks(local);
    join_blocks(local, BLOCK);
    if (CHUNK > 2 * BLOCK)
        join_blocks(local, 2 * BLOCK);
    store(local, at * CHUNK * (2 * N));
}
