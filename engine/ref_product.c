/* ref_product.c - see ref_product.h. Accumulates in double. */
#include "engine/ref_product.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 32, HEAD = 128 };

static void block_planes(const float *v, const float *w, bool int8, size_t b,
                         struct ref_planes *out)
{
    float amax = 0, ss = 0;
    int sum = 0;
    for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
        amax = fmaxf(amax, fabsf(v[i] * (w ? w[i] : 1)));
        ss += v[i] * v[i];
    }
    for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
        float x = v[i] * (w ? w[i] : 1);
        if (int8) {
            out->q[i] = (int8_t)(amax > 0 ? rintf(x * (127.0f / amax)) : 0);
            sum += out->q[i];
        } else {
            out->f[i] = x;
        }
    }
    float scale = amax / 127.0f;
    out->s[2 * b] = scale;
    out->s[2 * b + 1] = scale * (float)sum;
    out->ss[b] = ss;
}

void ref_planes(const float *v, const float *w, size_t n, bool int8,
                struct ref_planes *out)
{
    for (size_t b = 0; b < n / BLOCK; b++)
        block_planes(v, w, int8, b, out);
}

/* RMS factor of the group of columns that c belongs to. */
static double factor(const struct ref_planes *act, size_t cols, size_t c,
                     enum ref_norm norm, float eps)
{
    if (norm == REF_NORM_NONE)
        return 1;
    size_t group = norm == REF_NORM_ROW ? cols : HEAD;
    size_t first = c / group * group / BLOCK;
    double sum = 0;
    for (size_t b = first; b < first + group / BLOCK; b++)
        sum += act->ss[b];
    return 1 / sqrt(sum / (double)group + eps);
}

void ref_product(const struct ref_matrix *m, const struct ref_planes *act, bool int8,
                 enum ref_norm norm, float eps, float *y)
{
    const size_t cols = m->cols, row_bytes = quant_bytes(m->type, cols);
    float *w = mem_array(cols, sizeof *w);
    double *x = mem_array(cols, sizeof *x);
    for (size_t c = 0; c < cols; c++) {
        double v = int8 ? (double)act->q[c] * act->s[c / BLOCK * 2] : act->f[c];
        x[c] = v * factor(act, cols, c, norm, eps);
    }
    for (size_t r = 0; r < m->rows; r++) {
        quant_dequantize(m->type, (const uint8_t *)m->weights + r * row_bytes, cols, w);
        double sum = 0;
        for (size_t c = 0; c < cols; c++)
            sum += w[c] * x[c];
        y[r] = (float)sum;
    }
    free(w);
    free(x);
}
