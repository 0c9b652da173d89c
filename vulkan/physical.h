// SPDX-License-Identifier: Apache-2.0
// What a physical device is and supports, read before it is opened.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vulkan/device.h"
#include "vulkan/instance.h"

namespace pumice::engine {

struct Physical {
  VkPhysicalDevice handle = nullptr;
  DeviceInfo info;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  uint32_t api_version = 0;  // the smaller one of the device's and the instance's
  uint8_t cache_uuid[VK_UUID_SIZE] = {};
  uint32_t queue_family = ~0u;  // ~0: no compute queue
  uint32_t timestamp_bits = 0;
  double timestamp_period = 1;                // nanoseconds a tick
  bool full_subgroups = false;                // may promise full subgroups together with a required size
  bool memory_budget = false;                 // VK_EXT_memory_budget
  bool pipeline_statistics = false;           // to be asked for, see vulkan/pipeline_log.h
  bool pipeline_robustness = false;           // robust access may be switched off for a pipeline
  std::shared_ptr<const Error> problem = {};  // the driver failed when it was asked: nothing else but name and index
};

struct Extensions {
  std::vector<VkExtensionProperties> list;
  bool has(std::string_view name) const;
};

VkFormat vulkan_format(ImageFormat format);

std::vector<Physical> list_physical(const Instance& instance);

}  // namespace pumice::engine
