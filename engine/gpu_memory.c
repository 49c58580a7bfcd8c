/* gpu_memory.c - buffers by use, and copies between host and device.
 *
 * Each buffer is one VkBuffer with one allocation: an engine has few and large
 * ones. Copies to memory that the host cannot see pass through two halves of
 * one staging buffer, each with its fence, so that the host fills one while
 * the device empties the other; staging memory never grows. */
#include "engine/gpu_internal.h"

#include "base/fault.h"

#include <inttypes.h>
#include <string.h>

#define STAGING_HALF ((uint64_t)16 << 20)
#define BUFFER_ALIGN ((uint64_t)256)

/* ---- choice of memory --------------------------------------------------- */

/* Types whose use needs a feature that is not enabled. */
#define TYPES_EXCLUDED                                                            \
    (VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | \
     VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |                                 \
     VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |                                 \
     VK_MEMORY_PROPERTY_RDMA_CAPABLE_BIT_NV)

/* 0: unsuitable, else larger is better. Weights go to the largest heap; there
 * a type that the host cannot see wins, since the visible one may be a window
 * of limited size. */
static uint64_t type_score(VkMemoryPropertyFlags flags, uint64_t heap, enum gpu_use use)
{
    const VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    bool local = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    bool cached = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    uint64_t rank = 0;
    if (flags & TYPES_EXCLUDED)
        return 0;
    if (use == GPU_DEVICE)
        return local ? heap / 2 * 2 + !(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) : 0;
    if ((flags & visible) != visible)
        return 0;
    if (use == GPU_SHARED)
        rank = local ? 2 : 1;
    else
        rank = 1 + (cached ? 2 : 0) + (local ? 0 : 1);
    return (rank << 56) + (heap >> 8);
}

uint32_t gpu_memory_order(const VkPhysicalDeviceMemoryProperties *m, uint32_t type_bits,
                          enum gpu_use use, uint32_t order[VK_MAX_MEMORY_TYPES])
{
    uint64_t scores[VK_MAX_MEMORY_TYPES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->memoryTypeCount; i++) {
        const VkMemoryType *t = &m->memoryTypes[i];
        uint64_t score =
            type_score(t->propertyFlags, m->memoryHeaps[t->heapIndex].size, use);
        if (!score || !(type_bits >> i & 1))
            continue;
        uint32_t at = n++;
        for (; at > 0 && scores[at - 1] < score; at--) {
            scores[at] = scores[at - 1];
            order[at] = order[at - 1];
        }
        scores[at] = score;
        order[at] = i;
    }
    return n;
}

/* ---- buffers ------------------------------------------------------------ */

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

uint64_t gpu_free_bytes(const struct gpu *gpu)
{
    const struct gpu_caps *caps = &gpu->caps;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT
    };
    VkPhysicalDeviceMemoryProperties2 p = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget
    };
    uint64_t most = caps->info.memory_bytes, used = gpu->allocated;
    if (caps->has_budget) {
        vkGetPhysicalDeviceMemoryProperties2(caps->physical, &p);
        most = budget.heapBudget[caps->heap];
        used = budget.heapUsage[caps->heap];
    }
    return most > used ? most - used : 0;
}

static int memory_refused(const struct gpu *gpu, const char *label, uint64_t bytes,
                          const char *why, struct err *err)
{
    return err_set(err,
                   "%s: no device memory for %.1f MiB (%s); %.1f MiB are allocated, the "
                   "heap holds %.0f MiB, one allocation at most %.0f MiB",
                   label, mib(bytes), why, mib(gpu->allocated),
                   mib(gpu->caps.info.memory_bytes), mib(gpu->caps.max_allocation));
}

static VkResult memory_allocate(struct gpu_buffer *b, struct gpu *gpu,
                                const VkMemoryRequirements *need)
{
    uint32_t order[VK_MAX_MEMORY_TYPES];
    uint32_t n = gpu_memory_order(&gpu->caps.memory, need->memoryTypeBits, b->use, order);
    VkResult r = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (fault_hit(FAULT_DEVICE_ALLOC))
        n = 0;
    for (uint32_t i = 0; i < n && r != VK_SUCCESS; i++) {
        const VkPhysicalDeviceMemoryProperties *m = &gpu->caps.memory;
        if (need->size > m->memoryHeaps[m->memoryTypes[order[i]].heapIndex].size)
            continue;
        const VkMemoryAllocateInfo info = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
            .allocationSize = need->size,
            .memoryTypeIndex = order[i],
        };
        r = vkAllocateMemory(gpu->device, &info, NULL, &b->memory);
    }
    if (r != VK_SUCCESS)
        b->memory = VK_NULL_HANDLE;
    else
        gpu->allocated += b->bytes;
    return r;
}

