/* gpu_command.c - recorded lists of dispatches and copies; submit and wait.
 *
 * A list owns one command buffer, its descriptor sets (one a dispatch, written
 * while recording) and the byte ranges touched since its last barrier. An
 * entry gets a barrier in front exactly if it reads or writes bytes that were
 * written since then, or writes bytes that were read. */
#include "engine/gpu_internal.h"

#include "base/fault.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    POOL_SETS = 128,      /* descriptor sets of one pool */
    SUBMIT_MAX = 1 << 20, /* command buffers of one submit */
};

void gpu_barrier(VkCommandBuffer cmd)
{
    const VkPipelineStageFlags stages =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                         VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    };
    vkCmdPipelineBarrier(cmd, stages, stages, 0, 1, &barrier, 0, NULL, 0, NULL);
}

/* ---- opening and closing ------------------------------------------------ */

bool gpu_commands_busy(const struct gpu_commands *c)
{
    return c->gpu->in_flight && c->serial == c->gpu->serial;
}

int gpu_commands_open(struct gpu_commands **out, struct gpu *gpu, struct err *err)
{
    *out = NULL;
    if (gpu_alive(gpu, err))
        return -1;
    struct gpu_commands *c = mem_zalloc(sizeof *c);
    c->gpu = gpu;
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .queueFamilyIndex = gpu->caps.family,
    };
    VkResult r = vkCreateCommandPool(gpu->device, &pool, NULL, &c->cmd_pool);
    if (r == VK_SUCCESS) {
        const VkCommandBufferAllocateInfo info = {
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = c->cmd_pool,
            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
            .commandBufferCount = 1,
        };
        r = vkAllocateCommandBuffers(gpu->device, &info, &c->cmd);
    }
    if (gpu_check(gpu, r, err, "creating a command list")) {
        gpu_commands_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

void gpu_commands_close(struct gpu_commands *c)
{
    if (!c)
        return;
    VkDevice device = c->gpu->device;
    if (gpu_commands_busy(c))
        gpu_settle(c->gpu);
    gpu_profile_close(c);
    for (uint32_t i = 0; i < c->n_pools; i++)
        vkDestroyDescriptorPool(device, c->pools[i], NULL);
    vkDestroyCommandPool(device, c->cmd_pool, NULL);
    free(c->pools);
    free(c->touched);
    free(c);
}

/* ---- recording ---------------------------------------------------------- */

static int list_start(struct gpu_commands *c, struct err *err)
{
    struct gpu *gpu = c->gpu;
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
    };
    VkResult r = vkResetCommandPool(gpu->device, c->cmd_pool, 0);
    for (uint32_t i = 0; i < c->n_pools && r == VK_SUCCESS; i++)
        r = vkResetDescriptorPool(gpu->device, c->pools[i], 0);
    if (r == VK_SUCCESS)
        r = vkBeginCommandBuffer(c->cmd, &begin);
    return gpu_check(gpu, r, err, "starting a command list");
}

int gpu_record_begin(struct gpu_commands *c, struct err *err)
{
    if (gpu_alive(c->gpu, err))
        return -1;
    if (gpu_commands_busy(c))
        return err_set(err, "recording a list that is in flight");
    c->state = LIST_EMPTY;
    c->sets_used = 0;
    c->n_touched = 0;
    c->barriers = c->dispatches = c->entries = 0;
    c->beside_from = 1;
    c->serial = 0;
    c->label = NULL;
    if (list_start(c, err))
        return -1;
    gpu_barrier(c->cmd);
    if (gpu_profile_begin(c, err))
        return -1;
    c->state = LIST_OPEN;
    return 0;
}

/* Whether these ranges conflict with those of an entry since the last barrier
 * and before entry `until`. */
