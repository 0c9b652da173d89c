// SPDX-License-Identifier: Apache-2.0
// The launch of a convolution whose values are NCHW: output by output, depthwise, or in tiles of a product with im2col
// patches that are never stored.
#pragma once

#include <vector>

#include "ops/conv/convolution.h"
#include "ops/linear/packed_weight.h"

namespace pumice::engine {

// What a launch needs of a convolution, known when the graph is built.
struct ConvLaunch : Convolution {
  uint32_t channels, k;  // of all groups; of one
  bool integers, direct;
  PackedWeight packed = {};  // unless direct
  bool textures;             // x and out are

  ConvLaunch(Graph& graph, const Convolution& convolution);
  std::vector<Tensor> reads() const;  // in the order of the bindings
  // Columns of the output that are computed: of a texture whole vec4 groups.
  int64_t width() const;
  // Outputs that are computed, of so many channels.
  uint64_t outputs(int64_t of_channels) const;
};

// Dispatches over blocks of images and of output channels that fit a binding of the device; mostly one.
void launch_convolution(Launch& launch, const ConvLaunch& convolution);
// The same with the mean of each plane of the output, [batch, channels], as a second output: of depthwise convolutions,
// where the sizes of an image suit (glsl/conv2d_depthwise_mean.glsl).
bool takes_mean(const ConvLaunch& convolution, const Features& features);
void launch_depthwise_mean(Launch& launch, const ConvLaunch& convolution);

}  // namespace pumice::engine