/* With validation, device memory begins as what no sum survives (NaN as f32 and as
 * f16, -1 as an integer), so that a read of what nobody wrote shows. */
static int poison(struct gpu_buffer *b, struct gpu *gpu, struct err *err)
{
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = gpu->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkCommandBuffer cmd = VK_NULL_HANDLE;
    const VkSubmitInfo submit = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                  .commandBufferCount = 1,
                                  .pCommandBuffers = &cmd };
    VkResult r = vkAllocateCommandBuffers(gpu->device, &info, &cmd);
    if (r == VK_SUCCESS)
        r = vkBeginCommandBuffer(cmd, &begin);
    if (r == VK_SUCCESS) {
        vkCmdFillBuffer(cmd, b->vk, 0, VK_WHOLE_SIZE, UINT32_MAX);
        r = vkEndCommandBuffer(cmd);
    }
    if (r == VK_SUCCESS)
        r = vkQueueSubmit(gpu->queue, 1, &submit, VK_NULL_HANDLE);
    if (r == VK_SUCCESS)
        r = vkQueueWaitIdle(gpu->queue);
    if (cmd)
        vkFreeCommandBuffers(gpu->device, gpu->pool, 1, &cmd);
    if (r == VK_SUCCESS)
        return 0;
    gpu_buffer_close(b, gpu);
    return gpu_check(gpu, r, err, "filling new memory");
}

int gpu_buffer_open(struct gpu_buffer *b, struct gpu *gpu, uint64_t bytes,
                    enum gpu_use use, const char *label, struct err *err)
{
    *b = (struct gpu_buffer){ .use = use };
    if (gpu_alive(gpu, err))
        return -1;
    if (!bytes)
        return err_set(err, "%s: a buffer of no bytes", label);
    if (bytes > gpu->caps.max_allocation - BUFFER_ALIGN)
        return memory_refused(gpu, label, bytes, "too large for one allocation", err);
    b->bytes = (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;

    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = b->bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkMemoryRequirements need;
    VkResult r = vkCreateBuffer(gpu->device, &info, NULL, &b->vk);
    if (r == VK_SUCCESS) {
        vkGetBufferMemoryRequirements(gpu->device, b->vk, &need);
        r = memory_allocate(b, gpu, &need);
    }
    if (r == VK_SUCCESS)
        r = vkBindBufferMemory(gpu->device, b->vk, b->memory, 0);
    if (r == VK_SUCCESS && use != GPU_DEVICE)
        r = vkMapMemory(gpu->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->map);
    if (r != VK_SUCCESS) {
        gpu_buffer_close(b, gpu);
        if (r == VK_ERROR_DEVICE_LOST)
            return gpu_check(gpu, r, err, label);
        return memory_refused(gpu, label, bytes, gpu_result_name(r), err);
    }
    gpu_name(gpu, VK_OBJECT_TYPE_BUFFER, (uint64_t)(uintptr_t)b->vk, label);
    if (b->map)
        memset(b->map, 0, b->bytes);
    else if (gpu->messenger)
        return poison(b, gpu, err);
    return 0;
}

void gpu_buffer_close(struct gpu_buffer *b, struct gpu *gpu)
{
    if (!b || !gpu)
        return;
    if (b->memory) {
        gpu_settle(gpu);
        gpu->allocated -= b->bytes;
    }
    vkDestroyBuffer(gpu->device, b->vk, NULL);
    vkFreeMemory(gpu->device, b->memory, NULL);
    *b = (struct gpu_buffer){ 0 };
}

struct gpu_span gpu_span_all(const struct gpu_buffer *b)
{
    return (struct gpu_span){ b, 0, b->bytes };
}

struct gpu_span gpu_span_at(const struct gpu_buffer *b, uint64_t offset, uint64_t bytes)
{
    return (struct gpu_span){ b, offset, bytes };
}

uint64_t gpu_span_align(const struct gpu *gpu)
{
    uint64_t align = gpu->caps.limits.minStorageBufferOffsetAlignment;
    return align > 16 ? align : 16;
}

int gpu_span_check(struct gpu_span s, uint64_t align, struct err *err)
{
    if (!s.buffer || !s.buffer->vk)
        return err_set(err, "no buffer");
    if (!s.bytes)
        return err_set(err, "an empty range");
    if (s.offset > s.buffer->bytes || s.bytes > s.buffer->bytes - s.offset)
        return err_set(err,
                       "%" PRIu64 " bytes at %" PRIu64
                       " lie outside the buffer of %" PRIu64 " bytes",
                       s.bytes, s.offset, s.buffer->bytes);
    if (s.offset % align)
        return err_set(err, "the offset %" PRIu64 " is not a multiple of %" PRIu64,
                       s.offset, align);
    return 0;
}

/* ---- copies ------------------------------------------------------------- */

static int staging_open(struct gpu *gpu, struct err *err)
{
    struct gpu_staging *s = &gpu->staging;
    if (s->buffer.vk)
        return 0;
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = gpu->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 2,
    };
    const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    VkResult r = vkAllocateCommandBuffers(gpu->device, &info, s->cmd);
    for (int i = 0; i < 2 && r == VK_SUCCESS; i++)
        r = vkCreateFence(gpu->device, &fence, NULL, &s->fence[i]);
    if (gpu_check(gpu, r, err, "preparing the staging buffer") ||
        gpu_buffer_open(&s->buffer, gpu, 2 * STAGING_HALF, GPU_STAGING, "staging", err)) {
        gpu_staging_close(gpu);
        return -1;
    }
    return 0;
}

