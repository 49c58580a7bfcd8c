/* gpu_device.c - the Vulkan instance, the choice of a device, its queue, and
 * teardown. Device loss is remembered here: after it every call fails with
 * the same text, and gpu_close still works. */
#include "engine/gpu_internal.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

struct caps_list {
    struct gpu_caps *v;
    uint32_t n;
    int chosen; /* -1: none is usable */
};

const char *gpu_result_name(VkResult r)
{
    static const struct {
        VkResult result;
        const char *name;
    } names[] = {
        { VK_TIMEOUT, "VK_TIMEOUT" },
        { VK_INCOMPLETE, "VK_INCOMPLETE" },
        { VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY" },
        { VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY" },
        { VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED" },
        { VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST" },
        { VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED" },
        { VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT" },
        { VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT" },
        { VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT" },
        { VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER" },
        { VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS" },
        { VK_ERROR_FRAGMENTED_POOL, "VK_ERROR_FRAGMENTED_POOL" },
        { VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY" },
        { VK_ERROR_INVALID_SHADER_NV, "VK_ERROR_INVALID_SHADER_NV" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].result == r)
            return names[i].name;
    return "an unknown Vulkan error";
}

int gpu_check(struct gpu *gpu, VkResult r, struct err *err, const char *what)
{
    if (r == VK_SUCCESS)
        return 0;
    if (r != VK_ERROR_DEVICE_LOST)
        return err_set(err, "%s: %s (%d)", what, gpu_result_name(r), (int)r);
    err_set(&gpu->lost,
            "the device was lost (VK_ERROR_DEVICE_LOST at: %s; last step submitted: %s); "
            "the system log may say why, start again",
            what, gpu->last_label ? gpu->last_label : "none");
    return gpu_alive(gpu, err);
}

int gpu_alive(const struct gpu *gpu, struct err *err)
{
    return gpu->lost.text[0] ? err_set(err, "%s", gpu->lost.text) : 0;
}

void gpu_name(struct gpu *gpu, VkObjectType type, uint64_t handle, const char *name)
{
    VkDebugUtilsObjectNameInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = type,
        .objectHandle = handle,
        .pObjectName = name,
    };
    if (gpu->set_name)
        gpu->set_name(gpu->device, &info);
}

/* ---- instance ----------------------------------------------------------- */

static VKAPI_ATTR VkBool32 VKAPI_CALL
message_count(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
              VkDebugUtilsMessageTypeFlagsEXT types,
              const VkDebugUtilsMessengerCallbackDataEXT *data, void *arg)
{
    (void)severity;
    (void)types;
    struct gpu_messages *m = arg;
    if (m->n++ == 0)
        snprintf(m->first, sizeof m->first, "%s", data->pMessage ? data->pMessage : "");
    return VK_FALSE;
}

static int layer_find(uint32_t *spec, struct err *err)
{
    uint32_t n = 0;
    vkEnumerateInstanceLayerProperties(&n, NULL);
    VkLayerProperties *v = mem_array(n, sizeof *v);
    VkResult r = vkEnumerateInstanceLayerProperties(&n, v);
    *spec = 0;
    for (uint32_t i = 0; r == VK_SUCCESS && i < n; i++)
        if (!strcmp(v[i].layerName, VALIDATION_LAYER))
            *spec = v[i].specVersion;
    free(v);
    return *spec ? 0
                 : err_set(err, "the Vulkan validation layers (" VALIDATION_LAYER
                                ") are not installed: Debian has them in "
                                "vulkan-validationlayers");
}

static VkResult instance_create(VkInstance *out, bool validate)
{
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
    };
    static const char *const layers[] = { VALIDATION_LAYER };
    static const char *const extensions[] = {
        VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
        VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME,
    };
    const VkApplicationInfo app = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "tern",
        .apiVersion = VK_API_VERSION_1_3,
    };
    const VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .enabledValidationFeatureCount = 1,
        .pEnabledValidationFeatures = enables,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = validate ? &features : NULL,
        .pApplicationInfo = &app,
        .enabledLayerCount = validate ? 1 : 0,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = validate ? 2 : 0,
        .ppEnabledExtensionNames = extensions,
    };
    return vkCreateInstance(&info, NULL, out);
}

/* *out stays VK_NULL_HANDLE, without an error, when there is no driver. */
static int instance_open(VkInstance *out, bool validate, struct err *err)
{
    VkResult r = instance_create(out, validate);
    if (r != VK_SUCCESS)
        *out = VK_NULL_HANDLE;
    if (r == VK_SUCCESS || r == VK_ERROR_INCOMPATIBLE_DRIVER)
        return 0;
    return err_set(err, "starting Vulkan: %s (%d)", gpu_result_name(r), (int)r);
}

static int messenger_open(struct gpu *gpu, struct err *err)
{
    PFN_vkCreateDebugUtilsMessengerEXT create =
        (PFN_vkCreateDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
            gpu->instance, "vkCreateDebugUtilsMessengerEXT");
    const VkDebugUtilsMessengerCreateInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = message_count,
        .pUserData = &gpu->messages,
    };
    if (!create)
        return err_set(err, "the validation layers offer no messages");
    return gpu_check(gpu, create(gpu->instance, &info, NULL, &gpu->messenger), err,
                     "creating the validation messenger");
}

static void messenger_close(struct gpu *gpu)
{
    if (!gpu->messenger)
        return;
    PFN_vkDestroyDebugUtilsMessengerEXT destroy =
        (PFN_vkDestroyDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
            gpu->instance, "vkDestroyDebugUtilsMessengerEXT");
    destroy(gpu->instance, gpu->messenger, NULL);
}

/* ---- choice ------------------------------------------------------------- */

static int kind_rank(const char *kind)
{
    static const char *const order[] = { "other", "cpu", "virtual", "integrated",
                                         "discrete" };
    int rank = 0;
    for (int i = 0; i < (int)(sizeof order / sizeof *order); i++)
        if (!strcmp(kind, order[i]))
            rank = i;
    return rank;
}

static bool device_better(const struct device_info *a, const struct device_info *b)
{
    int ra = kind_rank(a->kind), rb = kind_rank(b->kind);
    return ra != rb ? ra > rb : a->memory_bytes > b->memory_bytes;
}

static int caps_list_read(struct caps_list *list, VkInstance instance,
                          uint32_t layer_spec, struct err *err)
{
    *list = (struct caps_list){ .chosen = -1 };
    uint32_t n = 0;
    VkResult r = instance ? vkEnumeratePhysicalDevices(instance, &n, NULL) : VK_SUCCESS;
    if (r == VK_ERROR_INITIALIZATION_FAILED || (r == VK_SUCCESS && n == 0))
        return 0; /* drivers, but no device of theirs */
    VkPhysicalDevice *v = mem_array(n, sizeof(VkPhysicalDevice));
    if (r == VK_SUCCESS)
        r = vkEnumeratePhysicalDevices(instance, &n, v);
    int rc = 0;
    if (r != VK_SUCCESS) {
        rc = err_set(err, "listing the Vulkan devices: %s", gpu_result_name(r));
        goto out;
    }
    list->v = mem_array(n, sizeof *list->v);
    for (uint32_t i = 0; i < n; i++) {
        rc = gpu_query(&list->v[i], instance, v[i], layer_spec, err);
        if (rc)
            goto out;
        list->n++;
        const struct device_info *info = &list->v[i].info;
        if (info->usable &&
            (list->chosen < 0 || device_better(info, &list->v[list->chosen].info)))
            list->chosen = (int)i;
    }
out:
    free(v);
    return rc;
}

int gpu_list(struct device_info *out, size_t max, size_t *n, int *chosen, struct err *err)
{
    VkInstance instance = VK_NULL_HANDLE;
    struct caps_list list = { .chosen = -1 };
    int rc = instance_open(&instance, false, err);
    if (!rc)
        rc = caps_list_read(&list, instance, 0, err);
    for (uint32_t i = 0; !rc && i < list.n && i < max; i++)
        out[i] = list.v[i].info;
    *n = rc ? 0 : list.n;
    if (chosen)
        *chosen = rc ? -1 : list.chosen;
    free(list.v);
    if (instance)
        vkDestroyInstance(instance, NULL);
    return rc;
}

int device_list(struct device_info *out, size_t max, size_t *n, int *chosen,
                struct err *err)
{
    return gpu_list(out, max, n, chosen, err);
}

static int device_choose(struct gpu *gpu, int device, uint32_t layer_spec,
                         struct err *err)
{
    struct caps_list list;
    int rc = caps_list_read(&list, gpu->instance, layer_spec, err);
    if (rc)
        goto out;
    if (list.n == 0)
        rc = err_set(err, "no Vulkan device was found: install the Vulkan driver of your "
                          "GPU, or Mesa's drivers, which can also run on the CPU "
                          "(Debian: apt install mesa-vulkan-drivers)");
    else if (device < 0 || device > (int)list.n)
        rc = err_set(err, "there is no device %d: the devices are 1 to %u", device,
                     list.n);
    else if (device && !list.v[device - 1].info.usable)
        rc = err_set(err, "device %d (%s) cannot be used: %s", device,
                     list.v[device - 1].info.name, list.v[device - 1].info.note);
    else if (!device && list.chosen < 0)
        rc = err_set(err, "none of the %u Vulkan devices can be used; the first, %s: %s",
                     list.n, list.v[0].info.name, list.v[0].info.note);
    else
        gpu->caps = list.v[device ? device - 1 : list.chosen];
out:
    free(list.v);
    return rc;
}

/* ---- device ------------------------------------------------------------- */

static int device_create(struct gpu *gpu, struct err *err)
{
    struct gpu_caps *caps = &gpu->caps;
    const char *extensions[3];
    uint32_t n = 0;
    bool v13 = caps->info.api_version >= VK_API_VERSION_1_3;
    if (caps->has_dot && !v13)
        extensions[n++] = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
    if (caps->has_subgroup_control && !v13)
        extensions[n++] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
    if (caps->has_coopmat)
        extensions[n++] = COOPMAT_EXTENSION;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = caps->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = gpu_features_link(&caps->features, caps),
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = n,
        .ppEnabledExtensionNames = extensions,
    };
    VkResult r = vkCreateDevice(caps->physical, &info, NULL, &gpu->device);
    if (r != VK_SUCCESS)
        return err_set(err, "opening %s: %s (%d)", caps->info.name, gpu_result_name(r),
                       (int)r);
    vkGetDeviceQueue(gpu->device, caps->family, 0, &gpu->queue);
    if (gpu->messenger)
        gpu->set_name = (PFN_vkSetDebugUtilsObjectNameEXT)vkGetDeviceProcAddr(
            gpu->device, "vkSetDebugUtilsObjectNameEXT");
    return 0;
}

/* The command buffer that ends each submit: a fence alone does not make
 * shader writes visible to the host. */
static int tail_record(struct gpu *gpu, struct err *err)
{
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = gpu->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
    };
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    VkResult r = vkAllocateCommandBuffers(gpu->device, &info, &gpu->tail);
    if (r == VK_SUCCESS)
        r = vkBeginCommandBuffer(gpu->tail, &begin);
    if (r == VK_SUCCESS) {
        vkCmdPipelineBarrier(
            gpu->tail,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
        r = vkEndCommandBuffer(gpu->tail);
    }
    return gpu_check(gpu, r, err, "recording the host barrier");
}

static int objects_create(struct gpu *gpu, struct err *err)
{
    const VkPipelineCacheCreateInfo cache = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
    };
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = gpu->caps.family,
    };
    const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    VkResult r = vkCreatePipelineCache(gpu->device, &cache, NULL, &gpu->cache);
    if (r == VK_SUCCESS)
        r = vkCreateCommandPool(gpu->device, &pool, NULL, &gpu->pool);
    if (r == VK_SUCCESS)
        r = vkCreateFence(gpu->device, &fence, NULL, &gpu->fence);
    if (gpu_check(gpu, r, err, "preparing the device"))
        return -1;
    return tail_record(gpu, err);
}

int gpu_open(struct gpu **out, const struct gpu_params *p, struct err *err)
{
    const struct gpu_params params = p ? *p : (struct gpu_params){ 0 };
    struct gpu *gpu = mem_zalloc(sizeof *gpu);
    uint32_t layer_spec = 0;
    int rc = params.validate ? layer_find(&layer_spec, err) : 0;
    if (!rc)
        rc = instance_open(&gpu->instance, params.validate, err);
    if (!rc && params.validate && gpu->instance)
        rc = messenger_open(gpu, err);
    if (!rc)
        rc = device_choose(gpu, params.device, layer_spec, err);
    if (!rc)
        rc = device_create(gpu, err);
    if (!rc)
        rc = objects_create(gpu, err);
    if (rc) {
        gpu_close(gpu);
        gpu = NULL;
    }
    *out = gpu;
    return rc;
}

void gpu_close(struct gpu *gpu)
{
    if (!gpu)
        return;
    if (gpu->device) {
        vkDeviceWaitIdle(gpu->device);
        gpu_staging_close(gpu);
        vkDestroyFence(gpu->device, gpu->fence, NULL);
        vkDestroyCommandPool(gpu->device, gpu->pool, NULL);
        vkDestroyPipelineCache(gpu->device, gpu->cache, NULL);
        vkDestroyDevice(gpu->device, NULL);
    }
    messenger_close(gpu);
    if (gpu->instance)
        vkDestroyInstance(gpu->instance, NULL);
    free(gpu->handles);
    free(gpu);
}

const struct device_info *gpu_info(const struct gpu *gpu)
{
    return &gpu->caps.info;
}

uint32_t gpu_validation_errors(const struct gpu *gpu, const char **first)
{
    if (first)
        *first = gpu->messages.first;
    return gpu->messages.n;
}

bool gpu_lost(const struct gpu *gpu)
{
    return gpu->lost.text[0] != 0;
}

uint64_t gpu_allocated(const struct gpu *gpu)
{
    return gpu->allocated;
}