static bool touched_conflict(const struct gpu_commands *c, const struct gpu_touched *t,
                             uint32_t n, uint32_t until)
{
    for (size_t i = 0; i < c->n_touched; i++) {
        const struct gpu_touched *old = &c->touched[i];
        if (old->entry >= until)
            break;
        for (uint32_t j = 0; j < n; j++)
            if (old->buffer == t[j].buffer && old->begin < t[j].end &&
                t[j].begin < old->end && (old->written || t[j].written))
                return true;
    }
    return false;
}

static struct gpu_touched touch(const struct gpu_commands *c, struct gpu_span s,
                                bool written)
{
    return (struct gpu_touched){ s.buffer->vk, s.offset, s.offset + s.bytes, written,
                                 c->entries + 1 };
}

/* Begins a new step if the entry depends on one since the last barrier. Entries
 * that stand beside each other do not depend on one another. */
static int entry_plan(struct gpu_commands *c, const struct gpu_touched *t, uint32_t n,
                      const struct gpu_dispatch *d, struct err *err)
{
    const char *label = !d ? "copy" : d->label ? d->label : d->kernel->module->name;
    bool beside = d && d->beside;
    if (!beside)
        c->beside_from = c->entries + 1;
    if (touched_conflict(c, t, n, c->beside_from)) {
        if (gpu_profile_step(c, err))
            return -1;
        gpu_barrier(c->cmd);
        c->barriers++;
        c->n_touched = 0;
    }
    if (c->cap_touched - c->n_touched < n) {
        c->cap_touched = c->cap_touched * 2 + GPU_MAX_BINDINGS;
        c->touched = mem_regrow(c->touched, c->cap_touched, sizeof *c->touched);
    }
    memcpy(c->touched + c->n_touched, t, n * sizeof *t);
    c->n_touched += n;
    c->entries++;
    c->label = label;
    if (!c->step.label)
        c->step.label = label;
    if (d)
        c->step.reads += d->reads;
    return 0;
}

static int dispatch_check(const struct gpu *gpu, const struct gpu_dispatch *d,
                          struct err *err)
{
    const struct gpu_module *m = d->kernel->module;
    const VkPhysicalDeviceLimits *l = &gpu->caps.limits;
    if (m->push_bytes && !d->push)
        return err_set(err, "no push constants, %u bytes are expected", m->push_bytes);
    for (int i = 0; i < 3; i++)
        if (!d->groups[i] || d->groups[i] > l->maxComputeWorkGroupCount[i])
            return err_set(err, "%u groups along axis %d, 1 to %u are possible",
                           d->groups[i], i, l->maxComputeWorkGroupCount[i]);
    for (uint32_t i = 0; i < m->n_bindings; i++) {
        struct gpu_span s = d->bind[i];
        if (gpu_span_check(s, gpu_span_align(gpu), err))
            return err_prefix(err, "binding %u", i);
        if (s.bytes > l->maxStorageBufferRange)
            return err_set(err,
                           "binding %u: %" PRIu64 " bytes, the device binds at most %u",
                           i, s.bytes, l->maxStorageBufferRange);
    }
    return 0;
}

static VkResult set_allocate(struct gpu_commands *c, VkDescriptorSetLayout layout,
                             VkDescriptorSet *set)
{
    VkDevice device = c->gpu->device;
    uint32_t pool = c->sets_used / POOL_SETS;
    if (pool == c->n_pools) {
        const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            POOL_SETS * GPU_MAX_BINDINGS };
        const VkDescriptorPoolCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = POOL_SETS,
            .poolSizeCount = 1,
            .pPoolSizes = &size,
        };
        VkDescriptorPool made;
        VkResult r = vkCreateDescriptorPool(device, &info, NULL, &made);
        if (r != VK_SUCCESS)
            return r;
        c->pools = mem_regrow(c->pools, c->n_pools + 1, sizeof(VkDescriptorPool));
        c->pools[c->n_pools++] = made;
    }
    const VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = c->pools[pool],
        .descriptorSetCount = 1,
        .pSetLayouts = &layout,
    };
    VkResult r = vkAllocateDescriptorSets(device, &info, set);
    c->sets_used += r == VK_SUCCESS;
    return r;
}

