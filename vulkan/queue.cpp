// SPDX-License-Identifier: Apache-2.0
#include "vulkan/queue.h"

#include <unistd.h>

#include <chrono>
#include <vector>

namespace pumice::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kSpin{2};
constexpr uint64_t kTimeout = 60'000'000'000;
// A CPU driver compiles a kernel when it runs for the first time, whatever kernels `like_gpu` gives it.
constexpr uint64_t kCpuTimeout = 10 * kTimeout;

[[noreturn]] void refuse_lost(const Core& core, const char* why) {
  fail(Code::DeviceLost, Stage::execute, "device", "%s is lost (%s); load the program again to go on on a new device",
       core.vk.device.c_str(), why);
}

}  // namespace

Queue::Queue(Core& core) : core_(core) {
  core.vk.GetDeviceQueue(core.device, core.physical.queue_family, 0, &queue_);
}

void Queue::submit(Submit& submit, std::span<const VkCommandBuffer> commands) {
  if (core_.process != getpid()) {
    fail(Code::WrongState, Stage::execute, "device",
         "the device was opened by process %d and a forked child cannot use it; load the program in the child",
         core_.process);
  }
  if (core_.lost) refuse_lost(core_, "since an earlier call");
  if (submit.pending) fail(Code::Busy, Stage::execute, "commands", "the command buffer already runs");
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = static_cast<uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  VkResult result;
  {
    std::lock_guard lock(mutex_);
    result = core_.vk.QueueSubmit(queue_, 1, &info, submit.fence);
  }
  if (result == VK_ERROR_DEVICE_LOST) lose();
  must(result, "vkQueueSubmit", "commands", Stage::execute, core_.vk);
  submit.pending = true;
}

// Polls the fence for a short while, as a sleeping thread wakes 15 to 25 us late (H200, driver 580.159). Not on a CPU
// driver, whose work it would slow; not on other kinds than discrete GPUs, which may run on a battery; and not where
// the last run took longer than the polling.
void Queue::spin(const Submit& submit) const {
  if (submit.is_long || core_.physical.type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) return;
  const auto end = Clock::now() + kSpin;
  while (core_.vk.GetFenceStatus(core_.device, submit.fence) == VK_NOT_READY && Clock::now() < end) continue;
}

// vkDeviceWaitIdle and vkQueueWaitIdle have no limit, and drivers were seen to stay in them after a loss. An empty
// submit comes after all others of the queue, and its fence can be waited for with a limit.
void Queue::lose() noexcept {
  core_.lost = true;
  const Vk& vk = core_.vk;
  const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
  VkFence fence = VK_NULL_HANDLE;
  if (vk.CreateFence(core_.device, &info, nullptr, &fence) != VK_SUCCESS) {
    core_.abandoned = true;
    return;
  }
  VkResult result;
  {
    std::lock_guard lock(mutex_);
    result = vk.QueueSubmit(queue_, 0, nullptr, fence);
  }
  if (result == VK_SUCCESS) {
    core_.hang(fence, true);
    core_.must_leak();  // waits
  } else {
    if (result != VK_ERROR_DEVICE_LOST) core_.abandoned = true;
    vk.DestroyFence(core_.device, fence, nullptr);
  }
}

uint64_t Queue::timeout(uint64_t given_ns) const {
  return given_ns != 0 ? given_ns : core_.physical.info.features.cpu ? kCpuTimeout : kTimeout;
}

bool Queue::came(Submit& submit, uint64_t ns) {
  if (!submit.pending) return true;
  const Vk& vk = core_.vk;
  const auto begin = Clock::now();
  if (ns > kSpin.count() * 2'000'000ull) spin(submit);  // the wait below returns an error of it again
  const VkResult result = vk.WaitForFences(core_.device, 1, &submit.fence, VK_TRUE, ns);
  submit.is_long = Clock::now() - begin > kSpin;
  if (result == VK_TIMEOUT) return false;
  if (result != VK_SUCCESS) lose();  // the state of the submit is unknown now
  submit.pending = result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST;
  if (submit.pending) {
    core_.hang(submit.fence);
  } else {
    core_.came(submit.fence);
  }
  must(result, "vkWaitForFences", "commands", Stage::execute, vk);
  const VkResult reset = vk.ResetFences(core_.device, 1, &submit.fence);
  if (reset != VK_SUCCESS) core_.lost = true;  // a fence that stays signalled would end the next wait too early
  must(reset, "vkResetFences", "commands", Stage::execute, vk);
  return true;
}

void Queue::give_up(const Submit& submit) noexcept {
  core_.lost = true;
  core_.hang(submit.fence);
}

void Queue::wait(Recording& recording, uint64_t timeout_ns) {
  timeout_ns = timeout(timeout_ns);
  Submit& submit = recording.submits[0];
  if (came(submit, timeout_ns)) return;
  give_up(submit);
  fail(Code::Timeout, Stage::execute, "commands", "%s did not finish within %llu ms (vkWaitForFences: VK_TIMEOUT)",
       core_.vk.device.c_str(), static_cast<unsigned long long>(timeout_ns / 1'000'000));
}

}  // namespace pumice::engine
