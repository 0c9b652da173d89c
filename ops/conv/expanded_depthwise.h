// SPDX-License-Identifier: Apache-2.0
// A convolution of single pixels, which expands channels, and the depthwise convolution that alone reads it as one
// dispatch (glsl/conv2d_expanded_depthwise_fragments.glsl), as most blocks of MobileNetV2 and EfficientNet begin: of
// few pixels both wait longer than they compute. Found while the graph is built, among deferred values
// (graph/deferred.h).
#pragma once

#include "ops/conv/convolution.h"

namespace pumice::engine {

// Of both convolutions of fp16, at fixed sizes.
struct ExpandedShape {
  int64_t batch, in_height, in_width, height, width;  // of the image between them, and of the output
  int64_t channels;                                   // of the image between them
  std::array<int64_t, 2> kernel, stride;
  bool means = false;  // of the output's channels are read
};

// How the kernel divides the work.
struct ExpandedStrips {
  uint32_t rows = 0;     // of the output in a strip; 0: two dispatches are better
  uint32_t strips = 0;   // of a plane
  uint32_t lanes = 0;    // of a workgroup
  uint32_t columns = 1;  // of outputs that a lane computes at a time
  uint32_t blocks = 0;   // of 8 pixels of a subgroup
  uint32_t shared_bytes = 0;
};
ExpandedStrips pick_strips(const ExpandedShape& shape, const Features& features);

// For a depthwise convolution: true where its x is such a deferred convolution's, and one kernel computes both. The
// result is then deferred: its first reader decides about its layout, and a mean of its channels is written with it.
bool try_expanded_depthwise(Graph& graph, const Convolution& depthwise);

}  // namespace pumice::engine