static void set_write(struct gpu *gpu, VkDescriptorSet set, const struct gpu_dispatch *d)
{
    VkDescriptorBufferInfo buffers[GPU_MAX_BINDINGS];
    const uint32_t n = d->kernel->module->n_bindings;
    for (uint32_t i = 0; i < n; i++)
        buffers[i] = (VkDescriptorBufferInfo){ d->bind[i].buffer->vk, d->bind[i].offset,
                                               d->bind[i].bytes };
    const VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = set,
        .descriptorCount = n,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = buffers,
    };
    vkUpdateDescriptorSets(gpu->device, 1, &write, 0, NULL);
}

int gpu_record(struct gpu_commands *c, const struct gpu_dispatch *d, struct err *err)
{
    const struct gpu_kernel *k = d->kernel;
    const struct gpu_module *m = k->module;
    if (c->state != LIST_OPEN)
        return err_set(err, "kernel %s: the list is not being recorded", m->name);
    if (dispatch_check(c->gpu, d, err))
        return err_prefix(err, "kernel %s", m->name);
    VkDescriptorSet set = VK_NULL_HANDLE;
    VkResult r = set_allocate(c, k->set_layout, &set);
    if (gpu_check(c->gpu, r, err, "allocating a descriptor set"))
        return err_prefix(err, "kernel %s", m->name);
    set_write(c->gpu, set, d);

    struct gpu_touched t[GPU_MAX_BINDINGS];
    for (uint32_t i = 0; i < m->n_bindings; i++)
        t[i] = touch(c, d->bind[i], m->writes >> i & 1);
    if (entry_plan(c, t, m->n_bindings, d, err))
        return -1;
    vkCmdBindPipeline(c->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, k->pipeline);
    vkCmdBindDescriptorSets(c->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, k->layout, 0, 1, &set,
                            0, NULL);
    if (m->push_bytes)
        vkCmdPushConstants(c->cmd, k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           m->push_bytes, d->push);
    vkCmdDispatch(c->cmd, d->groups[0], d->groups[1], d->groups[2]);
    c->dispatches++;
    return 0;
}

int gpu_record_copy(struct gpu_commands *c, struct gpu_span to, struct gpu_span from,
                    struct err *err)
{
    if (c->state != LIST_OPEN)
        return err_set(err, "copy: the list is not being recorded");
    if (gpu_span_check(from, 4, err))
        return err_prefix(err, "copy source");
    if (gpu_span_check(to, 4, err))
        return err_prefix(err, "copy target");
    if (to.bytes != from.bytes)
        return err_set(err, "copy: %" PRIu64 " bytes into %" PRIu64, from.bytes,
                       to.bytes);
    const struct gpu_touched t[2] = { touch(c, from, false), touch(c, to, true) };
    if (t[0].buffer == t[1].buffer && t[0].begin < t[1].end && t[1].begin < t[0].end)
        return err_set(err, "copy: source and target overlap");
    if (entry_plan(c, t, 2, NULL, err))
        return -1;
    const VkBufferCopy region = { from.offset, to.offset, from.bytes };
    vkCmdCopyBuffer(c->cmd, from.buffer->vk, to.buffer->vk, 1, &region);
    return 0;
}

int gpu_record_end(struct gpu_commands *c, struct err *err)
{
    if (c->state != LIST_OPEN)
        return err_set(err, "ending a list that is not being recorded");
    c->state = LIST_EMPTY;
    if (gpu_profile_step(c, err) ||
        gpu_check(c->gpu, vkEndCommandBuffer(c->cmd), err, "ending a command list"))
        return -1;
    c->state = LIST_DONE;
    return 0;
}

uint32_t gpu_recorded_steps(const struct gpu_commands *c)
{
    return c->entries ? c->barriers + 1 : 0;
}

