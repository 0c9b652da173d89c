// SPDX-License-Identifier: Apache-2.0
// The part of a device that lives until its last buffer is gone, and what the other parts need of it. Private to
// vulkan/.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "vulkan/physical.h"
#include "vulkan/vma.h"

namespace pumice::engine {

struct Core {
  std::shared_ptr<Instance> instance;
  Physical physical;
  Features features;               // what is enabled
  uint32_t required_subgroup = 0;  // by "subgroup=N": pipelines that ask for no size get this one
  Vk vk;
  VkDevice device = nullptr;
  VmaAllocator allocator = nullptr;
  int process = 0;
  std::atomic<bool> lost{false};

  // A submit whose fence did not come in time. Until it does, nothing that the device may still use is given back.
  std::atomic<VkFence> hung{VK_NULL_HANDLE};
  std::atomic<bool> abandoned{false};

  Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  // True when objects must be leaked rather than destroyed: in a forked child (the driver's threads are not there), or
  // when the device still works on a submit after a last short wait.
  bool must_leak() noexcept;
  // After a call that returned a loss. A lost device is idle at once; work that still runs is waited for.
  void declare_lost() noexcept;

  // Allocated now, by MemoryKind.
  std::atomic<uint64_t> allocated[3] = {};
  bool unified = false;  // as Memory::unified
  std::mutex mapped_mutex;
  std::map<VkBuffer, std::byte*> mapped;  // device buffers that the host sees
};

// `features` as for apply().
std::shared_ptr<Core> create_core(std::shared_ptr<Instance> instance, const Physical& physical,
                                  const std::string& features);

}  // namespace pumice::engine
