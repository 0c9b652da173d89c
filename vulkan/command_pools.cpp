// SPDX-License-Identifier: Apache-2.0
#include "vulkan/command_pools.h"

#include <utility>

#include "vulkan/core.h"

namespace pumice::engine {
namespace {

constexpr size_t kMost = 16;  // as many as threads that load a model have

void free(const Core& core, const CommandPool& pool) noexcept {
  for (const VkFence fence : pool.fences) core.vk.DestroyFence(core.device, fence, nullptr);
  core.vk.DestroyCommandPool(core.device, pool.handle, nullptr);
}

}  // namespace

CommandPool CommandPools::take(const Core& core) {
  {
    std::lock_guard lock(mutex_);
    if (!kept_.empty()) {
      CommandPool pool = std::move(kept_.back());
      kept_.pop_back();
      return pool;
    }
  }
  CommandPool pool;
  try {
    VkCommandPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    info.queueFamilyIndex = core.physical.queue_family;
    VK(core.vk, Stage::encode, "commands", CreateCommandPool, core.device, &info, nullptr, &pool.handle);
    for (VkFence& each : pool.fences) {
      VkFenceCreateInfo fence{};
      fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
      VK(core.vk, Stage::encode, "commands", CreateFence, core.device, &fence, nullptr, &each);
    }
  } catch (...) {
    free(core, pool);
    throw;
  }
  return pool;
}

// Long recordings are not kept, as their pools hold as much memory.
void CommandPools::give(const Core& core, CommandPool&& pool, bool usable) noexcept {
  try {
    std::lock_guard lock(mutex_);
    if (usable && !core.lost && pool.buffers.size() <= 1 && kept_.size() < kMost) {
      kept_.push_back(std::move(pool));
      return;
    }
  } catch (...) {  // no memory for the note
  }
  free(core, pool);
}

void CommandPools::destroy(const Core& core) noexcept {
  for (const CommandPool& pool : kept_) free(core, pool);
  kept_.clear();
}

}  // namespace pumice::engine
