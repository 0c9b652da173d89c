// SPDX-License-Identifier: Apache-2.0
// Device memory for tensors that stay: large ones have a buffer of their own, small ones share.
#pragma once

#include <algorithm>
#include <vector>

#include "vulkan/memory.h"

namespace pumice::engine {

// A tensor's memory outside of the arena.
struct Part {
  Slice slice;
  std::byte* mapped = nullptr;  // null when the host cannot see it
};

inline uint64_t padded(uint64_t bytes, uint64_t alignment) {
  return std::max<uint64_t>((bytes + alignment - 1) / alignment, 1) * alignment;
}

// `bytes` of a tensor at `offset` of a buffer, up to the next multiple of 16.
inline Part part_of(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
  return {{buffer.handle(), offset, padded(bytes, 16)},
          buffer.mapped() == nullptr ? nullptr : buffer.mapped() + offset};
}

class BlockAllocator {
 public:
  explicit BlockAllocator(uint64_t alignment) : alignment_(alignment) {}

  // Announces a tensor, so that a block is no larger than what is still to come.
  void expect(uint64_t bytes) {
    const uint64_t size = padded(bytes, alignment_);
    if (size < kOwnBytes) small_bytes_ += size;
  }

  Part allocate(Memory& memory, uint64_t bytes, const char* what) {
    const uint64_t size = padded(bytes, alignment_);
    if (size >= kOwnBytes) return part_of(add(memory, size, what), 0, bytes);
    if (block_bytes_ - block_used_ < size) {
      block_bytes_ = std::max(size, std::min(kBlockBytes, small_bytes_));
      add(memory, block_bytes_, what);
      block_ = buffers_.size() - 1;
      block_used_ = 0;
    }
    const Part part = part_of(buffers_[block_], block_used_, bytes);
    block_used_ += size;
    small_bytes_ -= std::min(size, small_bytes_);
    return part;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kOwnBytes = uint64_t{1} << 20, kBlockBytes = uint64_t{16} << 20;

  const Buffer& add(Memory& memory, uint64_t bytes, const char* what) {
    buffers_.push_back(memory.buffer(bytes, MemoryKind::device, what));
    bytes_ += bytes;
    return buffers_.back();
  }

  const uint64_t alignment_;
  std::vector<Buffer> buffers_;
  size_t block_ = 0;  // where small tensors go
  uint64_t block_bytes_ = 0, block_used_ = 0, small_bytes_ = 0, bytes_ = 0;
};

}  // namespace pumice::engine
