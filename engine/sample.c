/* sample.c - checks and defaults of the sampler's parameters. */
#include "engine/sample.h"

#include <math.h>

_Static_assert((int)SAMPLER_MAX_K == SAMPLE_MAX_K, "one limit for host and device");
_Static_assert((int)DECODE_MAX_STEPS == CTL_MAX_IDS, "one limit for host and device");

/* Lower temperatures act like this one, which is greedy but for exact ties. */
static const float COLDEST = 1e-6f;
/* Makes all candidates equally likely. */
static const float HOTTEST = 1e6f;

/* NaN is in no range. */
static int check_range(const char *name, float v, float low, float high, struct err *err)
{
    if (v >= low && v <= high)
        return 0;
    return err_set(err, "%s %g: must be from %g to %g", name, (double)v, (double)low,
                   (double)high);
}

int sample_configure(struct ctl_block *ctl, const struct sampler_params *p,
                     struct err *err)
{
    if (check_range("temperature", p->temperature, 0, HOTTEST, err) < 0 ||
        check_range("top_p", p->top_p, 0, 1, err) < 0 ||
        check_range("min_p", p->min_p, 0, 1, err) < 0 ||
        check_range("repeat_penalty", p->repeat_penalty, 0, 100, err) < 0 ||
        check_range("presence_penalty", p->presence_penalty, -100, 100, err) < 0 ||
        check_range("frequency_penalty", p->frequency_penalty, -100, 100, err) < 0)
        return -1;
    if (p->top_k > SAMPLER_MAX_K)
        return err_set(err, "top_k %u: must be from 0 to %d", p->top_k, SAMPLER_MAX_K);
    ctl->top_k = p->temperature == 0 ? 1 : p->top_k ? p->top_k : SAMPLER_MAX_K;
    ctl->seed_lo = (uint32_t)p->seed;
    ctl->seed_hi = (uint32_t)(p->seed >> 32);
    ctl->inv_temperature = p->temperature > 0 ? 1 / fmaxf(p->temperature, COLDEST) : 1;
    ctl->top_p = p->top_p > 0 ? p->top_p : 1;
    ctl->min_p = p->min_p;
    ctl->repeat_penalty = p->repeat_penalty > 0 ? p->repeat_penalty : 1;
    ctl->presence_penalty = p->presence_penalty;
    ctl->frequency_penalty = p->frequency_penalty;
    return 0;
}
