// SPDX-License-Identifier: Apache-2.0
#include "vulkan/memory.h"

#include "base/error.h"
#include "vulkan/allocator.h"

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
    case MemoryKind::input:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
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

}  // namespace

bool Memory::unified() const {
  return core_->unified;
}

bool Memory::host_sees_device() const {
  return core_->host_sees_device;
}

MemoryUse Memory::use() const {
  const Core& core = *core_;
  return {core.allocated[0], core.allocated[1] + core.allocated[3], core.allocated[2], core.most_device_bytes};
}

Image Memory::image(const ImageShape& shape, const char* what) {
  return Image(core_, shape, what);
}

uint64_t Memory::image_bytes(const ImageShape& shape) const {
  return pumice::engine::image_bytes(*core_, shape);
}

Buffer Memory::buffer(uint64_t bytes, MemoryKind kind, const char* what) {
  Core& core = *core_;
  const uint64_t limit = core.features.max_allocation_bytes;
  if (bytes > limit || bytes > ~uint64_t{0} - 15) {
    fail(Code::LimitExceeded, Stage::device, what, "%s takes %llu bytes; %s allocates at most %llu at once", what,
         static_cast<unsigned long long>(bytes), core.vk.device.c_str(), static_cast<unsigned long long>(limit));
  }
  auto impl = std::make_unique<Buffer::Impl>();
  impl->bytes = buffer_bytes(bytes);
  impl->kind = kind;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = impl->bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  // Of a CPU driver also the others: a kernel may then read an input where the caller put it.
  if ((kind == MemoryKind::device || core.features.cpu) && core.features.has(Feature::addresses))
    info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  const VmaAllocationCreateInfo allocation = allocation_info(core, kind);
  VmaAllocationInfo memory_info{};
  const VkResult result =
      vmaCreateBuffer(core.allocator, &info, &allocation, &impl->buffer, &impl->allocation, &memory_info);
  if (result != VK_SUCCESS)
    refuse_memory(core, result, "vmaCreateBuffer", what,
                  format("%s of %llu bytes", what, static_cast<unsigned long long>(impl->bytes)));
  impl->core = core_;
  impl->mapped = static_cast<std::byte*>(memory_info.pMappedData);
  core.count(static_cast<size_t>(kind), impl->bytes);
  Buffer buffer(std::move(impl));
  if (kind == MemoryKind::device && buffer.mapped() != nullptr) {
    std::lock_guard lock(core.mapped_mutex);
    core.mapped[buffer.handle()] = buffer.mapped();
  }
  return buffer;
}

uint64_t Memory::address(const Slice& slice) const {
  VkBufferDeviceAddressInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  info.buffer = slice.buffer;
  return core_->vk.GetBufferDeviceAddress(core_->device, &info) + slice.offset;
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
