/* gpu_internal.h - what the gpu_*.c files share; nobody else includes it. */
#ifndef ENGINE_GPU_INTERNAL_H
#define ENGINE_GPU_INTERNAL_H

#include "engine/gpu.h"

/* VK_KHR_cooperative_matrix is younger than the headers of Debian 12. Layout
 * and numbers are those of the Vulkan registry. */
#define COOPMAT_EXTENSION  "VK_KHR_cooperative_matrix"
#define COOPMAT_LAYER_SPEC VK_MAKE_API_VERSION(0, 1, 3, 255)
struct coopmat_features {
    VkStructureType sType; /* 1000506000 */
    void *pNext;
    VkBool32 matrix, robust;
};

/* What is enabled on a device: the wanted bits that it has. */
struct gpu_features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup;
    struct coopmat_features coopmat;
};

/* One physical device as it was found. */
struct gpu_caps {
    VkPhysicalDevice physical;
    VkPhysicalDeviceLimits limits;
    VkPhysicalDeviceMemoryProperties memory;
    struct gpu_features features;
    bool has_dot, has_subgroup_control, has_coopmat; /* structs above count */
    bool has_budget;                                 /* VK_EXT_memory_budget */
    uint32_t heap;                                   /* that weights go to */
    bool require_subgroup; /* the size varies and can be required */
    uint32_t family, timestamp_bits;
    uint64_t max_allocation;
    struct device_info info;
};

struct gpu_staging {
    struct gpu_buffer buffer; /* two halves */
    VkCommandBuffer cmd[2];
    VkFence fence[2];
    bool busy[2];
};

/* Counted by the messenger's callback, so its address must not move. */
struct gpu_messages {
    uint32_t n;
    char first[1024];
};

struct gpu {
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    struct gpu_messages messages;
    struct gpu_caps caps;
    VkDevice device;
    VkQueue queue;
    PFN_vkSetDebugUtilsObjectNameEXT set_name; /* NULL without validation */
    VkPipelineCache cache;
    VkCommandPool pool;   /* for staging and the tail */
    VkCommandBuffer tail; /* ends each submit: writes become visible to the host */
    VkFence fence;        /* of the submit in flight */
    bool in_flight;
    uint64_t serial;          /* of the last submit */
    const char *last_label;   /* last entry of the last submit */
    VkCommandBuffer *handles; /* scratch of gpu_submit */
    size_t handles_cap;
    struct gpu_staging staging;
    uint64_t allocated;
    struct err lost; /* empty until the device is lost */
};

/* Everything the device offers, each wanted feature marked; 0, or -1 with the
 * reason. layer_spec: specVersion of the validation layer in use, 0: none. */
int gpu_query(struct gpu_caps *caps, VkInstance instance, VkPhysicalDevice physical,
              uint32_t layer_spec, struct err *err);
/* Chains the structs that count and returns the head for pNext. */
void *gpu_features_link(struct gpu_features *f, const struct gpu_caps *caps);

/* 0 for VK_SUCCESS, else -1 with "what: result". Device loss is remembered. */
int gpu_check(struct gpu *gpu, VkResult r, struct err *err, const char *what);
/* 0, or -1 with the text of the device loss that came before. */
int gpu_alive(const struct gpu *gpu, struct err *err);
VkResult gpu_fence_wait(const struct gpu *gpu, VkFence fence, uint64_t timeout_ns);
/* After a wait that failed the device may still be at work on what is about to be
 * released: waits for all of it. */
void gpu_settle(struct gpu *gpu);
const char *gpu_result_name(VkResult r);
/* Names an object in validation messages. */
void gpu_name(struct gpu *gpu, VkObjectType type, uint64_t handle, const char *name);

/* Memory types for a use, best first; returns how many. */
uint32_t gpu_memory_order(const VkPhysicalDeviceMemoryProperties *m, uint32_t type_bits,
                          enum gpu_use use, uint32_t order[VK_MAX_MEMORY_TYPES]);
/* Inside its buffer, offset and size multiples of `align`, not empty. */
int gpu_span_check(struct gpu_span s, uint64_t align, struct err *err);
void gpu_staging_close(struct gpu *gpu);

/* ---- command lists ------------------------------------------------------ */

/* Bytes [begin, end) of a buffer that an entry reads, or writes too. */
struct gpu_touched {
    VkBuffer buffer;
    uint64_t begin, end;
    bool written;
    uint32_t entry; /* number in the list, from 1 */
};

struct gpu_commands {
    struct gpu *gpu;
    VkCommandPool cmd_pool;
    VkCommandBuffer cmd;
    enum { LIST_EMPTY, LIST_OPEN, LIST_DONE } state;
    VkDescriptorPool *pools;
    uint32_t n_pools, sets_used;
    struct gpu_touched *touched; /* since the last barrier */
    size_t n_touched, cap_touched;
    uint32_t barriers, dispatches, entries;
    uint32_t beside_from; /* first of the entries that stand beside the last */
    uint64_t serial;   /* of the last submit with this list, 0: none */
    const char *label; /* of the last entry */
    /* gpu_profile.c: */
    bool profile_wanted, profile; /* for the next recording; for this one */
    VkQueryPool queries;
    uint32_t n_stamps;        /* one more than finished steps */
    struct gpu_step *steps;   /* finished; the times come later */
    struct gpu_step step;     /* being recorded; label NULL: nothing yet */
};

bool gpu_commands_busy(const struct gpu_commands *c);
/* Timestamps, if they are wanted: at the start, and after each step. */
int gpu_profile_begin(struct gpu_commands *c, struct err *err);
int gpu_profile_step(struct gpu_commands *c, struct err *err);
void gpu_profile_close(struct gpu_commands *c);

/* Everything before on the queue, compute and transfer, is finished and
 * visible to everything after. */
void gpu_barrier(VkCommandBuffer cmd);

#endif
