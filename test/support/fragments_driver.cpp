// SPDX-License-Identifier: Apache-2.0
// A Vulkan loader for PUMICE_VULKAN_LOADER that makes of a CPU driver a GPU of subgroups of 32 whose cooperative
// matrices have the shapes and, as the probe says, the registers of Feature::fragments. Kernels of matrices are not
// handed to the driver, which has no such shapes: in their place a shader runs that writes nothing, which is the lie.
// LIE_LOADER names the loader that all else is passed to.
#include "test/support/played_driver.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

using namespace pumice::test;

constexpr uint32_t kCooperativeMatrix = 6022;  // the capability
constexpr uint32_t kRight = 0x600d;            // what each lane of the probe writes: vulkan/probe.cpp
constexpr uint32_t kNothing[] = {
    0x07230203,
    0x00010000,
    0,
    5,
    0,  // SPIR-V 1.0 of four ids
    2 << 16 | 17,
    1,
    3 << 16 | 14,
    0,
    1,  // shaders; logical addresses, GLSL's memory model
    5 << 16 | 15,
    5,
    1,
    0x6e69616d,
    0,  // compute, 1: "main"
    6 << 16 | 16,
    1,
    17,
    1,
    1,
    1,  // of one invocation
    2 << 16 | 19,
    2,
    3 << 16 | 33,
    3,
    2,  // 2: void, 3: void()
    5 << 16 | 54,
    2,
    1,
    0,
    3,
    2 << 16 | 248,
    4,  // 1: function, 4: label
    1 << 16 | 253,
    1 << 16 | 56,  // return, end
};

std::mutex mutex;
std::unordered_set<void*> probes, probe_pipelines, probing;  // modules; pipelines; command buffers that bound one
PFN_vkGetDeviceProcAddr device_function = nullptr;
PFN_vkGetPhysicalDeviceProperties2 properties = nullptr;
PFN_vkCreateShaderModule create_module = nullptr;
PFN_vkCreateComputePipelines create_pipelines = nullptr;
PFN_vkCmdBindPipeline bind_pipeline = nullptr;
PFN_vkCmdCopyBuffer copy_buffer = nullptr;
PFN_vkCmdFillBuffer fill_buffer = nullptr;

// Of fp16 16 x 16 x 16 and 16 x 8 x 16, of bytes 16 x 8 x 32.
VkResult list_shapes(VkPhysicalDevice, uint32_t* count, VkCooperativeMatrixPropertiesKHR* out) {
  for (uint32_t i = 0; out != nullptr && i < *count && i < 3; ++i)
    set_shape(out[i], 16, i == 0 ? 16 : 8, i == 2 ? 32 : 16, i == 2);
  *count = 3;
  return VK_SUCCESS;
}

void subgroups_of_32(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  properties(device, out);
  set_subgroup_size(*out, 32);
}

VkResult stand_in(VkDevice device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* memory,
                  VkShaderModule* out) {
  VkShaderModuleCreateInfo given = *info;
  const bool probe =
      std::find(info->pCode, info->pCode + info->codeSize / 4, kRight) != info->pCode + info->codeSize / 4;
  if (has_capability(*info, kCooperativeMatrix)) given.pCode = kNothing, given.codeSize = sizeof(kNothing);
  const VkResult result = create_module(device, &given, memory, out);
  std::lock_guard lock(mutex);
  probes.erase(*out);
  if (probe && given.pCode == kNothing) probes.insert(*out);
  return result;
}

// The driver's subgroups have the size that they have.
VkResult without_subgroup_size(VkDevice device, VkPipelineCache cache, uint32_t count,
                               const VkComputePipelineCreateInfo* infos, const VkAllocationCallbacks* memory,
                               VkPipeline* out) {
  std::vector<VkComputePipelineCreateInfo> all(infos, infos + count);
  for (VkComputePipelineCreateInfo& info : all) {
    const auto* next = static_cast<const VkBaseInStructure*>(info.stage.pNext);
    if (next != nullptr && next->sType == VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO)
      info.stage.pNext = next->pNext;
    info.stage.flags &= ~VkFlags{VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT};
  }
  const VkResult result = create_pipelines(device, cache, count, all.data(), memory, out);
  std::lock_guard lock(mutex);
  for (uint32_t i = 0; i < count; ++i) {
    probe_pipelines.erase(out[i]);
    if (probes.contains(infos[i].stage.module)) probe_pipelines.insert(out[i]);
  }
  return result;
}

void note_probe(VkCommandBuffer buffer, VkPipelineBindPoint point, VkPipeline pipeline) {
  {
    std::lock_guard lock(mutex);
    probe_pipelines.contains(pipeline) ? (void)probing.insert(buffer) : (void)probing.erase(buffer);
  }
  bind_pipeline(buffer, point, pipeline);
}

void answer_probe(VkCommandBuffer buffer, VkBuffer from, VkBuffer to, uint32_t count, const VkBufferCopy* regions) {
  bool asked = false;
  {
    std::lock_guard lock(mutex);
    asked = probing.erase(buffer) != 0;
  }
  if (asked)
    fill_buffer(buffer, to, regions->dstOffset, regions->size, kRight);
  else
    copy_buffer(buffer, from, to, count, regions);
}

PFN_vkVoidFunction function_of_device(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = device_function(device, name);
  const std::string wanted = name;
  if (wanted == "vkCreateShaderModule") return in_place_of(create_module, found, stand_in);
  if (wanted == "vkCreateComputePipelines") return in_place_of(create_pipelines, found, without_subgroup_size);
  if (wanted == "vkCmdBindPipeline") return in_place_of(bind_pipeline, found, note_probe);
  if (wanted == "vkCmdFillBuffer") fill_buffer = reinterpret_cast<PFN_vkCmdFillBuffer>(found);
  if (wanted == "vkCmdCopyBuffer") {
    fill_buffer = reinterpret_cast<PFN_vkCmdFillBuffer>(device_function(device, "vkCmdFillBuffer"));
    return in_place_of(copy_buffer, found, answer_probe);
  }
  return found;
}

}  // namespace

extern "C" PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = real_loader()(instance, name);
  const std::string wanted = name;
  if (found == nullptr) return found;
  if (wanted == "vkGetDeviceProcAddr") return in_place_of(device_function, found, function_of_device);
  if (wanted == "vkGetPhysicalDeviceProperties2") return in_place_of(properties, found, subgroups_of_32);
  if (wanted == "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")
    return reinterpret_cast<PFN_vkVoidFunction>(list_shapes);
  return found;
}
