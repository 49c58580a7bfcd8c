/* ref_moe.c - see ref_moe.h. */
#include "engine/ref_moe.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

static bool is_chosen(const uint32_t *ids, uint32_t n, uint32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

void ref_select(const float *logits, uint32_t n, uint32_t slots, float scale,
                uint32_t *ids, float *weights)
{
    double top = logits[0], all = 0, sum = 0;
    for (uint32_t i = 1; i < n; i++)
        top = fmax(top, logits[i]);
    for (uint32_t i = 0; i < n; i++)
        all += exp(logits[i] - top);
    for (uint32_t s = 0; s < slots; s++) {
        uint32_t best = n;
        for (uint32_t i = 0; i < n; i++)
            if (!is_chosen(ids, s, i) && (best == n || logits[i] > logits[best]))
                best = i;
        ids[s] = best;
        sum += exp(logits[best] - top) / all;
    }
    for (uint32_t s = 0; s < slots; s++) {
        double p = exp(logits[ids[s]] - top) / all;
        weights[s] = (float)(p / fmax(sum, 0x1p-14) * scale);
    }
    weights[slots] = (float)(1 / (1 + exp(-(double)logits[n])));
}

/* Rows of one expert in a tensor of many. */
static const uint8_t *slab(const struct ref_experts *e, const uint8_t *data,
                           uint32_t expert)
{
    return data + expert * quant_bytes(e->type, e->width * e->n_embd);
}

void ref_expert_hidden(const struct ref_experts *e, uint32_t expert,
                       const struct ref_planes *x, float eps, float *h)
{
    float *up = mem_array(e->width, sizeof *up);
    ref_product(
        &(struct ref_matrix){ e->type, slab(e, e->gate, expert), e->width, e->n_embd }, x,
        e->int8, REF_NORM_ROW, eps, h);
    ref_product(
        &(struct ref_matrix){ e->type, slab(e, e->up, expert), e->width, e->n_embd }, x,
        e->int8, REF_NORM_ROW, eps, up);
    for (size_t i = 0; i < e->width; i++)
        h[i] = (float)(h[i] / (1 + exp(-(double)h[i])) * up[i]);
    free(up);
}

void ref_experts_sum(const struct ref_experts *e, uint32_t slots, const uint32_t *ids,
                     const float *weights, const struct ref_planes *h, float *y)
{
    double *sum = mem_array(e->n_embd, sizeof *sum);
    float *one = mem_array(e->n_embd, sizeof *one);
    for (size_t i = 0; i < e->n_embd; i++)
        sum[i] = 0;
    for (uint32_t s = 0; s < slots; s++) {
        ref_product(&(struct ref_matrix){ e->type, slab(e, e->down, ids[s]), e->n_embd,
                                          e->width },
                    &h[s], e->int8, REF_NORM_NONE, 0, one);
        for (size_t i = 0; i < e->n_embd; i++)
            sum[i] += (double)weights[s] * one[i];
    }
    for (size_t i = 0; i < e->n_embd; i++)
        y[i] = (float)sum[i];
    free(sum);
    free(one);
}
