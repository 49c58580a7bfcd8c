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

#if defined(TABLE_iq4) || defined(TABLE_fp4)
#define TABLE
#ifdef TABLE_iq4
const int values[16] = int[16](-127, -104, -83, -65, -49, -35, -22, -10,
                               1, 13, 25, 38, 53, 69, 89, 113);
#else /* numbers of one sign, two exponent, one mantissa bit, times two */
const int values[16] = int[16](0, 1, 2, 3, 4, 6, 8, 12,
                               0, -1, -2, -3, -4, -6, -8, -12);
#endif

/* The value of each code in all four bytes, once for each of 32 banks of
 * workgroup memory: no two invocations wait for each other. */
#define BANKS 32
shared uint table[16 * BANKS];

/* Four codes, each in the low bits of its byte, to their values. */
uint look_up(uint b)
{
    uint bank = gl_SubgroupInvocationID & (BANKS - 1);
    uint v0 = table[(b & 15) * BANKS | bank], v1 = table[(b >> 8 & 15) * BANKS | bank],
         v2 = table[(b >> 16 & 15) * BANKS | bank], v3 = table[(b >> 24) * BANKS | bank];
    uint even = v0 & 0x0000ffffu | v2 & 0xffff0000u;
    uint odd = v1 & 0x0000ffffu | v3 & 0xffff0000u;
    return even & 0x00ff00ffu | odd & 0xff00ff00u;
}
#endif

void format_begin()
{
#ifdef TABLE
    for (uint i = gl_LocalInvocationIndex; i < 16 * BANKS; i += gl_WorkGroupSize.x)
        table[i] = uint(values[i / BANKS] & 255) * BYTES;
    barrier();
#endif
}

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
#ifdef TABLE
    b = look_up(b);
#endif
    return b;
#endif
}

/* Sign-extends four packed bytes. */
ivec4 bytes_int(uint b)
{
    return ivec4(b << 24, b << 16, b << 8, b) >> 24;
}

vec4 quad_float(weight_unit w, uint q)
{
    return vec4(bytes_int(quad_bytes(w, q)) - OFFSET);
}
