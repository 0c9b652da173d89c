// SPDX-License-Identifier: Apache-2.0
#include "vulkan/allocator.h"

#include <algorithm>

namespace pumice::engine {
namespace {

// Device memory that is an ordinary cached part of the host's memory. A discrete GPU's memory may be host-visible, but
// is not cached: reading it over the bus is slow, and copies by the device are the way.
constexpr VkMemoryPropertyFlags kUnified = kLocal | kVisible | kCached;

bool has_memory(const Core& core, VkMemoryPropertyFlags flags) {
  VkPhysicalDeviceMemoryProperties memory{};
  core.vk.GetPhysicalDeviceMemoryProperties(core.physical.handle, &memory);
  return std::any_of(memory.memoryTypes, memory.memoryTypes + memory.memoryTypeCount,
                     [&](const VkMemoryType& type) { return (type.propertyFlags & flags) == flags; });
}

// "128 MiB of 16 GiB in use" of the largest device-local heap.
std::string budget_text(const Core& core) {
  VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
  vmaGetHeapBudgets(core.allocator, budgets);
  const VkPhysicalDeviceMemoryProperties* memory = nullptr;
  vmaGetMemoryProperties(core.allocator, &memory);
  const VmaBudget* best = nullptr;
  for (uint32_t i = 0; i < memory->memoryHeapCount; ++i) {
    if ((memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    if (best == nullptr || budgets[i].budget > best->budget) best = &budgets[i];
  }
  if (best == nullptr) return "";
  return format("; %llu of %llu bytes of device memory are in use", static_cast<unsigned long long>(best->usage),
                static_cast<unsigned long long>(best->budget));
}

}  // namespace

void refuse_memory(const Core& core, VkResult result, const char* call, const char* what, const std::string& object) {
  const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_FEATURE_NOT_PRESENT;
  throw Error(memory ? Code::OutOfDeviceMemory : code_of(result), Stage::device, what,
              describe(result, call, object, core.vk) + budget_text(core));
}

void create_allocator(Core& core) {
  const Vk& vk = core.vk;
  VmaVulkanFunctions functions{};
#define PUMICE_VMA(function) functions.vk##function = vk.function.pointer;
  PUMICE_VMA(GetInstanceProcAddr)
  PUMICE_VMA(GetDeviceProcAddr)
  PUMICE_VMA(GetPhysicalDeviceProperties)
  PUMICE_VMA(GetPhysicalDeviceMemoryProperties)
  PUMICE_VMA(AllocateMemory)
  PUMICE_VMA(FreeMemory)
  PUMICE_VMA(MapMemory)
  PUMICE_VMA(UnmapMemory)
  PUMICE_VMA(FlushMappedMemoryRanges)
  PUMICE_VMA(InvalidateMappedMemoryRanges)
  PUMICE_VMA(BindBufferMemory)
  PUMICE_VMA(BindImageMemory)
  PUMICE_VMA(GetBufferMemoryRequirements)
  PUMICE_VMA(GetImageMemoryRequirements)
  PUMICE_VMA(CreateBuffer)
  PUMICE_VMA(DestroyBuffer)
  PUMICE_VMA(CreateImage)
  PUMICE_VMA(DestroyImage)
  PUMICE_VMA(CmdCopyBuffer)
#undef PUMICE_VMA
  functions.vkGetBufferMemoryRequirements2KHR = vk.GetBufferMemoryRequirements2.pointer;
  functions.vkGetImageMemoryRequirements2KHR = vk.GetImageMemoryRequirements2.pointer;
  functions.vkBindBufferMemory2KHR = vk.BindBufferMemory2.pointer;
  functions.vkBindImageMemory2KHR = vk.BindImageMemory2.pointer;
  functions.vkGetPhysicalDeviceMemoryProperties2KHR = vk.GetPhysicalDeviceMemoryProperties2.pointer;
  functions.vkGetPhysicalDeviceProperties2KHR = vk.GetPhysicalDeviceProperties2.pointer;
  VmaAllocatorCreateInfo info{};
  info.flags = core.physical.memory_budget ? VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT : 0;
  if (core.features.has(Feature::addresses)) info.flags |= VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  info.physicalDevice = core.physical.handle;
  info.device = core.device;
  info.instance = core.instance->handle;
  info.vulkanApiVersion = VK_API_VERSION_1_1;
  info.pVulkanFunctions = &functions;
  must(vmaCreateAllocator(&info, &core.allocator), "vmaCreateAllocator", "allocator", Stage::device, vk);
  core.unified = !core.features.staged && has_memory(core, kUnified);
  core.host_sees_device = has_memory(core, kLocal | kVisible);
}

}  // namespace pumice::engine
