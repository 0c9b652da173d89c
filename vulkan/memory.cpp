// SPDX-License-Identifier: Apache-2.0
#include "vulkan/memory.h"

#include "vulkan/core.h"

namespace pumice::engine {

struct Buffer::Impl {
  std::shared_ptr<Core> core;
  VkBuffer buffer = VK_NULL_HANDLE;
  VmaAllocation allocation = nullptr;
  uint64_t bytes = 0;
  std::byte* mapped = nullptr;
  MemoryKind kind = MemoryKind::device;
};

namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

// Device memory that is an ordinary cached part of the host's memory. A discrete GPU's memory may be host-visible, but
// is not cached: reading it over the bus is slow, and copies by the device are the way.
bool find_unified(const Core& core) {
  VkPhysicalDeviceMemoryProperties memory{};
  core.vk.GetPhysicalDeviceMemoryProperties(core.physical.handle, &memory);
  constexpr VkMemoryPropertyFlags kAll = kLocal | kVisible | kCached;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    if ((memory.memoryTypes[i].propertyFlags & kAll) == kAll) return true;
  }
  return false;
}

VmaAllocationCreateInfo allocation_info(const Core& core, MemoryKind kind) {
  VmaAllocationCreateInfo info{};
  info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT;
  switch (kind) {
    case MemoryKind::device:
      info.requiredFlags = core.unified ? kLocal | kVisible | kCached : kLocal;
      if (!core.unified) info.flags = 0;
      break;
    case MemoryKind::upload:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags |= VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT;
      info.requiredFlags = kVisible;
      break;
    case MemoryKind::download:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags |= VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
      info.requiredFlags = kVisible;
      info.preferredFlags = kCached;
      break;
  }
  return info;
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
  info.physicalDevice = core.physical.handle;
  info.device = core.device;
  info.instance = core.instance->handle;
  info.vulkanApiVersion = VK_API_VERSION_1_1;
  info.pVulkanFunctions = &functions;
  must(vmaCreateAllocator(&info, &core.allocator), "vmaCreateAllocator", "allocator", Stage::device, vk);
  core.unified = find_unified(core);
}

Memory::Memory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Memory::~Memory() = default;

bool Memory::unified() const {
  return impl_->core->unified;
}

MemoryUse Memory::use() const {
  const Core& core = *impl_->core;
  return {core.allocated[0], core.allocated[1], core.allocated[2]};
}

Buffer Memory::buffer(uint64_t bytes, MemoryKind kind, const char* what) {
  Core& core = *impl_->core;
  const uint64_t limit = core.features.max_allocation_bytes;
  if (bytes > limit || bytes > ~uint64_t{0} - 15) {
    fail(Code::LimitExceeded, Stage::device, what, "%s takes %llu bytes; %s allocates at most %llu at once", what,
         static_cast<unsigned long long>(bytes), core.vk.device.c_str(), static_cast<unsigned long long>(limit));
  }
  auto impl = std::make_unique<Buffer::Impl>();
  impl->bytes = bytes == 0 ? 16 : (bytes + 15) / 16 * 16;
  impl->kind = kind;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = impl->bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const VmaAllocationCreateInfo allocation = allocation_info(core, kind);
  VmaAllocationInfo made{};
  const VkResult result = vmaCreateBuffer(core.allocator, &info, &allocation, &impl->buffer, &impl->allocation, &made);
  if (result != VK_SUCCESS)
    refuse_memory(core, result, "vmaCreateBuffer", what,
                  format("%s of %llu bytes", what, static_cast<unsigned long long>(impl->bytes)));
  impl->core = impl_->core;
  impl->mapped = static_cast<std::byte*>(made.pMappedData);
  core.allocated[static_cast<size_t>(kind)] += impl->bytes;
  Buffer buffer(std::move(impl));
  if (kind == MemoryKind::device && buffer.mapped() != nullptr) {
    std::lock_guard lock(core.mapped_mutex);
    core.mapped[buffer.handle()] = buffer.mapped();
  }
  return buffer;
}

Buffer::Buffer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Buffer::Buffer() = default;
Buffer::Buffer(Buffer&&) noexcept = default;

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Buffer::~Buffer() {
  if (impl_ == nullptr) return;
  Core& core = *impl_->core;
  if (core.must_leak()) return;
  if (impl_->kind == MemoryKind::device && impl_->mapped != nullptr) {
    std::lock_guard lock(core.mapped_mutex);
    core.mapped.erase(impl_->buffer);
  }
  vmaDestroyBuffer(core.allocator, impl_->buffer, impl_->allocation);
  core.allocated[static_cast<size_t>(impl_->kind)] -= impl_->bytes;
}

VkBuffer Buffer::handle() const {
  return impl_ ? impl_->buffer : VK_NULL_HANDLE;
}
uint64_t Buffer::bytes() const {
  return impl_ ? impl_->bytes : 0;
}
std::byte* Buffer::mapped() const {
  return impl_ ? impl_->mapped : nullptr;
}

}  // namespace pumice::engine
