/* rotation.h - weights whose columns were rotated before they were rounded, as
 * the metadata prism.hadamard.* describe it. A product with such a matrix W wants
 * its input rotated alike: y = W H(s * x), where s holds a sign for each column
 * and H is the Walsh-Hadamard transform of each ROTATION_BLOCK columns in natural
 * order, H[r][c] = (-1)^popcount(r & c) / sqrt(ROTATION_BLOCK), its own inverse.
 * A row z of a rotated embedding stands for s * H(z).
 * Thread-safety: read-only after reading, any thread. */
#ifndef ENGINE_ROTATION_H
#define ENGINE_ROTATION_H

#include "engine/gguf.h"

enum { ROTATION_BLOCK = 1024, ROTATION_MAX_WIDTHS = 16 };

struct rotation {
    bool on;        /* the file describes one */
    bool v_grouped; /* columns of ssm_out are in grouped order of value heads, while
                     * all else is in tiled order */
    bool says_v;    /* the file says which */
    bool embedding; /* token_embd is rotated */
    bool tied;      /* version 2: there is no output.weight */
    struct gguf_array names; /* of the matrices, embedding apart */
    bool *used;              /* by position in names: a matrix has that name */
    uint32_t n_widths, widths[ROTATION_MAX_WIDTHS];
    int8_t *signs; /* of all widths one after the other; NULL: all +1 */
};

/* 1, on or not; 0 with the reason in err for what is not understood; -1 for a
 * malformed file. Release r whatever it returns. */
int rotation_read(struct rotation *r, const struct gguf *g, struct err *err);
void rotation_release(struct rotation *r);
/* Whether a matrix is named; it is then marked as used. */
bool rotation_take(struct rotation *r, const char *name);
/* The first name that no matrix of the decoder has; 1, or 0 with the reason. */
int rotation_check_used(const struct rotation *r, uint32_t n_layer, struct err *err);
/* Signs of a width, +1 or -1 each as f32; false if the file has none for it. */
bool rotation_signs(const struct rotation *r, uint64_t width, float *out);
/* 1, or 0 with the reason: whether inputs of that width can be rotated. */
int rotation_check_width(const struct rotation *r, const struct tensor *t,
                         struct err *err);

#endif
