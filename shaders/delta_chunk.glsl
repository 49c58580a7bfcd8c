/* delta_chunk.glsl - what the steps of the chunked delta rule share (the
 * formulas are at ref_delta_chunk in engine/ref_delta.h). A pass is cut into
 * sub-chunks of CHUNK tokens, the last one filled up with tokens that change
 * nothing: q, k, v, beta and gate are zero.
 *
 * Scratch between the steps; in quads of floats, sub-chunk after sub-chunk:
 *   kq    [n_k][128 keys][2 CHUNK]: k of each token, then q
 *   k     [tokens][n_k * 128]
 *   v     [tokens][n_v * 128]; the scan puts its readout in the same place
 *   solved [n_v][CHUNK tokens j][2 CHUNK]: T_ij for each i, then (P T)_ij
 *   pace  [n_v][2 CHUNK]: exp(G_i) of each token, then exp(G_last - G_i)
 * q and k are normalised, q is divided by sqrt(128). */
layout(constant_id = 1) const uint CHUNK = 64; /* 32 or 64 */

const uint CHUNK_QUADS = CHUNK / 4;
const uint HEAD_QUADS = STATE_DIM / 4;

/* The k head that a v head reads. */
uint key_head(uint head)
{
    return p.grouped_heads != 0 ? head / (p.n_v / p.n_k) : head % p.n_k;
}
