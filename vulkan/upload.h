// SPDX-License-Identifier: Apache-2.0
// The ring of buffers through which constants are copied to the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "vulkan/device.h"
#include "vulkan/memory.h"

namespace pumice::engine {

// Streams host bytes into device buffers through a ring of upload buffers (chunks). The host fills one chunk, on
// several threads, while the device copies out of earlier ones. Usage: put(...) any number of times, then flush(); put
// may wait for a chunk. The targets of puts between two flushes do not overlap.
class Uploader {
 public:
  explicit Uploader(std::shared_ptr<Device> device, uint64_t chunk_bytes = 8ull << 20, uint32_t chunks = 4);
  ~Uploader();
  // Converts elements during the copy (i64 -> i32), on several threads at once. What `function` throws, put throws.
  struct Conversion {
    uint32_t in_bytes, out_bytes;  // of one element
    std::function<void(std::byte* out, const std::byte* in, size_t count)> function;
  };
  // Before the first put: so many bytes will come, in pieces padded to 16. Chunks need not be larger.
  void expect(uint64_t bytes);
  void put(std::span<const std::byte> source, Slice target);
  void put(std::span<const std::byte> source, Slice target, const Conversion& conversion);
  void fill_zero(Slice target);
  void submit();  // submits the copies of everything put so far: a later Device::run sees it
  void flush();   // everything put so far is on the device when it returns
  // After an error: the device is done with what was submitted, or lost. What was only put is dropped.
  void wait() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
