// SPDX-License-Identifier: Apache-2.0
// Buffers, and what allocates them and images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "vulkan/image.h"

typedef struct VkBuffer_T* VkBuffer;

namespace pumice::engine {

enum class MemoryKind : uint8_t {
  device,    // read and written by kernels; mapped where device memory is also cached host memory (CPU, integrated)
  upload,    // written by the host in order, read by copies
  download,  // written by copies and kernels, read by the host (cached)
  input,     // written by the host in order, read by kernels: on the device where Memory::host_sees_device
};

// What a buffer of that size takes.
constexpr uint64_t buffer_bytes(uint64_t bytes) {
  return bytes == 0 ? 16 : (bytes + 15) / 16 * 16;
}

// A storage + transfer buffer; its size is rounded up, see buffer_bytes. Move only; frees itself. Keeps its Device's
// allocator alive.
class Buffer {
 public:
  Buffer();
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();
  VkBuffer handle() const;
  uint64_t bytes() const;
  std::byte* mapped() const;  // null when the host cannot see it
  explicit operator bool() const { return impl_ != nullptr; }

  struct Impl;
  explicit Buffer(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

// Bytes of a buffer, as kernels and copies take them, or a whole image, which only kernels take. For kernels, `offset`
// is a multiple of Features::storage_alignment.
struct Slice {
  VkBuffer buffer = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  VkImageView view = nullptr;  // the image
};

struct MemoryUse {
  uint64_t device_bytes, upload_bytes, download_bytes;  // now allocated
  uint64_t most_device_bytes;                           // at once, since the device was opened
};

class Memory {
 public:
  // Throws OutOfDeviceMemory (or LimitExceeded past Features::max_allocation_bytes) naming `what` and the bytes.
  Buffer buffer(uint64_t bytes, MemoryKind kind, const char* what);
  // As buffer(), in device memory.
  Image image(const ImageShape& shape, const char* what);
  // What image() will allocate; nothing is.
  uint64_t image_bytes(const ImageShape& shape) const;
  // Where a kernel finds the slice, of a buffer in device memory or, on a CPU driver, of any; with Feature::addresses
  // alone.
  uint64_t address(const Slice& slice) const;
  MemoryUse use() const;
  // True when MemoryKind::device buffers are mapped and cached: the host then reads and writes tensors in place.
  bool unified() const;
  // Whether the host can write some of the device's own memory.
  bool host_sees_device() const;

  explicit Memory(std::shared_ptr<Core> core) : core_(std::move(core)) {}

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace pumice::engine
