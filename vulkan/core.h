// SPDX-License-Identifier: Apache-2.0
// Inside of the runtime: the part of a device that lives until its last buffer is gone, and what the other parts need
// of it.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "vulkan/memory.h"
#include "vulkan/physical.h"
#include "vulkan/pipeline.h"
#include "vulkan/vma.h"

namespace pumice::engine {

struct Core {
  std::shared_ptr<Instance> instance;
  Physical physical;
  Features features;               // what is enabled
  uint32_t required_subgroup = 0;  // by "subgroup=N": pipelines that ask for nothing get this
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
  // After a call that answered with a loss. A lost device is idle at once; whatever still works is waited for.
  void declare_lost() noexcept;

  // Allocated now, by MemoryKind.
  std::atomic<uint64_t> allocated[3] = {};
  bool unified = false;
  std::mutex mapped_mutex;
  std::map<VkBuffer, std::byte*> mapped;  // device buffers that the host sees
};

// One recorded command buffer on its way.
struct Submit {
  VkCommandBuffer commands = nullptr;
  VkFence fence = VK_NULL_HANDLE;
  bool pending = false;
  bool is_long = false;  // the last run was not worth spinning for
};

struct Memory::Impl {
  std::shared_ptr<Core> core;
};

struct Device::Impl {
  std::shared_ptr<Core> core;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Pipelines> pipelines;
  VkQueue queue = nullptr;
  std::mutex queue_mutex;

  void submit(Submit& submit);                         // returns at once; `submit.pending` until wait() returned
  void wait(Submit& submit, uint64_t timeout_ns = 0);  // as Device::run
  void spin(const Submit& submit) const;
};

// memory.cpp
void create_allocator(Core& core);
[[noreturn]] void refuse_memory(const Core& core, VkResult result, const char* call, const char* what,
                                const std::string& object);
// runnable.cpp: throws DeviceUnsupported with what is missing.
void require_runnable(const Core& core, const PipelineKey& key);
constexpr VkDescriptorType descriptor_type(Binding kind) {
  return kind == Binding::buffer    ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
         : kind == Binding::texture ? VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE
                                    : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
}
// pipeline.cpp
std::unique_ptr<Pipelines> create_pipelines(std::shared_ptr<Core> core, const std::string& cache_dir);

}  // namespace pumice::engine
