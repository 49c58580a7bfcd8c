/* gpu_query.c - what one physical device offers and whether it is enough.
 *
 * Features are only asked for through structs that the device's version or
 * extension list knows; a property call of an absent extension may crash. */
#include "engine/gpu_internal.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_INVOCATIONS = 256, MIN_STORAGE_BUFFERS = 12 };

struct extensions {
    VkExtensionProperties *v;
    uint32_t n;
};

static bool extensions_have(const struct extensions *e, const char *name)
{
    for (uint32_t i = 0; i < e->n; i++)
        if (!strcmp(e->v[i].extensionName, name))
            return true;
    return false;
}

static int extensions_read(struct extensions *e, VkPhysicalDevice physical)
{
    uint32_t n = 0;
    if (vkEnumerateDeviceExtensionProperties(physical, NULL, &n, NULL))
        return -1;
    e->v = mem_array(n, sizeof *e->v);
    VkResult r = vkEnumerateDeviceExtensionProperties(physical, NULL, &n, e->v);
    e->n = n;
    return r == VK_SUCCESS ? 0 : -1;
}

void *gpu_features_link(struct gpu_features *f, const struct gpu_caps *caps)
{
    f->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
    f->subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    f->coopmat.sType = (VkStructureType)1000506000;
    void *next = NULL;
    if (caps->has_coopmat) {
        f->coopmat.pNext = next;
        next = &f->coopmat;
    }
    if (caps->has_subgroup_control) {
        f->subgroup.pNext = next;
        next = &f->subgroup;
    }
    if (caps->has_dot) {
        f->dot.pNext = next;
        next = &f->dot;
    }
    f->v12.pNext = next;
    f->v11.pNext = &f->v12;
    f->core.pNext = &f->v11;
    return &f->core;
}

/* Asks for all features, then keeps the ones that kernels use. */
static void features_read(struct gpu_caps *caps)
{
    struct gpu_features has = { 0 };
    gpu_features_link(&has, caps);
    vkGetPhysicalDeviceFeatures2(caps->physical, &has.core);

    struct gpu_features *want = &caps->features;
    want->core.features.shaderInt16 = has.core.features.shaderInt16;
    want->core.features.shaderInt64 = has.core.features.shaderInt64;
    want->v11.storageBuffer16BitAccess = has.v11.storageBuffer16BitAccess;
    want->v12.storageBuffer8BitAccess = has.v12.storageBuffer8BitAccess;
    want->v12.shaderFloat16 = has.v12.shaderFloat16;
    want->v12.shaderInt8 = has.v12.shaderInt8;
    want->v12.shaderSubgroupExtendedTypes = has.v12.shaderSubgroupExtendedTypes;
    want->v12.vulkanMemoryModel = has.v12.vulkanMemoryModel;
    want->v12.vulkanMemoryModelDeviceScope = has.v12.vulkanMemoryModelDeviceScope;
    want->dot.shaderIntegerDotProduct = has.dot.shaderIntegerDotProduct;
    want->subgroup.subgroupSizeControl = has.subgroup.subgroupSizeControl;
    want->subgroup.computeFullSubgroups = has.subgroup.computeFullSubgroups;
    want->coopmat.matrix = has.coopmat.matrix;

    caps->info.int_dot = want->dot.shaderIntegerDotProduct;
    caps->info.int64 = want->core.features.shaderInt64;
    caps->info.f16 = want->v12.shaderFloat16;
    caps->info.storage16 = want->v11.storageBuffer16BitAccess;
}