void gpu_staging_close(struct gpu *gpu)
{
    struct gpu_staging *s = &gpu->staging;
    gpu_settle(gpu);
    for (int i = 0; i < 2; i++)
        vkDestroyFence(gpu->device, s->fence[i], NULL);
    if (s->cmd[0])
        vkFreeCommandBuffers(gpu->device, gpu->pool, 2, s->cmd);
    gpu_buffer_close(&s->buffer, gpu);
    *s = (struct gpu_staging){ 0 };
}

static int half_wait(struct gpu *gpu, int half, struct err *err)
{
    struct gpu_staging *s = &gpu->staging;
    if (!s->busy[half])
        return 0;
    VkResult r = gpu_fence_wait(gpu, s->fence[half], UINT64_MAX);
    if (gpu_check(gpu, r, err, "waiting for a copy"))
        return -1;
    s->busy[half] = false;
    return gpu_check(gpu, vkResetFences(gpu->device, 1, &s->fence[half]), err,
                     "resetting a fence");
}

/* The half must not be busy. */
static int half_begin(struct gpu *gpu, int half, struct err *err)
{
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkCommandBuffer cmd = gpu->staging.cmd[half];
    if (gpu_check(gpu, vkBeginCommandBuffer(cmd, &begin), err, "recording a copy"))
        return -1;
    gpu_barrier(cmd);
    return 0;
}

static int half_submit(struct gpu *gpu, int half, struct err *err)
{
    struct gpu_staging *s = &gpu->staging;
    const VkCommandBuffer cmds[2] = { s->cmd[half], gpu->tail };
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 2,
        .pCommandBuffers = cmds,
    };
    VkResult r = vkEndCommandBuffer(s->cmd[half]);
    if (r == VK_SUCCESS)
        r = fault_hit(FAULT_DEVICE_SUBMIT)
                ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                : vkQueueSubmit(gpu->queue, 1, &submit, s->fence[half]);
    if (gpu_check(gpu, r, err, "submitting a copy"))
        return -1;
    s->busy[half] = true;
    return 0;
}

static int copy_check(struct gpu *gpu, struct gpu_span s, struct err *err)
{
    if (gpu_alive(gpu, err) || gpu_span_check(s, 4, err))
        return -1;
    if (s.bytes % 4)
        return err_set(err, "%" PRIu64 " bytes are not a multiple of 4", s.bytes);
    if (gpu->in_flight)
        return err_set(err, "a submit is in flight");
    return s.buffer->map ? 0 : staging_open(gpu, err);
}

