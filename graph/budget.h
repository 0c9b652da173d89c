// SPDX-License-Identifier: Apache-2.0
// What a file may take of a device. Its need is reckoned before anything is allocated for it.
#pragma once

#include <cstdint>
#include <string>

#include "vulkan/device.h"

namespace pumice::engine {

struct Budget {
  uint64_t max_memory = 0;  // bytes on the device, of a model and one session; 0: 80 % of the device's memory
  double max_seconds = 0;   // of a load, and of preparing a run for new shapes; 0: kMaxSeconds
};

inline constexpr double kMaxSeconds = 60;

// The budget with its defaults filled in. On a device that uses the host's memory (a CPU driver, an integrated GPU) the
// default is also within 80 % of what the process may use.
Budget effective(const Budget& budget, const DeviceInfo& device);

// Bytes on the device, as the allocations themselves count. Not in it: the driver's own, recorded commands, pipelines,
// and the upload ring of a device that the host does not see (at most 32 MiB, in the host's memory).
struct MemoryNeed {
  uint64_t weights = 0;          // in buffers, packed ones and raw ones
  uint64_t weight_textures = 0;  // in images
  uint64_t loading = 0;          // the most while weights are packed, which the constants to be packed raise
  uint64_t states = 0;
  uint64_t arena = 0;  // of values, at the shapes at hand
  uint64_t textures = 0;
  uint64_t io = 0;  // staging of inputs and outputs, status, what merged kernels hand over

  uint64_t running() const { return weights + weight_textures + states + arena + textures + io; }
  uint64_t total() const { return loading > running() ? loading : running(); }
  std::string text() const;  // "weights 8 bytes, states 16 bytes"; what is 0 is left out
};

// Throws LimitExceeded where the need is beyond the budget.
void require_memory(const MemoryNeed& need, const Budget& budget);

inline constexpr uint64_t kMostPipelines = 4096;  // that one file may ask for, at one shape of each method

}  // namespace pumice::engine
