// SPDX-License-Identifier: Apache-2.0
#define VOLK_IMPLEMENTATION
#include <volk.h>

#include "vulkan/loader.h"

namespace pumice::engine {

PFN_vkGetInstanceProcAddr system_vulkan_loader() {
  return volkInitialize() == VK_SUCCESS ? vkGetInstanceProcAddr : nullptr;
}

}  // namespace pumice::engine
