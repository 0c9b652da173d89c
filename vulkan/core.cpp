// SPDX-License-Identifier: Apache-2.0
#include "vulkan/core.h"

#include <unistd.h>

#include "base/log.h"
#include "vulkan/allocator.h"
#include "vulkan/device_features.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kLastWait = 2'000'000'000;  // ns, for a submit that timed out, before its objects are given back

}  // namespace

std::shared_ptr<Core> create_core(std::shared_ptr<Instance> instance, const Physical& physical,
                                  const std::string& features) {
  auto core = std::make_shared<Core>();
  core->instance = std::move(instance);
  core->physical = physical;
  core->process = getpid();
  core->features = apply(physical.info.features, features);
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
  if (allocator != nullptr) vmaDestroyAllocator(allocator);
  if (vk.DestroyDevice) vk.DestroyDevice(device, nullptr);
}

bool Core::must_leak() noexcept {
  if (process != getpid()) return true;
  const VkFence fence = hung.load();
  if (fence == VK_NULL_HANDLE || abandoned.load()) return abandoned;
  const VkResult result = vk.WaitForFences(device, 1, &fence, VK_TRUE, kLastWait);
  if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST) {
    hung = VK_NULL_HANDLE;
    return false;
  }
  log(LogLevel::warning, "%s does not finish its work; what it may still use is not given back", vk.device.c_str());
  abandoned = true;
  return true;
}

void Core::declare_lost() noexcept {
  lost = true;
  if (vk.DeviceWaitIdle(device) == VK_SUCCESS)
    log(LogLevel::debug, "%s came to rest after an error", vk.device.c_str());
}

}  // namespace pumice::engine
