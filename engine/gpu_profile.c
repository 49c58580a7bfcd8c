/* gpu_profile.c - how long each step of a recorded list took.
 *
 * A list that is recorded with timestamps writes one at its start and one
 * after each step; a run overwrites those of the run before. */
#include "engine/gpu_internal.h"

#include "base/mem.h"

#include <stdlib.h>

enum { PROFILE_STEPS = 8192 };

void gpu_profile_enable(struct gpu_commands *c, bool on)
{
    c->profile_wanted = on && c->gpu->caps.info.timestamps;
}

static void stamp(struct gpu_commands *c)
{
    vkCmdWriteTimestamp(c->cmd, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, c->queries,
                        c->n_stamps++);
}

int gpu_profile_begin(struct gpu_commands *c, struct err *err)
{
    c->profile = c->profile_wanted;
    c->n_stamps = 0;
    c->step = (struct gpu_step){ 0 };
    if (!c->profile)
        return 0;
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = PROFILE_STEPS + 1,
    };
    if (!c->queries) {
        VkResult r = vkCreateQueryPool(c->gpu->device, &info, NULL, &c->queries);
        if (gpu_check(c->gpu, r, err, "creating the profiler's timestamps"))
            return -1;
        c->steps = mem_array(PROFILE_STEPS, sizeof *c->steps);
    }
    vkCmdResetQueryPool(c->cmd, c->queries, 0, PROFILE_STEPS + 1);
    stamp(c);
    return 0;
}

int gpu_profile_step(struct gpu_commands *c, struct err *err)
{
    if (!c->profile || !c->step.label)
        return 0;
    if (c->n_stamps > PROFILE_STEPS)
        return err_set(err, "profile: more than %d steps in one list", PROFILE_STEPS);
    c->steps[c->n_stamps - 1] = c->step;
    c->step = (struct gpu_step){ 0 };
    stamp(c);
    return 0;
}

void gpu_profile_close(struct gpu_commands *c)
{
    vkDestroyQueryPool(c->gpu->device, c->queries, NULL);
    free(c->steps);
}

int gpu_profile_read(struct gpu_commands *c, gpu_profile_fn *each, void *arg,
                     struct err *err)
{
    if (gpu_alive(c->gpu, err))
        return -1;
    if (!c->profile || !c->serial || c->n_stamps < 2 || gpu_commands_busy(c))
        return err_set(err, "profile: no finished run of a list with timestamps");
    uint64_t *t = mem_array(c->n_stamps, sizeof *t);
    VkResult r = vkGetQueryPoolResults(c->gpu->device, c->queries, 0, c->n_stamps,
                                       c->n_stamps * sizeof *t, t, sizeof *t,
                                       VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    int rc = gpu_check(c->gpu, r, err, "reading the profiler's timestamps");
    const uint32_t bits = c->gpu->caps.timestamp_bits;
    const uint64_t mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;
    for (uint32_t i = 1; !rc && i < c->n_stamps; i++) {
        struct gpu_step *step = &c->steps[i - 1];
        step->nanoseconds =
            (double)((t[i] - t[i - 1]) & mask) * c->gpu->caps.limits.timestampPeriod;
        each(arg, step);
    }
    free(t);
    return rc;
}
