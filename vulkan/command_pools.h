// SPDX-License-Identifier: Apache-2.0
// Command pools of a device, each with its first command buffer and the fences of a recording. A driver may take half a
// millisecond to make one and as long to free it, one at a time (H200, driver 580.159): those that are given back are
// kept for the next recordings. Private to vulkan/.
#pragma once

#include <array>
#include <mutex>
#include <vector>

#include "vulkan/physical.h"

namespace pumice::engine {

struct Core;  // vulkan/core.h

struct CommandPool {
  VkCommandPool handle = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> buffers;
  std::array<VkFence, 2> fences = {};
};

class CommandPools {
 public:
  // The caller resets it before it records.
  CommandPool take(const Core& core);
  // Of a pool that the device is done with; `usable`: its fences are as they were made.
  void give(const Core& core, CommandPool&& pool, bool usable) noexcept;
  void destroy(const Core& core) noexcept;  // those that are kept

 private:
  std::mutex mutex_;
  std::vector<CommandPool> kept_;
};

}  // namespace pumice::engine
