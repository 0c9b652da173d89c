// SPDX-License-Identifier: Apache-2.0
// Small copies between host and device, one submit each. Commands and buffers are kept from one to the next: a driver
// of a GPU takes a millisecond to make them.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "tools/kernel_bench/bench_op.h"
#include "vulkan/command.h"

namespace pumice::engine::kernel_bench {

// For one thread.
class Transfers {
 public:
  explicit Transfers(std::shared_ptr<Device> device) : device_(device), commands_(std::move(device)) {}

  // Submits what `record` records, and waits for it.
  void run(const std::function<void(Commands&)>& record);
  // The bytes of all slices, one after the other. Where a slice has no bytes, nothing.
  Bytes read(std::span<const Slice> slices);
  // Memory that the host reads after a run, valid until the next call of download() or read(); and that it writes
  // before one, valid until the next call of upload().
  const Buffer& download(uint64_t bytes) { return at_least(bytes, MemoryKind::download, down_); }
  const Buffer& upload(uint64_t bytes) { return at_least(bytes, MemoryKind::upload, up_); }

 private:
  const Buffer& at_least(uint64_t bytes, MemoryKind kind, Buffer& buffer);

  std::shared_ptr<Device> device_;
  Commands commands_;
  Buffer up_, down_;
};

}  // namespace pumice::engine::kernel_bench
