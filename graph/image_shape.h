// SPDX-License-Identifier: Apache-2.0
// Which image holds a tensor that is a texture.
#pragma once

#include "graph/graph_impl.h"
#include "vulkan/image.h"

namespace pumice::engine {

// glsl/include/linear/packed.glslh reads vector i of a weight from texel (i % 4096, i / 4096).
inline constexpr uint32_t kTexelsInARow = 4096;

// Of a texture, at its live shape; sizes are kept within 32 bits, check_bindings compares them with the device's.
ImageShape image_shape(const TensorInfo& texture);
// Whether it is within the limits of a device that has its format.
bool device_takes(const Features& features, const ImageShape& image);
// Of its texels; a device may take more.
uint64_t texel_bytes(const ImageShape& image);

}  // namespace pumice::engine
