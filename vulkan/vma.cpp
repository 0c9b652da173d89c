// SPDX-License-Identifier: Apache-2.0
// The bodies of VulkanMemoryAllocator: slow to compile, never changed.
#define VMA_IMPLEMENTATION
#include "vulkan/vma.h"
