// SPDX-License-Identifier: Apache-2.0
// The part of a device that lives until its last buffer is gone, and what the other parts need of it. Private to
// vulkan/.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "vulkan/command_pools.h"
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
  CommandPools command_pools;
  int process = 0;
  std::atomic<bool> lost{false};

  std::atomic<bool> abandoned{false};

  Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  // True when objects must be leaked rather than destroyed: in a forked child (the driver's threads are not there), or
  // when the device still works on a submit after a last short wait.
  bool must_leak() noexcept;
  // A submit whose fence did not come in time. Until all such fences have come, nothing that the device may still use
  // is given back. `owned`: the fence is destroyed then. Twice the same fence counts once.
  void hang(VkFence fence, bool owned = false) noexcept;
  uint64_t last_wait_ns() const;      // how long it is waited for then
  void came(VkFence fence) noexcept;  // it came after all, in a later wait; it may be reset now

  // Allocated now, by MemoryKind.
  std::atomic<uint64_t> allocated[4] = {};
  std::atomic<uint64_t> most_device_bytes{0};  // at once
  void count(size_t kind, uint64_t bytes) noexcept;
  bool unified = false, host_sees_device = false;  // as in Memory
  std::mutex mapped_mutex;
  std::map<VkBuffer, std::byte*> mapped;  // device buffers that the host sees

 private:
  std::mutex hung_mutex_;
  std::vector<std::pair<VkFence, bool>> hung_;
  std::atomic<bool> any_hung_{false};
};

// `features` as for apply().
std::shared_ptr<Core> create_core(std::shared_ptr<Instance> instance, const Physical& physical,
                                  const std::string& features);

}  // namespace pumice::engine
