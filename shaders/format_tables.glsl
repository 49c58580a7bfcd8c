/* format_tables.glsl - codes of 4 bits that stand for int8 values of a table.
 * A unit is four words, one a bit of the codes: element 4j+i is at bit 8i+j of
 * each. Each bit of the values is a Boolean function of the four words, made
 * for all 32 elements at once; then a transposition of eight words by eight
 * bits, in all four bytes alike, gives eight quads. */
struct weight_unit {
    uint quads[8];
    scale_t scale[UNIT / SCALE_GROUP];
};

/* Bits of the values whose codes have the bits a (the lowest) to d. */
#ifdef TABLE_iq4
/* -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 */
uint[8] value_bits(uint a, uint b, uint c, uint d)
{
    return uint[8](c ^ ((b | ~c) & ((b ^ d) | ~(a | c))),
                   a ^ ((a & ~b) | (c & ~(a ^ d))),
                   (a & (c ^ d)) | (b ^ (c | (b & d))),
                   (~d & (b ^ c)) | (a ^ (b | (a & c))),
                   a ^ (d & ((a ^ b) | (a ^ c))),
                   b ^ (d & ~a & (b | c)),
                   c & (a | b | ~d),
                   ~d);
}
#else
/* 0, 1, 2, 3, 4, 6, 8, 12 and, with d, their negatives: numbers of two exponent
 * bits and one mantissa bit, times two */
uint[8] value_bits(uint a, uint b, uint c, uint d)
{
    uint m0 = a & ~c, m1 = (b & ~c) | (a & ~b & c), m2 = c & (a | ~b), m3 = b & c;
    uint minus = d & (a | b | c);
    return uint[8](m0, m1 ^ (d & m0), m2 ^ (d & (m0 | m1)), m3 ^ (d & (m0 | m1 | m2)),
                   minus, minus, minus, minus);
}
#endif

/* Swaps the bits of b at `low`, and those of a that are shift places higher. */
void swap_bits(inout uint a, inout uint b, uint shift, uint low)
{
    uint c = (a & low) | (b & low) << shift;
    b = (a >> shift & low) | (b & ~low);
    a = c;
}

uint[8] transposed(uint w[8])
{
    [[unroll]] for (uint i = 0; i < 4; i++)
        swap_bits(w[i], w[i + 4], 4, 0x0f0f0f0fu);
    [[unroll]] for (uint i = 0; i < 4; i++)
        swap_bits(w[i / 2 * 4 + i % 2], w[i / 2 * 4 + i % 2 + 2], 2, 0x33333333u);
    [[unroll]] for (uint i = 0; i < 4; i++)
        swap_bits(w[2 * i], w[2 * i + 1], 1, 0x55555555u);
    return w;
}

weight_unit unit_load(uint row, uint unit, uint units)
{
    uvec4 c = codes[row * units + unit];
    return weight_unit(transposed(value_bits(c.x, c.y, c.z, c.w)),
                       unit_scales(row, unit, units));
}

uint quad_bytes(weight_unit w, uint q)
{
    return w.quads[q];
}
