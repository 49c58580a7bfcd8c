/* session_profile.c - where the device time of a pass goes, by kind of step. */
#include "engine/session.h"

#include <string.h>

struct kinds {
    struct step_time *v;
    size_t n;
    bool full;
};

static void add_step(void *arg, const struct gpu_step *step)
{
    struct kinds *k = arg;
    size_t i = 0;
    while (i < k->n && strcmp(k->v[i].label, step->label) != 0)
        i++;
    if (i == PROFILE_MAX_KINDS) {
        k->full = true;
        return;
    }
    if (i == k->n)
        k->v[k->n++] = (struct step_time){ .label = step->label };
    k->v[i].steps++;
    k->v[i].seconds += step->nanoseconds * 1e-9;
    k->v[i].bytes += step->reads;
}

int session_profile(struct session *s, enum profile_pass pass, struct step_time *out,
                    size_t *n, struct err *err)
{
    struct kinds k = { .v = out };
    struct gpu_commands *list = pass == PROFILE_DECODE ? s->decode : s->prefill;
    *n = 0;
    if (gpu_profile_read(list, add_step, &k, err) < 0)
        return -1;
    if (k.full)
        return err_set(err, "profile: more than %d kinds of steps", PROFILE_MAX_KINDS);
    *n = k.n;
    return 0;
}
