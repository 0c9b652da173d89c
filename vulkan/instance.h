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
  uint32_t api_version = VK_API_VERSION_1_1;  // what the engine may use of a device at most
  int process = 0;                            // getpid() of the maker; a forked child needs its own
  Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();
};

// Made at first use and kept until the process ends (making one takes up to 0.4 s). Null with no loader; throws
// DeviceUnsupported or OutOfHostMemory when there is a loader and no instance comes of it.
std::shared_ptr<Instance> get_instance(std::string* why = nullptr);
// The next get_instance makes a new one; the old one ends with its last device.
void forget_instance();

// Messages of the validation layer so far in this process (PUMICE_VALIDATE=1 turns it on: core and synchronization
// checks; each message goes to the log too).
uint64_t validation_messages();

}  // namespace pumice::engine
