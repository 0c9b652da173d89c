// SPDX-License-Identifier: Apache-2.0
// The process's Vulkan instance: loader, driver of the developer's checkout, validation layers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "vulkan/functions.h"

namespace pumice::engine {

struct Instance {
  Vk vk;
  VkInstance handle = nullptr;
  VkDebugUtilsMessengerEXT messenger = nullptr;
  uint32_t api_version = VK_API_VERSION_1_1;  // the highest version that the engine uses
  int process = 0;                            // getpid() at creation; a forked child needs its own
  Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();
};

// Made at first use and kept until the process ends (making one takes up to 0.4 s). Null with no loader; throws
// DeviceUnsupported or OutOfHostMemory when there is a loader that makes no instance.
std::shared_ptr<Instance> get_instance(std::string* why = nullptr);
// The next get_instance makes a new one; the old one ends with its last device.
void forget_instance();

// The number of messages of the validation layer in this process. PUMICE_VALIDATE=1 turns on its core and
// synchronization checks, PUMICE_VALIDATE=bounds its GPU-assisted check of each access against its binding alone. Each
// message goes to the log, too.
uint64_t validation_messages();

}  // namespace pumice::engine
