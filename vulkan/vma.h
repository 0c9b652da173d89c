// SPDX-License-Identifier: Apache-2.0
// VulkanMemoryAllocator as Pumice configures it: Vulkan 1.1, every function handed over from the seam.
#pragma once

#include "vulkan/functions.h"

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#define VMA_VULKAN_VERSION 1001000
#define VMA_STATS_STRING_ENABLED 0

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wnullability-completeness"
#pragma GCC diagnostic ignored "-Wunused-private-field"
#endif
#include <vk_mem_alloc.h>
#pragma GCC diagnostic pop
