// SPDX-License-Identifier: Apache-2.0
#include "vulkan/device.h"

#include <unistd.h>

#include <chrono>

#include "base/log.h"
#include "vulkan/command_impl.h"
#include "vulkan/core.h"
#include "vulkan/probe.h"

namespace pumice::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kSpin{2};
constexpr uint64_t kTimeout = 60'000'000'000;
constexpr uint64_t kCpuTimeout = 10 * kTimeout;  // a CPU driver compiles a kernel when it runs for the first time
constexpr uint64_t kLastWait =
    2'000'000'000;  // ns, for a submit that timed out before, when its objects are given back

[[noreturn]] void lost(const Core& core, const char* why) {
  fail(Code::DeviceLost, Stage::execute, "device", "%s is lost (%s); load the program again to go on on a new device",
       core.vk.device.c_str(), why);
}

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

}  // namespace

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

Device::Device(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Device::~Device() = default;

const DeviceInfo& Device::info() const {
  return impl_->core->physical.info;
}
const Features& Device::features() const {
  return impl_->core->features;
}
const Vk& Device::vk() const {
  return impl_->core->vk;
}
Memory& Device::memory() {
  return *impl_->memory;
}
Pipelines& Device::pipelines() {
  return *impl_->pipelines;
}
bool Device::is_lost() const {
  return impl_->core->lost;
}

void Device::run(const Commands& commands, uint64_t timeout_ns) {
  Submit& submit = commands.impl().submit;
  if (commands.impl().state != Commands::Impl::State::recorded) {
    fail(Code::WrongState, Stage::execute, "commands", "the command buffer is not recorded to its end");
  }
  impl_->submit(submit);
  impl_->wait(submit, timeout_ns);
}

void Device::Impl::submit(Submit& submit) {
  if (core->process != getpid()) {
    fail(Code::WrongState, Stage::execute, "device",
         "the device was opened by process %d and a forked child cannot use it; load the program in the child",
         core->process);
  }
  if (core->lost) lost(*core, "since an earlier call");
  if (submit.pending) fail(Code::Busy, Stage::execute, "commands", "the command buffer is already on its way");
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &submit.commands;
  VkResult result;
  {
    std::lock_guard lock(queue_mutex);
    result = core->vk.QueueSubmit(queue, 1, &info, submit.fence);
  }
  if (result == VK_ERROR_DEVICE_LOST) core->declare_lost();
  must(result, "vkQueueSubmit", "commands", Stage::execute, core->vk);
  submit.pending = true;
}

// Asks again and again for a short while, as a sleeping thread wakes 15 to 25 us late (H200, driver 580.159). Not on a
// CPU driver, whose work it would slow, nor with a battery likely, nor where the last run says that it is not worth it.
void Device::Impl::spin(const Submit& submit) const {
  if (submit.is_long || core->physical.type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) return;
  const auto end = Clock::now() + kSpin;
  while (core->vk.GetFenceStatus(core->device, submit.fence) == VK_NOT_READY && Clock::now() < end) continue;
}

void Device::Impl::wait(Submit& submit, uint64_t timeout_ns) {
  if (!submit.pending) return;
  const Vk& vk = core->vk;
  const auto begin = Clock::now();
  if (timeout_ns == 0) timeout_ns = core->features.cpu ? kCpuTimeout : kTimeout;
  if (timeout_ns > kSpin.count() * 2'000'000ull) spin(submit);  // an error is met again below
  const VkResult result = vk.WaitForFences(core->device, 1, &submit.fence, VK_TRUE, timeout_ns);
  submit.is_long = Clock::now() - begin > kSpin;
  if (result == VK_TIMEOUT) {
    core->lost = true;
    core->hung = submit.fence;
    fail(Code::Timeout, Stage::execute, "commands", "%s did not finish within %llu ms (vkWaitForFences: VK_TIMEOUT)",
         vk.device.c_str(), static_cast<unsigned long long>(timeout_ns / 1'000'000));
  }
  if (result != VK_SUCCESS) core->declare_lost();  // nothing is known of the submit any more
  submit.pending = result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST;
  if (submit.pending) core->hung = submit.fence;
  must(result, "vkWaitForFences", "commands", Stage::execute, vk);
  const VkResult reset = vk.ResetFences(core->device, 1, &submit.fence);
  if (reset != VK_SUCCESS) core->lost = true;  // a fence that stays signalled would end the next wait too early
  must(reset, "vkResetFences", "commands", Stage::execute, vk);
}

std::shared_ptr<Device> Device::create(std::shared_ptr<Instance> instance, const Physical& physical,
                                       const std::string& features, const std::string& cache_dir) {
  auto impl = std::make_unique<Impl>();
  impl->core = create_core(std::move(instance), physical, features);
  const Core& core = *impl->core;
  core.vk.GetDeviceQueue(core.device, physical.queue_family, 0, &impl->queue);
  auto memory = std::make_unique<Memory::Impl>();
  memory->core = impl->core;
  impl->memory = std::make_unique<Memory>(std::move(memory));
  impl->pipelines = create_pipelines(impl->core, cache_dir);
  std::shared_ptr<Device> device(new Device(std::move(impl)));
  uint64_t& bits = device->impl().core->features.bits;
  // What the probe itself needs may be switched off.
  const Features& found = device->features();
  if (!found.has(Feature::fragments) || !may_have_fragments(found) || !has_fragments(device))
    bits &= ~bit(Feature::fragments);
  return device;
}

}  // namespace pumice::engine
