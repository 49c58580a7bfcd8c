/* ref_sample.c - sampling by sorting the whole vocabulary. Float operations
 * that decide anything are single multiplications and additions, in the order
 * that the kernel does them. */
#include "engine/ref_sample.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONE (1u << 23) /* weight of the most likely candidate */

struct candidate {
    float v;
    uint32_t id;
};

void ref_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c[4], k[2] = { key[0], key[1] };
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xd2511f53 * c[0], b = (uint64_t)0xcd9e8d57 * c[2];
        const uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
                                   (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a };
        memcpy(c, next, sizeof c);
        k[0] += 0x9e3779b9;
        k[1] += 0xbb67ae85;
    }
    memcpy(out, c, sizeof c);
}

static float penalise(const struct ctl_block *ctl, float v, uint32_t count)
{
    if (!count)
        return v;
    v = v > 0 ? v / ctl->repeat_penalty : v * ctl->repeat_penalty;
    v = v - ctl->presence_penalty;
    float frequent = ctl->frequency_penalty * (float)count;
    return v - frequent;
}

static int by_value(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->v != y->v)
        return x->v > y->v ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* exp(x) for x <= 0. */
static float exp_reproducible(float x)
{
    static const float c[] = { 0.00020817918f, 0.0012692166f, 0.0096521955f,
                               0.055496022f,   0.2402272f,    0.6931472f };
    if (!(x > -80))
        return 0;
    float y = x * 1.44269504f;
    float n = floorf(y), f = y - n, v = c[0] * f;
    for (int i = 1; i < 6; i++)
        v = (v + c[i]) * f;
    return ldexpf(v + 1, (int)n);
}

static uint32_t weigh(const struct ctl_block *ctl, float v, float top)
{
    float below = v - top;
    float w = v == top ? 1 : exp_reproducible(below * ctl->inv_temperature);
    return w < ctl->min_p ? 0 : (uint32_t)(w * (float)ONE);
}

/* c[0, n) are sorted; returns the index of the drawn one. */
static uint32_t draw(const struct ctl_block *ctl, const struct candidate *c, uint32_t n)
{
    uint32_t weight[SAMPLE_MAX_K], total = 0, kept = 0, random[4], i;
    for (i = 0; i < n; i++)
        total += weight[i] = weigh(ctl, c[i].v, c[0].v);
    uint64_t enough = total;
    if (ctl->top_p < 1) {
        uint64_t share = (uint32_t)(ctl->top_p * 16777216.0f);
        enough = ((uint64_t)total * share + 0xffffff) >> 24;
        enough = enough ? enough : 1;
    }
    for (i = 0; i < n && kept < enough; i++)
        kept += weight[i];
    const uint32_t counter[4] = { ctl->pos + ctl->n_tokens };
    const uint32_t key[2] = { ctl->seed_lo, ctl->seed_hi };
    ref_philox(random, counter, key);
    uint32_t point = (uint32_t)((uint64_t)kept * random[0] >> 32);
    for (i = 0; i + 1 < n && point >= weight[i]; i++)
        point -= weight[i];
    return i;
}

static uint32_t choose(const struct ctl_block *ctl, const float *logits,
                       const uint32_t *counts)
{
    const bool penalised = ctl->repeat_penalty != 1 || ctl->presence_penalty != 0 ||
                           ctl->frequency_penalty != 0;
    struct candidate *c = mem_array(ctl->n_vocab, sizeof *c);
    uint32_t n = 0;
    for (uint32_t i = 0; i < ctl->n_vocab; i++) {
        float v = penalised ? penalise(ctl, logits[i], counts[i]) : logits[i];
        if (!isnan(v) && v != -INFINITY)
            c[n++] = (struct candidate){ v, i };
    }
    qsort(c, n, sizeof *c, by_value);
    uint32_t k = ctl->top_k < n ? ctl->top_k : n;
    uint32_t id = k > 1 ? c[draw(ctl, c, k)].id : k == 1 ? c[0].id : 0;
    free(c);
    return id;
}

void ref_sample(struct ctl_block *ctl, struct out_block *out, const float *logits,
                uint32_t *counts, bool advance)
{
    if (ctl->stop || ctl->n_out >= CTL_MAX_IDS)
        return;
    uint32_t id = choose(ctl, logits, counts);
    for (uint32_t i = 0; i < ctl->n_eog && i < CTL_MAX_EOG; i++)
        ctl->stop |= ctl->eog[i] == id;
    out->stop = ctl->stop;
    out->ids[ctl->n_out++] = id;
    out->n_out = ctl->n_out;
    counts[id]++;
    if (advance) {
        ctl->pos += ctl->n_tokens;
        ctl->n_tokens = 1;
        ctl->tokens[0] = id;
        ctl->side ^= 1;
    }
}