uint32_t gpu_recorded_dispatches(const struct gpu_commands *c)
{
    return c->dispatches;
}

/* ---- running ------------------------------------------------------------ */

static int submit_check(const struct gpu *gpu, struct gpu_commands *const *lists,
                        uint32_t n, uint32_t repeat, struct err *err)
{
    if (gpu_alive(gpu, err))
        return -1;
    if (gpu->in_flight)
        return err_set(err, "submit: the submit before was not waited for");
    if (!n || !repeat || (uint64_t)n * repeat >= SUBMIT_MAX)
        return err_set(err, "submit: %u lists %u times", n, repeat);
    for (uint32_t i = 0; i < n; i++)
        if (lists[i]->gpu != gpu || lists[i]->state != LIST_DONE)
            return err_set(err, "submit: list %u was not recorded to its end", i);
    return 0;
}

int gpu_submit(struct gpu *gpu, struct gpu_commands *const *lists, uint32_t n,
               uint32_t repeat, struct err *err)
{
    if (submit_check(gpu, lists, n, repeat, err))
        return -1;
    const size_t total = (size_t)n * repeat + 1;
    if (gpu->handles_cap < total) {
        gpu->handles = mem_regrow(gpu->handles, total, sizeof(VkCommandBuffer));
        gpu->handles_cap = total;
    }
    for (size_t i = 0; i + 1 < total; i++)
        gpu->handles[i] = lists[i % n]->cmd;
    gpu->handles[total - 1] = gpu->tail;
    if (lists[n - 1]->label)
        gpu->last_label = lists[n - 1]->label;

    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = (uint32_t)total,
        .pCommandBuffers = gpu->handles,
    };
    VkResult r = fault_hit(FAULT_DEVICE_SUBMIT)
                     ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                     : vkQueueSubmit(gpu->queue, 1, &info, gpu->fence);
    if (gpu_check(gpu, r, err, "submit"))
        return -1;
    gpu->in_flight = true;
    gpu->serial++;
    for (uint32_t i = 0; i < n; i++)
        lists[i]->serial = gpu->serial;
    return 0;
}

VkResult gpu_fence_wait(const struct gpu *gpu, VkFence fence, uint64_t timeout_ns)
{
    if (fault_hit(FAULT_DEVICE_WAIT))
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    VkResult r = vkWaitForFences(gpu->device, 1, &fence, VK_TRUE, timeout_ns);
    return r == VK_SUCCESS && fault_hit(FAULT_DEVICE_LOST) ? VK_ERROR_DEVICE_LOST : r;
}

void gpu_settle(struct gpu *gpu)
{
    struct gpu_staging *s = &gpu->staging;
    if (!gpu->in_flight && !s->busy[0] && !s->busy[1])
        return;
    vkDeviceWaitIdle(gpu->device);
    if (gpu->in_flight)
        vkResetFences(gpu->device, 1, &gpu->fence);
    for (int i = 0; i < 2; i++)
        if (s->busy[i])
            vkResetFences(gpu->device, 1, &s->fence[i]);
    gpu->in_flight = s->busy[0] = s->busy[1] = false;
}

int gpu_wait(struct gpu *gpu, uint64_t timeout_ns, struct err *err)
{
    if (gpu_alive(gpu, err))
        return -1;
    if (!gpu->in_flight)
        return 0;
    VkResult r = gpu_fence_wait(gpu, gpu->fence, timeout_ns ? timeout_ns : UINT64_MAX);
    if (r == VK_TIMEOUT)
        return err_set(err, "the device is still busy after %.0f ms (last step: %s)",
                       (double)timeout_ns / 1e6,
                       gpu->last_label ? gpu->last_label : "none");
    if (gpu_check(gpu, r, err, "wait"))
        return -1;
    gpu->in_flight = false;
    return gpu_check(gpu, vkResetFences(gpu->device, 1, &gpu->fence), err, "wait");
}
