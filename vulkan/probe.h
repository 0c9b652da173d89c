// SPDX-License-Identifier: Apache-2.0
// In which registers the elements of a cooperative matrix are. Vulkan does not define it, but many drivers agree, and
// kernels can then fill a matrix from registers. For lane 4g + t of 32 and elements e = 0, 1, ...:
//   A f16 16x16         (row g, columns 2t, 2t+1, 2t+8, 2t+9), then (row g + 8, the same columns)
//   B f16 16x16, 16x8   (rows 2t, 2t+1, 2t+8, 2t+9 of column g), then (of column g + 8)
//   C f32 16x16, 16x8   (row g, columns 2t, 2t+1[, 2t+8, 2t+9]), then (row g + 8, the same columns)
// And fp16 arithmetic does not flush subnormal numbers. That is Feature::fragments; Feature::fragments_int8:
//   A s8 16x32          (row g, columns 4t .. 4t+3, 4t+16 .. 4t+19), then (row g + 8, the same columns)
//   B s8 32x8           (rows 4t .. 4t+3, 4t+16 .. 4t+19 of column g)
//   C s32 16x8          as f32
#pragma once

#include "vulkan/device.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

// Whether the device lists what the probe of one of these features needs: subgroups of 32, and the shapes.
bool may_have_fragments(const Features& features, Feature feature);
PipelineKey probe_pipeline(Feature feature);
// Runs a kernel that checks every element and a product. Throws the errors of Device::run.
bool has_fragments(const std::shared_ptr<Device>& device, Feature feature);

}  // namespace pumice::engine
