/* pack_block.h - inside of repacking: how a block of a file becomes codes and
 * scales of the device. For engine/pack_rows.c only. */
#ifndef ENGINE_PACK_BLOCK_H
#define ENGINE_PACK_BLOCK_H

#include "engine/kernel.h"

enum { PACK_BLOCK_MAX = 256 }; /* elements of the largest block */

struct pack_block {
    enum device_format format; /* base-3 digits become 2-bit codes */
    /* Block b to a code a byte in q and to its part of the scale plane in s,
     * as shaders/format_scales.glsl reads it. NULL: floats, or not known. */
    void (*spread)(const uint8_t *b, uint8_t *q, uint8_t *s);
};

/* Of each file format that runs; static storage. */
extern const struct pack_block pack_blocks[QUANT_COUNT];

#endif
