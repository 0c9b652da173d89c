// SPDX-License-Identifier: Apache-2.0
// Device memory for tensors that stay: a large one has a buffer of its own, small ones share a buffer.
#pragma once

#include <algorithm>
#include <vector>

#include "vulkan/memory.h"

namespace pumice::engine {

// A tensor's memory outside of the arena: bytes of a buffer, or an image.
struct Allocation {
  Slice slice;
  std::byte* mapped = nullptr;  // null when the host cannot see it
};

inline uint64_t padded(uint64_t bytes, uint64_t alignment) {
  return std::max<uint64_t>((bytes + alignment - 1) / alignment, 1) * alignment;
}

// `bytes` of a tensor at `offset` of a buffer, up to the next multiple of 16.
inline Allocation allocation_of(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
  return {{buffer.handle(), offset, padded(bytes, 16)},
          buffer.mapped() == nullptr ? nullptr : buffer.mapped() + offset};
}

class Suballocator {
 public:
  explicit Suballocator(uint64_t alignment) : alignment_(alignment) {}

  // Announces a tensor, so that a shared buffer is no larger than what is still to come.
  void expect(uint64_t bytes) {
    const uint64_t size = padded(bytes, alignment_);
    if (size < kOwnBytes) small_bytes_ += size;
  }

  Allocation allocate(Memory& memory, uint64_t bytes, const char* what) {
    const uint64_t size = padded(bytes, alignment_);
    if (size >= kOwnBytes) return allocation_of(add(memory, size, what), 0, bytes);
    if (shared_bytes_ - shared_used_ < size) {
      shared_bytes_ = std::max(size, std::min(kSharedBytes, small_bytes_));
      add(memory, shared_bytes_, what);
      shared_ = buffers_.size() - 1;
      shared_used_ = 0;
    }
    const Allocation allocation = allocation_of(buffers_[shared_], shared_used_, bytes);
    shared_used_ += size;
    small_bytes_ -= std::min(size, small_bytes_);
    return allocation;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kOwnBytes = uint64_t{1} << 20, kSharedBytes = uint64_t{16} << 20;

  const Buffer& add(Memory& memory, uint64_t bytes, const char* what) {
    buffers_.push_back(memory.buffer(bytes, MemoryKind::device, what));
    bytes_ += bytes;
    return buffers_.back();
  }

  const uint64_t alignment_;
  std::vector<Buffer> buffers_;
  size_t shared_ = 0;  // the buffer in which small tensors are allocated now
  uint64_t shared_bytes_ = 0, shared_used_ = 0, small_bytes_ = 0, bytes_ = 0;
};

}  // namespace pumice::engine
