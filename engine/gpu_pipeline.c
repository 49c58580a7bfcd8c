/* gpu_pipeline.c - one compute pipeline per kernel variant.
 *
 * Every variant has an explicit layout: storage buffers 0..n-1 and one range
 * of push constants. Where a device can run several subgroup sizes its own
 * default is required, so that gl_SubgroupSize is the width that really runs. */
#include "engine/gpu_internal.h"

#include <string.h>

enum { SPIRV_MAGIC = 0x07230203 };

static int module_check(const struct gpu *gpu, const struct gpu_module *m,
                        const uint32_t *spec, uint32_t n_spec, struct err *err)
{
    const VkPhysicalDeviceLimits *l = &gpu->caps.limits;
    if (!m->spirv || m->spirv_bytes < 20 || m->spirv_bytes % 4 ||
        m->spirv[0] != SPIRV_MAGIC)
        return err_set(err, "this is no SPIR-V module");
    if (m->n_bindings < 1 || m->n_bindings > GPU_MAX_BINDINGS ||
        m->n_bindings > l->maxPerStageDescriptorStorageBuffers)
        return err_set(err, "%u bindings, from 1 to %u are possible", m->n_bindings,
                       l->maxPerStageDescriptorStorageBuffers < GPU_MAX_BINDINGS
                           ? l->maxPerStageDescriptorStorageBuffers
                           : GPU_MAX_BINDINGS);
    if (m->writes >> (m->n_bindings - 1) >> 1)
        return err_set(err, "writes a binding that it does not have (mask %#x)",
                       m->writes);
    if (m->push_bytes > GPU_PUSH_BYTES || m->push_bytes % 4)
        return err_set(err,
                       "%u bytes of push constants, at most %d in words are possible",
                       m->push_bytes, GPU_PUSH_BYTES);
    if (n_spec > GPU_MAX_SPEC)
        return err_set(err, "%u specialization constants, at most %d are possible",
                       n_spec, GPU_MAX_SPEC);
    if (n_spec && (spec[0] < 1 || spec[0] > l->maxComputeWorkGroupInvocations ||
                   spec[0] > l->maxComputeWorkGroupSize[0]))
        return err_set(err, "workgroups of %u invocations, the device allows 1 to %u",
                       spec[0], l->maxComputeWorkGroupInvocations);
    return 0;
}

static VkResult layout_create(struct gpu_kernel *k, struct gpu *gpu)
{
    const struct gpu_module *m = k->module;
    VkDescriptorSetLayoutBinding bindings[GPU_MAX_BINDINGS];
    for (uint32_t i = 0; i < m->n_bindings; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = m->n_bindings,
        .pBindings = bindings,
    };
    const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, m->push_bytes };
    VkResult r = vkCreateDescriptorSetLayout(gpu->device, &set, NULL, &k->set_layout);
    if (r != VK_SUCCESS)
        return r;
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &k->set_layout,
        .pushConstantRangeCount = m->push_bytes ? 1 : 0,
        .pPushConstantRanges = &push,
    };
    return vkCreatePipelineLayout(gpu->device, &layout, NULL, &k->layout);
}

static VkResult pipeline_create(struct gpu_kernel *k, struct gpu *gpu,
                                const uint32_t *spec, uint32_t n_spec)
{
    VkSpecializationMapEntry map[GPU_MAX_SPEC];
    for (uint32_t i = 0; i < n_spec; i++)
        map[i] = (VkSpecializationMapEntry){ i, i * 4, 4 };
    const VkSpecializationInfo special = { n_spec, map, n_spec * (size_t)4, spec };

    const uint32_t width = gpu->caps.info.subgroup_size;
    const bool required = gpu->caps.require_subgroup;
    const bool full = required && gpu->caps.features.subgroup.computeFullSubgroups &&
                      n_spec && spec[0] % width == 0;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType =
            VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = width,
    };
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .pNext = required ? &subgroup : NULL,
            .flags = full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = k->shader,
            .pName = "main",
            .pSpecializationInfo = n_spec ? &special : NULL,
        },
        .layout = k->layout,
    };
    return vkCreateComputePipelines(gpu->device, gpu->cache, 1, &info, NULL,
                                    &k->pipeline);
}

int gpu_kernel_open(struct gpu_kernel *k, struct gpu *gpu, const struct gpu_module *m,
                    const uint32_t *spec, uint32_t n_spec, struct err *err)
{
    *k = (struct gpu_kernel){ .module = m };
    if (gpu_alive(gpu, err))
        return -1;
    if (module_check(gpu, m, spec, n_spec, err))
        return err_prefix(err, "kernel %s", m->name);
    const VkShaderModuleCreateInfo shader = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = m->spirv_bytes,
        .pCode = m->spirv,
    };
    VkResult r = vkCreateShaderModule(gpu->device, &shader, NULL, &k->shader);
    if (r == VK_SUCCESS)
        r = layout_create(k, gpu);
    if (r == VK_SUCCESS)
        r = pipeline_create(k, gpu, spec, n_spec);
    if (r != VK_SUCCESS) {
        gpu_kernel_close(k, gpu);
        gpu_check(gpu, r, err, "the pipeline cannot be built");
        return err_prefix(err, "kernel %s", m->name);
    }
    gpu_name(gpu, VK_OBJECT_TYPE_PIPELINE, (uint64_t)(uintptr_t)k->pipeline, m->name);
    return 0;
}

void gpu_kernel_close(struct gpu_kernel *k, struct gpu *gpu)
{
    if (!k || !gpu)
        return;
    vkDestroyPipeline(gpu->device, k->pipeline, NULL);
    vkDestroyPipelineLayout(gpu->device, k->layout, NULL);
    vkDestroyDescriptorSetLayout(gpu->device, k->set_layout, NULL);
    vkDestroyShaderModule(gpu->device, k->shader, NULL);
    *k = (struct gpu_kernel){ 0 };
}
