// SPDX-License-Identifier: Apache-2.0
// 2D convolutions: what the operators of floats and of integers share.
//
// The weight is [out_channels, k], k = (input channel of the group, ky, kx), whether the convolution is transposed or
// not. Many output channels a group: a product of the packed weight and patches of x that are read where they lie
// (glsl/include/conv/tiled.glslh); few: output by output (glsl/include/conv/direct.glslh). fp16 and integers of one
// group by cooperative matrices or dot products, where the device has them (ops/conv/channels_last_product.h).
#pragma once

#include "ops/conv/kernels.h"
#include "ops/quant/requantize.h"
#include "ops/shared/patch.h"

namespace pumice::engine {

struct Convolution {
  const char* op;
  Tensor x = {}, weight = {};
  Tensor scale = {}, zero = {};  // of an i8 weight: f32 and i8 [out_channels, 1]
  Tensor bias = {}, out = {};
  Patches patches = {};
  int64_t groups = 1, act = 0;
  // Of integers: x's scale and zero point, and those of `out` where that is integers, too.
  double x_scale = 1;
  int64_t x_zero = 0;
  Requantize requantize = {};

  bool is_pointwise() const;  // an output pixel reads the same one of x
  Shape out_shape() const;    // live
  ConvFacts facts() const;    // without those of the output's size
};

// Adds the node.
void convolution(Graph& graph, const Convolution& convolution);

}  // namespace pumice::engine
