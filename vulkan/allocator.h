// SPDX-License-Identifier: Apache-2.0
// The VulkanMemoryAllocator of a device. Private to vulkan/.
#pragma once

#include <string>

#include "vulkan/core.h"

namespace pumice::engine {

inline constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
inline constexpr VkMemoryPropertyFlags kVisible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
inline constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

// Sets core.allocator and core.unified.
void create_allocator(Core& core);
// Throws OutOfDeviceMemory or the code of `result`, with the call, `object` and how much device memory is in use.
[[noreturn]] void refuse_memory(const Core& core, VkResult result, const char* call, const char* what,
                                const std::string& object);

}  // namespace pumice::engine