static const char *kind_name(VkPhysicalDeviceType type)
{
    static const char *const names[] = {
        [VK_PHYSICAL_DEVICE_TYPE_OTHER] = "other",
        [VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = "integrated",
        [VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = "discrete",
        [VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = "virtual",
        [VK_PHYSICAL_DEVICE_TYPE_CPU] = "cpu",
    };
    return (size_t)type < sizeof names / sizeof *names ? names[type] : names[0];
}

/* Prefers a compute family without graphics: its work does not queue up
 * behind a compositor's. */
static bool family_read(struct gpu_caps *caps)
{
    uint32_t n = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(caps->physical, &n, NULL);
    VkQueueFamilyProperties *v = mem_array(n, sizeof *v);
    vkGetPhysicalDeviceQueueFamilyProperties(caps->physical, &n, v);
    bool found = false, pure = false;
    for (uint32_t i = 0; i < n; i++) {
        bool compute = v[i].queueCount && (v[i].queueFlags & VK_QUEUE_COMPUTE_BIT);
        bool better = !(v[i].queueFlags & VK_QUEUE_GRAPHICS_BIT);
        if (!compute || (found && (pure || !better)))
            continue;
        found = true;
        pure = better;
        caps->family = i;
        caps->timestamp_bits = v[i].timestampValidBits;
    }
    free(v);
    return found;
}

/* Whether the device multiplies 16x16x16 tiles of f16 into f32 by subgroup,
 * the one shape that the kernels use. */
static bool coopmat_read(VkInstance instance, VkPhysicalDevice physical)
{
    /* VkCooperativeMatrixPropertiesKHR */
    struct property {
        VkStructureType sType; /* 1000506001 */
        void *pNext;
        uint32_t m, n, k, a, b, c, result;
        VkBool32 saturating;
        uint32_t scope;
    };
    enum { TYPE_F16 = 0, TYPE_F32 = 1, SCOPE_SUBGROUP = 3 };
    typedef VkResult(VKAPI_PTR * read_fn)(VkPhysicalDevice, uint32_t *,
                                          struct property *);
    read_fn read = (read_fn)vkGetInstanceProcAddr(
        instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    uint32_t n = 0;
    if (!read || read(physical, &n, NULL))
        return false;
    struct property *v = mem_zalloc(n * sizeof *v);
    for (uint32_t i = 0; i < n; i++)
        v[i].sType = (VkStructureType)1000506001;
    bool found = false;
    if (!read(physical, &n, v))
        for (uint32_t i = 0; i < n; i++)
            found |= v[i].m == 16 && v[i].n == 16 && v[i].k == 16 && v[i].a == TYPE_F16 &&
                     v[i].b == TYPE_F16 && v[i].c == TYPE_F32 &&
                     v[i].result == TYPE_F32 && v[i].scope == SCOPE_SUBGROUP;
    free(v);
    return found;
}

static void usable_read(struct gpu_caps *caps,
                        const VkPhysicalDeviceVulkan11Properties *p, bool has_queue)
{
    const VkPhysicalDeviceLimits *l = &caps->limits;
    const VkSubgroupFeatureFlags ops = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                       VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                       VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    struct device_info *info = &caps->info;
    char *note = info->note;
    size_t room = sizeof info->note;
    if (!has_queue)
        snprintf(note, room, "no compute queue");
    else if (l->maxComputeWorkGroupInvocations < MIN_INVOCATIONS ||
             l->maxComputeWorkGroupSize[0] < MIN_INVOCATIONS)
        snprintf(note, room, "workgroups of %u invocations, %d are needed",
                 l->maxComputeWorkGroupInvocations, MIN_INVOCATIONS);
    else if (l->maxPerStageDescriptorStorageBuffers < MIN_STORAGE_BUFFERS)
        snprintf(note, room, "%u storage buffers a kernel, %d are needed",
                 l->maxPerStageDescriptorStorageBuffers, MIN_STORAGE_BUFFERS);
    else if (l->maxPushConstantsSize < GPU_PUSH_BYTES)
        snprintf(note, room, "%u bytes of push constants, %d are needed",
                 l->maxPushConstantsSize, GPU_PUSH_BYTES);
    else if (!(p->subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) ||
             (p->subgroupSupportedOperations & ops) != ops)
        snprintf(note, room, "no subgroup arithmetic and shuffle in compute shaders");
    else
        info->usable = true;
    if (info->usable && !strcmp(info->kind, "cpu"))
        snprintf(note, room, "a software renderer on the CPU: slow");
    else if (info->usable && !info->int_dot)
        snprintf(note, room, "no packed int8 dot products: products run in float");
}

static void properties_read(struct gpu_caps *caps)
{
    VkPhysicalDeviceSubgroupSizeControlProperties size = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
    };
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
        .pNext = caps->has_subgroup_control ? &size : NULL,
    };
    VkPhysicalDeviceVulkan11Properties v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES,
        .pNext = &driver,
    };
    VkPhysicalDeviceProperties2 p = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &v11,
    };
    vkGetPhysicalDeviceProperties2(caps->physical, &p);
    caps->max_allocation = v11.maxMemoryAllocationSize;
    caps->require_subgroup =
        caps->features.subgroup.subgroupSizeControl &&
        size.minSubgroupSize < size.maxSubgroupSize &&
        (size.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);

    uint32_t order[VK_MAX_MEMORY_TYPES];
    vkGetPhysicalDeviceMemoryProperties(caps->physical, &caps->memory);
    struct device_info *info = &caps->info;
    if (gpu_memory_order(&caps->memory, UINT32_MAX, GPU_DEVICE, order)) {
        caps->heap = caps->memory.memoryTypes[order[0]].heapIndex;
        info->memory_bytes = caps->memory.memoryHeaps[caps->heap].size;
    }
    snprintf(info->driver, sizeof info->driver, "%.100s %.150s", driver.driverName,
             driver.driverInfo);
    info->buffer_bytes = caps->limits.maxStorageBufferRange;
    info->subgroup_size = v11.subgroupSize;
    info->shared_bytes = caps->limits.maxComputeSharedMemorySize;
    info->group_size = caps->limits.maxComputeWorkGroupInvocations;
    if (info->group_size > caps->limits.maxComputeWorkGroupSize[0])
        info->group_size = caps->limits.maxComputeWorkGroupSize[0];

    bool has_queue = family_read(caps);
    info->timestamps = caps->timestamp_bits > 0 && caps->limits.timestampPeriod > 0;
    usable_read(caps, &v11, has_queue);
}

