// SPDX-License-Identifier: Apache-2.0
// Pooling over the last two dimensions: what the operators of floats and of integers share.
#pragma once

#include "glsl/pool2d.h"
#include "ops/shared/patch.h"

namespace pumice::engine {

struct Pooling {
  const char* op;
  Tensor x, out;
  glsl::pool2d::POOL pool;
  Patches patches = {};
  bool ceil = false, count_padding = false;
  double divisor = 0;
  std::vector<SymInt> size = {};      // of the adaptive one
  glsl::pool2d::Params numbers = {};  // those of integers
};

// Adds the node.
void pooling(Graph& graph, const Pooling& pooling);

// Average pooling over windows; arguments from 1 on: kernel, stride, pads, dilation, ceil_mode, count_padding, divisor.
// Adaptive average pooling, to the size in argument 1.
Pooling mean_pooling(const Args& args, const char* op);
Pooling adaptive_pooling(const Args& args, const char* op);

}  // namespace pumice::engine