static uint64_t piece_bytes(uint64_t total, uint64_t piece)
{
    uint64_t left = total - piece * STAGING_HALF;
    return left < STAGING_HALF ? left : STAGING_HALF;
}

/* One piece of a copy between a span and host memory: from or to is NULL. */
struct transfer {
    struct gpu_span span;
    const char *from;
    char *to;
};

static int piece_start(struct gpu *gpu, const struct transfer *t, uint64_t piece,
                       struct err *err)
{
    const int half = (int)(piece & 1);
    const uint64_t at = piece * STAGING_HALF, n = piece_bytes(t->span.bytes, piece);
    const uint64_t ring_at = (uint64_t)half * STAGING_HALF;
    VkBuffer ring = gpu->staging.buffer.vk, device = t->span.buffer->vk;
    if (half_wait(gpu, half, err))
        return -1;
    if (t->from)
        memcpy((char *)gpu->staging.buffer.map + ring_at, t->from + at, n);
    if (half_begin(gpu, half, err))
        return -1;
    const VkBufferCopy up = { ring_at, t->span.offset + at, n };
    const VkBufferCopy down = { t->span.offset + at, ring_at, n };
    if (t->from)
        vkCmdCopyBuffer(gpu->staging.cmd[half], ring, device, 1, &up);
    else
        vkCmdCopyBuffer(gpu->staging.cmd[half], device, ring, 1, &down);
    return half_submit(gpu, half, err);
}

static int piece_finish(struct gpu *gpu, const struct transfer *t, uint64_t piece,
                        struct err *err)
{
    const int half = (int)(piece & 1);
    if (half_wait(gpu, half, err))
        return -1;
    if (t->to)
        memcpy(t->to + piece * STAGING_HALF,
               (const char *)gpu->staging.buffer.map + (uint64_t)half * STAGING_HALF,
               piece_bytes(t->span.bytes, piece));
    return 0;
}

/* Two pieces are under way at any time. */
static int transfer_run(struct gpu *gpu, const struct transfer *t, struct err *err)
{
    const uint64_t n = (t->span.bytes + STAGING_HALF - 1) / STAGING_HALF;
    int rc = 0;
    for (uint64_t p = 0; p <= n && !rc; p++) {
        if (p < n)
            rc = piece_start(gpu, t, p, err);
        if (p > 0 && !rc)
            rc = piece_finish(gpu, t, p - 1, err);
    }
    return rc;
}

int gpu_upload(struct gpu *gpu, struct gpu_span to, const void *from, struct err *err)
{
    if (copy_check(gpu, to, err))
        return err_prefix(err, "upload");
    if (to.buffer->map) {
        memcpy((char *)to.buffer->map + to.offset, from, to.bytes);
        return 0;
    }
    return transfer_run(gpu, &(struct transfer){ .span = to, .from = from }, err);
}

int gpu_download(struct gpu *gpu, void *to, struct gpu_span from, struct err *err)
{
    if (copy_check(gpu, from, err))
        return err_prefix(err, "download");
    if (from.buffer->map) {
        memcpy(to, (const char *)from.buffer->map + from.offset, from.bytes);
        return 0;
    }
    return transfer_run(gpu, &(struct transfer){ .span = from, .to = to }, err);
}

int gpu_fill(struct gpu *gpu, struct gpu_span to, uint32_t word, struct err *err)
{
    if (copy_check(gpu, to, err))
        return err_prefix(err, "fill");
    if (to.buffer->map) {
        uint32_t *words = (uint32_t *)to.buffer->map + to.offset / 4;
        for (uint64_t i = 0; i < to.bytes / 4; i++)
            words[i] = word;
        return 0;
    }
    if (half_wait(gpu, 0, err) || half_begin(gpu, 0, err))
        return -1;
    vkCmdFillBuffer(gpu->staging.cmd[0], to.buffer->vk, to.offset, to.bytes, word);
    return half_submit(gpu, 0, err) || half_wait(gpu, 0, err) ? -1 : 0;
}
