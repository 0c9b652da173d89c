// SPDX-License-Identifier: Apache-2.0
// A Vulkan loader for PUMICE_VULKAN_LOADER whose driver lies at random: of the submits that run a kernel of capability
// LIE_CAPABILITY (a number of SPIR-V), LIE_PERCENT of a hundred do nothing, and say that they were done. LIE_LOADER
// names the loader that it passes all else to; LIE_COUNT a file that gets a byte for each lie.
#include "test/support/played_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

using namespace pumice::test;

std::mutex mutex;
std::unordered_set<void*> modules, pipelines, commands;  // those of kernels that lie
PFN_vkGetDeviceProcAddr device_function = nullptr;
PFN_vkCreateShaderModule create_module = nullptr;
PFN_vkCreateComputePipelines create_pipelines = nullptr;
PFN_vkCmdBindPipeline bind_pipeline = nullptr;
PFN_vkBeginCommandBuffer begin = nullptr;
PFN_vkQueueSubmit submit = nullptr;

bool lies_with(const VkShaderModuleCreateInfo& info) {
  return has_capability(info, static_cast<uint32_t>(std::atoi(std::getenv("LIE_CAPABILITY"))));
}

VkResult lie_create_module(VkDevice device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* memory,
                           VkShaderModule* out) {
  const VkResult result = create_module(device, info, memory, out);
  std::lock_guard lock(mutex);
  modules.erase(*out);
  if (result == VK_SUCCESS && lies_with(*info)) modules.insert(*out);
  return result;
}

VkResult lie_create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                              const VkComputePipelineCreateInfo* infos, const VkAllocationCallbacks* memory,
                              VkPipeline* out) {
  const VkResult result = create_pipelines(device, cache, count, infos, memory, out);
  std::lock_guard lock(mutex);
  for (uint32_t i = 0; i < count; ++i) {
    pipelines.erase(out[i]);
    if (modules.contains(infos[i].stage.module)) pipelines.insert(out[i]);
  }
  return result;
}

VkResult lie_begin(VkCommandBuffer buffer, const VkCommandBufferBeginInfo* info) {
  std::lock_guard lock(mutex);
  commands.erase(buffer);
  return begin(buffer, info);
}

void lie_bind_pipeline(VkCommandBuffer buffer, VkPipelineBindPoint point, VkPipeline pipeline) {
  {
    std::lock_guard lock(mutex);
    if (pipelines.contains(pipeline)) commands.insert(buffer);
  }
  bind_pipeline(buffer, point, pipeline);
}

bool lies() {
  static std::minstd_rand random(7);
  if (random() % 100 >= static_cast<uint32_t>(std::atoi(std::getenv("LIE_PERCENT")))) return false;
  if (std::FILE* count = std::fopen(std::getenv("LIE_COUNT"), "a")) {
    std::fputc('x', count);
    std::fclose(count);
  }
  return true;
}

VkResult lie_submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  std::vector<VkSubmitInfo> all(infos, infos + count);
  {
    std::lock_guard lock(mutex);
    for (VkSubmitInfo& info : all) {
      const bool lying = std::any_of(info.pCommandBuffers, info.pCommandBuffers + info.commandBufferCount,
                                     [](VkCommandBuffer each) { return commands.contains(each); });
      if (lying && lies()) info.commandBufferCount = 0;
    }
  }
  return submit(queue, count, all.data(), fence);
}

PFN_vkVoidFunction lie_device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = device_function(device, name);
  const std::string wanted = name;
  if (wanted == "vkCreateShaderModule") return in_place_of(create_module, found, lie_create_module);
  if (wanted == "vkCreateComputePipelines") return in_place_of(create_pipelines, found, lie_create_pipelines);
  if (wanted == "vkBeginCommandBuffer") return in_place_of(begin, found, lie_begin);
  if (wanted == "vkCmdBindPipeline") return in_place_of(bind_pipeline, found, lie_bind_pipeline);
  if (wanted == "vkQueueSubmit") return in_place_of(submit, found, lie_submit);
  return found;
}

}  // namespace

extern "C" PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = real_loader()(instance, name);
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return in_place_of(device_function, found, lie_device_function);
  return found;
}
