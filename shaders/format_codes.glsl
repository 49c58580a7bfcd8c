/* format_codes.glsl - integer codes. The low LOW_BITS bits of the codes of a
 * row fill its units; HIGH_BITS more of each lie behind them, padded to 16
 * bytes. In a word of fields of b bits, element 4j+i is at bit 8i+bj, so that
 * a shift and a mask give the fields of four neighbours in four bytes. */
#define BYTES 0x01010101u
#define HIGH_WORDS (UNIT * HIGH_BITS / 32) /* a unit */

struct weight_unit {
    uvec4 low;
#if HIGH_WORDS > 0
    uint high[HIGH_WORDS];
#endif
    scale_t scale[UNIT / SCALE_GROUP];
};

weight_unit unit_load(uint row, uint unit, uint units)
{
    const uint stride = units + (units * HIGH_WORDS + 3) / 4;
    weight_unit w;
    w.low = codes[row * stride + unit];
#if HIGH_WORDS == 1
    w.high[0] = codes1[(row * stride + units) * 4 + unit];
#elif HIGH_WORDS == 2
    uvec2 high = codes2[(row * stride + units) * 2 + unit];
    w.high[0] = high.x;
    w.high[1] = high.y;
#endif
    w.scale = unit_scales(row, unit, units);
    return w;
}

/* The fields at bits `from` of the bytes, moved to bits `to`. */
uint fields(uint word, uint from, uint to, uint bits)
{
    uint at_place = from > to ? word >> (from - to) : word << (to - from);
    return at_place & ((1u << bits) - 1) * BYTES << to;
}

uint quad_bytes(weight_unit w, uint q)
{
#if LOW_BITS == 8
    return w.low[q];
#elif LOW_BITS == 1 /* 0 and 2: less OFFSET, -1 and 1 */
    return fields(w.low[q / 8], q % 8, 1, 1);
#else
    const uint quads = 8 / LOW_BITS; /* a word */
    uint b = fields(w.low[q / quads], q % quads * LOW_BITS, 0, LOW_BITS);
#if HIGH_BITS > 0
    const uint high_quads = 8 / HIGH_BITS;
    b |= fields(w.high[q / high_quads], q % high_quads * HIGH_BITS, LOW_BITS, HIGH_BITS);
#endif
    return b;
#endif
}
