// SPDX-License-Identifier: Apache-2.0
// Every Vulkan call of the engine goes through this table, so that a test can inject a fault into any call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES  // a call that bypasses the table does not compile
#endif
#include <vulkan/vulkan_core.h>

#include "base/error.h"

namespace pumice::engine {

// clang-format off
// Before there is an instance.
#define PUMICE_VK_GLOBAL(F) \
  F(CreateInstance) F(EnumerateInstanceExtensionProperties) F(EnumerateInstanceLayerProperties)

// Of an instance.
#define PUMICE_VK_INSTANCE(F) \
  F(DestroyInstance) F(EnumeratePhysicalDevices) F(EnumerateDeviceExtensionProperties) \
  F(GetPhysicalDeviceProperties) F(GetPhysicalDeviceProperties2) F(GetPhysicalDeviceFeatures2) \
  F(GetPhysicalDeviceMemoryProperties) F(GetPhysicalDeviceMemoryProperties2) \
  F(GetPhysicalDeviceQueueFamilyProperties) F(GetPhysicalDeviceImageFormatProperties) F(CreateDevice) F(GetDeviceProcAddr)

// Of an instance, null where the driver or layer lacks the extension.
#define PUMICE_VK_OPTIONAL(F) \
  F(EnumerateInstanceVersion) F(GetPhysicalDeviceCooperativeMatrixPropertiesKHR) F(CreateDebugUtilsMessengerEXT) \
  F(DestroyDebugUtilsMessengerEXT)

// Of a device.
#define PUMICE_VK_DEVICE(F) \
  F(DestroyDevice) F(GetDeviceQueue) F(QueueSubmit) F(CreateFence) F(DestroyFence) \
  F(ResetFences) F(GetFenceStatus) F(WaitForFences) F(AllocateMemory) F(FreeMemory) F(MapMemory) F(UnmapMemory) \
  F(FlushMappedMemoryRanges) F(InvalidateMappedMemoryRanges) F(CreateBuffer) F(DestroyBuffer) F(BindBufferMemory) \
  F(BindBufferMemory2) F(GetBufferMemoryRequirements) F(GetBufferMemoryRequirements2) F(CreateImage) \
  F(DestroyImage) F(BindImageMemory) F(BindImageMemory2) F(GetImageMemoryRequirements) \
  F(GetImageMemoryRequirements2) F(CreateImageView) F(DestroyImageView) F(CreateShaderModule) F(DestroyShaderModule) F(CreateDescriptorSetLayout) \
  F(DestroyDescriptorSetLayout) F(CreatePipelineLayout) F(DestroyPipelineLayout) F(CreateComputePipelines) \
  F(DestroyPipeline) F(CreatePipelineCache) F(DestroyPipelineCache) F(GetPipelineCacheData) \
  F(CreateDescriptorPool) F(DestroyDescriptorPool) F(ResetDescriptorPool) F(AllocateDescriptorSets) \
  F(UpdateDescriptorSets) F(CreateCommandPool) F(DestroyCommandPool) F(ResetCommandPool) F(AllocateCommandBuffers) \
  F(BeginCommandBuffer) F(EndCommandBuffer) F(CreateQueryPool) F(DestroyQueryPool) F(GetQueryPoolResults) \
  F(CmdBindPipeline) F(CmdBindDescriptorSets) F(CmdPushConstants) F(CmdDispatch) F(CmdDispatchBase) F(CmdCopyBuffer) F(CmdFillBuffer) \
  F(CmdPipelineBarrier) F(CmdResetQueryPool) F(CmdWriteTimestamp)

// Of a device, null where it has neither Vulkan 1.2 nor the extension.
#define PUMICE_VK_DEVICE_OPTIONAL(F) \
  F(GetBufferDeviceAddress) F(GetPipelineExecutablePropertiesKHR) F(GetPipelineExecutableStatisticsKHR)
// clang-format on

template <class Pointer>
struct VkFunction;

// Code that ignores a VkResult does not compile.
template <class R, class... A>
struct VkFunction<R(VKAPI_PTR*)(A...)> {
  using Pointer = R(VKAPI_PTR*)(A...);
  Pointer pointer = nullptr;
  explicit operator bool() const { return pointer != nullptr; }
  [[nodiscard]] R operator()(A... arguments) const
    requires std::is_same_v<R, VkResult>
  {
    return pointer(arguments...);
  }
  R operator()(A... arguments) const { return pointer(arguments...); }
};

struct Vk {
  VkFunction<PFN_vkGetInstanceProcAddr> GetInstanceProcAddr;
#define PUMICE_VK_MEMBER(function) VkFunction<PFN_vk##function> function;
  PUMICE_VK_GLOBAL(PUMICE_VK_MEMBER)
  PUMICE_VK_INSTANCE(PUMICE_VK_MEMBER)
  PUMICE_VK_OPTIONAL(PUMICE_VK_MEMBER)
  PUMICE_VK_DEVICE(PUMICE_VK_MEMBER)
  PUMICE_VK_DEVICE_OPTIONAL(PUMICE_VK_MEMBER)
#undef PUMICE_VK_MEMBER
  std::string device;  // for error texts: name and driver, or "" before a device is chosen
};

// The table up to the instance; functions are null where there is no loader, and then `why` tells what was looked for.
Vk load_global(std::string* why);
// Both throw DeviceUnsupported with the function that is missing, and run the hook.
void load_instance(Vk& vk, VkInstance instance);
void load_device(Vk& vk, VkDevice device);

// For tests: called with the table each time it was filled (global, instance, device), so that functions can be
// replaced. Instances and devices opened before are not touched and not shared any more. An empty function removes the
// hook.
void set_vulkan_hook(std::function<void(Vk&)> hook);

const char* name(VkResult result);
Code code_of(VkResult result);
// The text of a failed call: call, object, result, device.
std::string describe(VkResult result, const char* call, const std::string& object, const Vk& vk);

// Anything but VK_SUCCESS is an error. Calls that succeed with other results check the result themselves.
inline void must(VkResult result, const char* call, const char* object, Stage stage, const Vk& vk) {
  if (result != VK_SUCCESS) [[unlikely]] {
    throw Error(code_of(result), stage, object, describe(result, call, object, vk));
  }
}

// VK(vk, Stage::device, "fence", CreateFence, device, &info, nullptr, &fence);
#define VK(vk, stage, object, function, ...) \
  ::pumice::engine::must((vk).function(__VA_ARGS__), "vk" #function, object, stage, vk)

}  // namespace pumice::engine
