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

// Where tensors lie, in which buffers: numbers alone, so that a copy tells what will be allocated.
class Placement {
 public:
  explicit Placement(uint64_t alignment) : alignment_(alignment) {}

  struct Place {
    uint64_t new_buffer;  // bytes of a buffer to be made for it; 0: it lies in the one that small tensors share now
    uint64_t offset;
    bool shares;  // others may come after it in the buffer
  };

  // Announces a tensor, so that a shared buffer is no larger than what is still to come.
  void expect(uint64_t bytes) {
    const uint64_t size = padded(bytes, alignment_);
    if (size < kOwnBytes) small_bytes_ += size;
  }
  Place place(uint64_t bytes) {
    const uint64_t size = padded(bytes, alignment_);
    if (size >= kOwnBytes) return made({size, 0, false});
    const bool fits = shared_bytes_ - shared_used_ >= size;
    if (!fits) {
      shared_bytes_ = std::max(size, std::min(kSharedBytes, small_bytes_));
      shared_used_ = 0;
    }
    const uint64_t offset = shared_used_;
    shared_used_ += size;
    small_bytes_ -= std::min(size, small_bytes_);
    return made({fits ? 0 : shared_bytes_, offset, true});
  }
  uint64_t bytes() const { return bytes_; }  // of all buffers so far

 private:
  static constexpr uint64_t kOwnBytes = uint64_t{1} << 20, kSharedBytes = uint64_t{16} << 20;

  Place made(Place place) {
    bytes_ += place.new_buffer;
    return place;
  }

  uint64_t alignment_;
  uint64_t shared_bytes_ = 0, shared_used_ = 0, small_bytes_ = 0, bytes_ = 0;
};

class Suballocator {
 public:
  explicit Suballocator(uint64_t alignment) : placement_(alignment) {}

  void expect(uint64_t bytes) { placement_.expect(bytes); }
  Allocation allocate(Memory& memory, uint64_t bytes, const char* what) {
    const Placement::Place place = placement_.place(bytes);
    if (place.new_buffer > 0) {
      buffers_.push_back(memory.buffer(place.new_buffer, MemoryKind::device, what));
      if (place.shares) shared_ = buffers_.size() - 1;
    }
    return allocation_of(place.shares ? buffers_[shared_] : buffers_.back(), place.offset, bytes);
  }
  const Placement& placement() const { return placement_; }

 private:
  Placement placement_;
  std::vector<Buffer> buffers_;
  size_t shared_ = 0;  // the buffer in which small tensors are allocated now
};

}  // namespace pumice::engine
