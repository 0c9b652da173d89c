// SPDX-License-Identifier: Apache-2.0
// Pooling over the last one, two or three dimensions: what the operators of floats and of integers share.
#pragma once

#include "glsl/pool.h"
#include "ops/shared/patch.h"

namespace pumice::engine {

struct Pooling {
  const char* op;
  Tensor x, out;
  glsl::pool::POOL pool;
  std::vector<PatchAxis> axes = {};
  bool ceil = false, count_padding = false;
  double divisor = 0;
  std::vector<SymInt> size = {};    // of the adaptive one
  Tensor places = {};               // of max_with_places
  glsl::pool::Params numbers = {};  // those of integers
};

// Adds the node.
void pooling(Graph& graph, const Pooling& pooling);

// Whether there is a kernel for channels-last images: of small windows, and of the mean of all pixels.
bool suits_channels_last(const Pooling& pooling);
// Adds the node, from a channels-last x (ops/conv/channels_last.h) of whole groups of channels. `into`: an i32 scratch
// that gets the output channels-last; or the output, where it has one pixel.
void pooling_channels_last(Graph& graph, const Pooling& pooling, Tensor x, Tensor into);

// Pooling over windows; arguments from 1 on: kernel, stride, pads, dilation, ceil_mode; of an average also
// count_padding and divisor. Adaptive average pooling, to the size in argument 1.
Pooling window_pooling(const Args& args, glsl::pool::POOL pool, const char* op);
Pooling mean_pooling(const Args& args, const char* op);
Pooling adaptive_pooling(const Args& args, const char* op);

}  // namespace pumice::engine
