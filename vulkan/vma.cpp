// SPDX-License-Identifier: Apache-2.0
// The one translation unit that holds the bodies of volk and VulkanMemoryAllocator: slow to compile, never changed.
#define VOLK_IMPLEMENTATION
#include <volk.h>

#define VMA_IMPLEMENTATION
#include "vulkan/vma.h"

namespace pumice::engine {

PFN_vkGetInstanceProcAddr system_vulkan_loader();

PFN_vkGetInstanceProcAddr system_vulkan_loader() {
  return volkInitialize() == VK_SUCCESS ? vkGetInstanceProcAddr : nullptr;
}

}  // namespace pumice::engine
