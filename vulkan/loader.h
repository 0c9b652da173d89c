// SPDX-License-Identifier: Apache-2.0
// The Vulkan loader of the system, found through volk, which has its file names on every platform.
#pragma once

#include "vulkan/functions.h"

namespace pumice::engine {

// Null where none is installed.
PFN_vkGetInstanceProcAddr system_vulkan_loader();

}  // namespace pumice::engine
