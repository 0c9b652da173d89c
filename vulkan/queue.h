// SPDX-License-Identifier: Apache-2.0
// Submitting recorded commands and waiting for them. Private to vulkan/.
#pragma once

#include <mutex>

#include "vulkan/core.h"

namespace pumice::engine {

// A recorded command buffer between submit and wait.
struct Submit {
  VkCommandBuffer commands = nullptr;
  VkFence fence = VK_NULL_HANDLE;
  bool pending = false;
  bool is_long = false;  // the last run took longer than polling is worth
};

// The device's compute queue; locked inside.
class Queue {
 public:
  explicit Queue(Core& core);
  // Returns at once; `submit.pending` until wait() returned. `times`: how often the commands run, one after another;
  // `first`, where it is there, runs once before them.
  void submit(Submit& submit, uint32_t times = 1, VkCommandBuffer first = VK_NULL_HANDLE);
  void wait(Submit& submit, uint64_t timeout_ns = 0);  // errors and timeout as for Device::run

 private:
  void spin(const Submit& submit) const;
  // After an error that leaves it open what the device does: no more submits, and a bounded wait until the queue rests.
  void lose() noexcept;

  Core& core_;
  VkQueue queue_ = nullptr;
  std::mutex mutex_;
};

}  // namespace pumice::engine
