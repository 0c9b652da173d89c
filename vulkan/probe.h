// SPDX-License-Identifier: Apache-2.0
// Where the elements of a cooperative matrix are. Vulkan does not say; many drivers agree, and kernels that know it can
// fill a matrix from registers. For lane 4g + t of 32 and elements e = 0, 1, ...:
//   A f16 16x16         (row g, columns 2t, 2t+1, 2t+8, 2t+9), then (row g + 8, the same columns)
//   B f16 16x16, 16x8   (rows 2t, 2t+1, 2t+8, 2t+9 of column g), then (of column g + 8)
//   C f32 16x16, 16x8   (row g, columns 2t, 2t+1[, 2t+8, 2t+9]), then (row g + 8, the same columns)
// And fp16 arithmetic does not flush subnormal numbers.
#pragma once

#include "vulkan/device.h"

namespace pumice::engine {

// From what a device lists: subgroups of 32, and both shapes.
bool may_have_fragments(const Features& features);
// Asks the device, by a kernel that looks at every element and at a product. May throw DeviceLost and the like.
bool has_fragments(const std::shared_ptr<Device>& device);

}  // namespace pumice::engine
