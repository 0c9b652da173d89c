// SPDX-License-Identifier: Apache-2.0
// Commands that are recorded once and submitted many times, with the descriptor sets they use. They are one command
// buffer, or several where they are long: parts, which are submitted one after another.
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

struct Recording;  // vulkan/queue.h

class Commands {
 public:
  explicit Commands(std::shared_ptr<Device> device);
  Commands(Commands&&) noexcept;
  Commands& operator=(Commands&&) noexcept;
  ~Commands();

  // `repeated`: the commands may be submitted several times at once, see Device::run; each waits for the one before.
  void begin(uint32_t num_timestamps = 0, bool repeated = false);
  // Begins the next part.
  void cut();
  void end();

  // `bindings` has shader->num_bindings entries; groups are within Features::max_groups and not zero. `first`: the
  // number of the first workgroup; other than 0 only for a pipeline that was made for it (PipelineKey::in_pieces).
  void dispatch(const Pipeline& pipeline, std::span<const Slice> bindings, std::span<const std::byte> push,
                std::array<uint32_t, 3> groups, std::array<uint32_t, 3> first = {0, 0, 0});
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

  Recording& submission() const;
  Recording& recorded() const;  // throws WrongState unless end() was the last call

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
