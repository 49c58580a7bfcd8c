/* ref_product.h - plain C references of the product and embedding kernels, and
 * of activation planes; what the device is tested against. */
#ifndef ENGINE_REF_PRODUCT_H
#define ENGINE_REF_PRODUCT_H

#include "engine/quant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The planes of one activation vector of n values (engine/kernel.h). Either q
 * (int8 path) or f (float path) is used. */
struct ref_planes {
    int8_t *q;   /* [n] */
    float *f;    /* [n] */
    float *s;    /* [n / 32][2]: scale, scale * sum of the block's q */
    float *ss;   /* [n / 32] */
};

/* Planes of v with weights w (NULL: ones); int8 chooses q or f. */
void ref_planes(const float *v, const float *w, size_t n, bool int8, struct ref_planes *out);

enum ref_norm { REF_NORM_NONE, REF_NORM_ROW, REF_NORM_HEADS };
/* Rows in file format. */
struct ref_matrix {
    enum quant type;
    const void *weights;
    size_t rows, cols;
};
/* y[r] = factor * sum_c W[r][c] * act[c] in double. The RMS factor is over all
 * columns, or per 128 of them. */
void ref_product(const struct ref_matrix *m, const struct ref_planes *act, bool int8,
                 enum ref_norm norm, float eps, float *y);

#endif
