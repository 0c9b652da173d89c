// SPDX-License-Identifier: Apache-2.0
// The kernels of glsl/conv2d_tile_fragments.glsl: fp32 convolutions of many pixels, by operands that are split in two
// fp16. Pure functions of sizes and features.
#pragma once

#include <string>

#include "ops/conv/channels_last_kernels.h"

namespace pumice::engine {

// Of those of fragments.
bool is_split_tile(const ConvKernel& kernel);
std::string split_tile_unsupported_reason(const ConvKernel& kernel, const Features& features);
// Invocations of a workgroup: several groups of subgroups share the columns where workgroups are few.
uint32_t split_tile_lanes(const ConvKernel& kernel, const ConvShape& shape, const Features& features);
// Null where the kernel of few pixels is faster, or where none of them can run.
const ConvKernel* pick_split_tile(const ConvShape& shape, const Features& features);

}  // namespace pumice::engine
