// SPDX-License-Identifier: Apache-2.0
// Submitting recorded commands and waiting for them. Private to vulkan/.
#pragma once

#include <array>
#include <mutex>
#include <span>
#include <vector>

#include "vulkan/core.h"

namespace pumice::engine {

// What is between submit and wait.
struct Submit {
  VkFence fence = VK_NULL_HANDLE;
  bool pending = false;
  bool is_long = false;  // the last one took longer than polling is worth
};

// Recorded command buffers, which run one after another, and what their submits need: two can be under way.
struct Recording {
  std::vector<VkCommandBuffer> parts;
  std::array<Submit, 2> submits;
};

// The device's compute queue; locked inside.
class Queue {
 public:
  explicit Queue(Core& core);
  // Returns at once; `submit.pending` until came() returned true.
  void submit(Submit& submit, std::span<const VkCommandBuffer> commands);
  // Whether the device was done with it within `ns`. Throws DeviceLost.
  bool came(Submit& submit, uint64_t ns);
  // It did not come in time: the device counts as lost.
  void give_up(const Submit& submit) noexcept;
  // All parts in one submit, and a wait that loses the device when `timeout_ns` is over; 0: as for Run.
  void submit(Recording& recording) { submit(recording.submits[0], recording.parts); }
  void wait(Recording& recording, uint64_t timeout_ns = 0);
  uint64_t timeout(uint64_t given_ns) const;
  Core& core() const { return core_; }

 private:
  void spin(const Submit& submit) const;
  // After an error that leaves it open what the device does: no more submits, and a bounded wait until the queue rests.
  void lose() noexcept;

  Core& core_;
  VkQueue queue_ = nullptr;
  std::mutex mutex_;
};

}  // namespace pumice::engine
