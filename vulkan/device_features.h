// SPDX-License-Identifier: Apache-2.0
// Optional features: read from a physical device, and enabled on a logical one, through one table. Private to vulkan/.
#pragma once

#include "vulkan/physical.h"

namespace pumice::engine {

// Sets the optional features and the subgroup sizes of out.info.features.
void read_features(const Vk& vk, const Extensions& extensions, const VkPhysicalDeviceSubgroupProperties& subgroup,
                   const VkPhysicalDeviceSubgroupSizeControlProperties& control, Physical& out);

// Creates the logical device with one queue and exactly what `features` has.
VkDevice create_device(const Vk& vk, const Physical& physical, const Features& features);

}  // namespace pumice::engine
