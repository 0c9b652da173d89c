// SPDX-License-Identifier: Apache-2.0
// Buffers and images (through VulkanMemoryAllocator), and the ring that brings constants to the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "vulkan/device.h"

typedef struct VkBuffer_T* VkBuffer;
typedef struct VkImage_T* VkImage;
typedef struct VkImageView_T* VkImageView;

namespace pumice::engine {

enum class MemoryKind : uint8_t {
  device,  // read and written by kernels; mapped only where device memory is also cached host memory (CPU, integrated)
  upload,  // written by the host in order, read by copies
  download,  // written by copies, read by the host (cached)
};

// A storage + transfer buffer; its size is rounded up to 16 bytes. Move only; frees itself. Keeps its Device's
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

// depth 0: a 2D image. Each size is within Features::max_image_2d or max_image_3d.
struct ImageShape {
  ImageFormat format = ImageFormat::rgba32f;
  uint32_t width = 1, height = 1, depth = 0;
  bool operator==(const ImageShape&) const = default;
};

// An image that kernels read and write; it has no contents until Commands::discard. Move only; frees itself.
class Image {
 public:
  Image();
  Image(Image&&) noexcept;
  Image& operator=(Image&&) noexcept;
  ~Image();
  VkImage handle() const;
  VkImageView view() const;
  uint64_t bytes() const;

  struct Impl;
  explicit Image(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

// A part of a buffer, as kernels and copies take it, or a whole image, for kernels alone. offset is a multiple of
// Features::storage_alignment for kernels.
struct Slice {
  VkBuffer buffer = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  VkImageView view = nullptr;  // the image
};

struct MemoryUse {
  uint64_t device_bytes, upload_bytes, download_bytes;  // now allocated
};

class Memory {
 public:
  // Throws OutOfDeviceMemory (or LimitExceeded past Features::max_allocation_bytes) naming `what` and the bytes.
  Buffer buffer(uint64_t bytes, MemoryKind kind, const char* what);
  // As buffer(), in device memory.
  Image image(const ImageShape& shape, const char* what);
  MemoryUse use() const;
  // True when MemoryKind::device buffers are mapped and cached: the host then reads and writes tensors in place.
  bool unified() const;

  struct Impl;
  explicit Memory(std::unique_ptr<Impl> impl);
  ~Memory();

 private:
  std::unique_ptr<Impl> impl_;
};

class Commands;

// Streams host bytes into device buffers through a ring of upload buffers, copying on several threads while earlier
// chunks are on their way. Usage: put(...) any number of times, then flush(); put may block on the ring.
// The targets of puts between two flushes do not overlap.
class Uploader {
 public:
  explicit Uploader(std::shared_ptr<Device> device, uint64_t chunk_bytes = 8ull << 20, uint32_t chunks = 4);
  ~Uploader();
  // Rewrites elements on the way (i64 -> i32), on several threads at once. What `function` throws, put throws.
  struct Convert {
    uint32_t in_bytes, out_bytes;  // of one element
    std::function<void(std::byte* out, const std::byte* in, size_t count)> function;
  };
  void put(std::span<const std::byte> source, Slice target);
  void put(std::span<const std::byte> source, Slice target, const Convert& convert);
  void fill_zero(Slice target);
  void submit();  // everything put so far is on its way: a later Device::run sees it
  void flush();   // everything put so far is on the device when it returns

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