int gpu_query(struct gpu_caps *caps, VkInstance instance, VkPhysicalDevice physical,
              uint32_t layer_spec, struct err *err)
{
    *caps = (struct gpu_caps){ .physical = physical };
    struct device_info *info = &caps->info;
    VkPhysicalDeviceProperties p;
    vkGetPhysicalDeviceProperties(physical, &p);
    caps->limits = p.limits;
    info->api_version = p.apiVersion;
    info->vendor_id = p.vendorID;
    snprintf(info->name, sizeof info->name, "%s", p.deviceName);
    snprintf(info->kind, sizeof info->kind, "%s", kind_name(p.deviceType));
    if (p.apiVersion < VK_API_VERSION_1_2) {
        snprintf(info->note, sizeof info->note, "Vulkan %u.%u, 1.2 is needed",
                 VK_API_VERSION_MAJOR(p.apiVersion), VK_API_VERSION_MINOR(p.apiVersion));
        return 0;
    }
    struct extensions e = { 0 };
    int rc = extensions_read(&e, physical);
    if (rc) {
        err_set(err, "%s: the driver does not list its extensions", info->name);
        goto out;
    }
    bool v13 = p.apiVersion >= VK_API_VERSION_1_3;
    caps->has_dot =
        v13 || extensions_have(&e, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    caps->has_subgroup_control =
        v13 || extensions_have(&e, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    /* Older validation layers take the unknown struct for a mistake. */
    caps->has_coopmat = extensions_have(&e, COOPMAT_EXTENSION) &&
                        (!layer_spec || layer_spec >= COOPMAT_LAYER_SPEC);
    caps->has_budget = extensions_have(&e, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    features_read(caps);
    properties_read(caps);
    info->coopmat = caps->features.coopmat.matrix && coopmat_read(instance, physical);
out:
    free(e.v);
    return rc;
}
