// SPDX-License-Identifier: Apache-2.0
// A scale and a zero point for each block of a tensor, from its smallest and largest element.
#pragma once

#include <vector>

#include "ops/shared/args.h"

namespace pumice::engine {

struct QParamsRule {
  uint32_t mapping;   // QPARAMS_* of glsl/include/core/modes.glslh
  int64_t low, high;  // of the integers to come
  float eps;          // the least scale
  uint32_t steps;     // STEPS_*
};

// Adds the nodes. `scale` (f32, f16) and `zero` have a dimension for each of x: the number of blocks along it.
void choose_qparams(Graph& graph, Tensor scale, Tensor zero, Tensor x, const std::vector<int64_t>& block,
                    const QParamsRule& rule);

}  // namespace pumice::engine
