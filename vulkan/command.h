// SPDX-License-Identifier: Apache-2.0
// A command buffer that is recorded once and submitted many times, with the descriptor sets it uses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vulkan/device.h"
#include "vulkan/memory.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

struct Submit;  // vulkan/queue.h

class Commands {
 public:
  explicit Commands(std::shared_ptr<Device> device);
  Commands(Commands&&) noexcept;
  Commands& operator=(Commands&&) noexcept;
  ~Commands();

  // `repeated`: the commands may be submitted several times at once, see Device::run; each waits for the one before.
  void begin(uint32_t num_timestamps = 0, bool repeated = false);
  void end();

  // `bindings` has shader->num_bindings entries; groups are within Features::max_groups and not zero.
  void dispatch(const Pipeline& pipeline, std::span<const Slice> bindings, std::span<const std::byte> push,
                std::array<uint32_t, 3> groups);
  void copy(Slice from, Slice to);              // to.bytes bytes
  void discard(std::span<const Image> images);  // before their first use; their contents are lost
  void fill(Slice target, uint32_t word);
  // Kernels and copies before -> kernels and copies after, all memory.
  void barrier();
  // Kernels and copies before -> the host reading mapped memory after the wait.
  void host_barrier();
  void timestamp(uint32_t index);
  std::vector<double> timestamps_us() const;  // after a run: microseconds, relative to the first

  // ---- for vulkan/ alone ----

  Submit& submission() const;
  Submit& recorded() const;  // throws WrongState unless end() was the last call

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
