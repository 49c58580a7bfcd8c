/* ref_attention.c - norm, rotation and softmax attention of one head, as the
 * formulas are written. */
#include "engine/ref.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/* Radians a position that pair i turns by. */
static double frequency(const struct ref_rope *r, uint32_t i)
{
    const double pi = 3.14159265358979323846, dims = 2.0 * r->pairs;
    double f = pow(r->base, -2.0 * i / dims);
    if (r->factor == 0)
        return f;
    double low = dims * log(r->trained / (r->beta_fast * 2 * pi)) / (2 * log(r->base));
    double high = dims * log(r->trained / (r->beta_slow * 2 * pi)) / (2 * log(r->base));
    low = fmax(floor(low), 0);
    high = fmin(ceil(high), dims - 1);
    if (i <= low)
        return f;
    if (i >= high)
        return f / r->factor;
    double ramp = (i - low) / (high - low);
    return ramp * f / r->factor + (1 - ramp) * f;
}

void ref_norm_rope(const float *x, const float *weight, size_t dim, float eps,
                   const struct ref_rope *rope, float *out)
{
    double sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += (double)x[i] * x[i];
    double inv = 1.0 / sqrt(sum / (double)dim + eps);
    for (size_t i = 0; i < dim; i++)
        out[i] = (float)(x[i] * inv * weight[i]);
    double size = rope->factor == 0 ? 1 : rope->magnitude * (1 + 0.1 * log(rope->factor));
    for (uint32_t i = 0; i < rope->pairs; i++) {
        double angle = rope->position * frequency(rope, i);
        double a = size * out[i], b = size * out[i + rope->pairs];
        out[i] = (float)(a * cos(angle) - b * sin(angle));
        out[i + rope->pairs] = (float)(a * sin(angle) + b * cos(angle));
    }
}

void ref_attend(const struct ref_attention *a, float *out)
{
    double *score = mem_array(a->n, sizeof *score), top = -INFINITY, sum = 0;
    for (size_t i = 0; i < a->n; i++) {
        score[i] = 0;
        for (size_t d = 0; d < a->dim; d++)
            score[i] += (double)a->q[d] * a->k[i * a->stride + d];
        score[i] *= a->scale;
        top = score[i] > top ? score[i] : top;
    }
    for (size_t i = 0; i < a->n; i++) {
        score[i] = exp(score[i] - top);
        sum += score[i];
    }
    for (size_t d = 0; d < a->dim; d++) {
        double v = 0;
        for (size_t i = 0; i < a->n; i++)
            v += score[i] * a->v[i * a->stride + d];
        out[d] = (float)(v / sum);
    }
    free(score);
}

void ref_gate(float *x, const float *gate, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(x[i] / (1.0 + exp(-(double)gate[i])));
}
