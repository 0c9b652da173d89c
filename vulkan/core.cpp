// SPDX-License-Identifier: Apache-2.0
#include "vulkan/core.h"

#include <unistd.h>

#include "base/log.h"
#include "vulkan/allocator.h"
#include "vulkan/device_features.h"
#include "vulkan/driver_bugs.h"

namespace pumice::engine {
namespace {

// ns, for what did not come in time, before its objects are given back. A CPU driver compiles a kernel when it runs for
// the first time.
constexpr uint64_t kLastWait = 2'000'000'000, kCpuLastWait = 30 * kLastWait;

}  // namespace

std::shared_ptr<Core> create_core(std::shared_ptr<Instance> instance, const Physical& physical,
                                  const std::string& features) {
  auto core = std::make_shared<Core>();
  core->instance = std::move(instance);
  core->physical = physical;
  core->process = getpid();
  core->features = pumice::engine::apply(physical.info.features, off_for_bugs(physical.info) + features);
  if (core->features.subgroup_size != physical.info.features.subgroup_size) {
    core->required_subgroup = core->features.subgroup_size;
  }
  core->vk = core->instance->vk;
  core->vk.device = physical.info.name + " (" + physical.info.driver + " " + physical.info.driver_version + ")";
  core->device = create_device(core->vk, physical, core->features);
  load_device(core->vk, core->device);
  create_allocator(*core);
  return core;
}

Core::~Core() {
  if (device == nullptr) return;
  if (must_leak()) {
    new std::shared_ptr<Instance>(instance);  // an instance may not end before its devices
    return;
  }
  command_pools.destroy(*this);
  if (allocator != nullptr) vmaDestroyAllocator(allocator);
  if (vk.DestroyDevice) vk.DestroyDevice(device, nullptr);
}

uint64_t Core::last_wait_ns() const {
  return physical.info.features.cpu ? kCpuLastWait : kLastWait;
}

bool Core::must_leak() noexcept {
  if (process != getpid()) return true;
  if (!any_hung_ || abandoned) return abandoned;
  std::lock_guard lock(hung_mutex_);
  // After the loss of the device nothing is in use any more.
  while (!hung_.empty() && !abandoned) {
    const auto [fence, owned] = hung_.back();
    const VkResult result = vk.WaitForFences(device, 1, &fence, VK_TRUE, last_wait_ns());
    if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST) {
      log(LogLevel::warning, "%s does not finish its work; what it may still use is not given back", vk.device.c_str());
      abandoned = true;
    } else {
      if (owned) vk.DestroyFence(device, fence, nullptr);
      hung_.pop_back();
    }
  }
  any_hung_ = !hung_.empty();
  return abandoned;
}

void Core::count(size_t kind, uint64_t bytes) noexcept {
  const uint64_t now = allocated[kind] += bytes;
  if (kind != 0) return;
  for (uint64_t most = most_device_bytes; now > most && !most_device_bytes.compare_exchange_weak(most, now);) {
  }
}

void Core::came(VkFence fence) noexcept {
  if (!any_hung_) return;
  std::lock_guard lock(hung_mutex_);
  std::erase_if(hung_, [&](const auto& each) { return each.first == fence; });
  any_hung_ = !hung_.empty();
}

void Core::hang(VkFence fence, bool owned) noexcept try {
  std::lock_guard lock(hung_mutex_);
  for (const auto& [known, ours] : hung_) {
    if (known == fence) return;
  }
  hung_.emplace_back(fence, owned);
  any_hung_ = true;
} catch (...) {  // no memory for the note
  abandoned = true;
}

}  // namespace pumice::engine
