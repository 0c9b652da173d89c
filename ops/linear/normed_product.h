// SPDX-License-Identifier: Apache-2.0
// A linear whose kernel makes layer norms of what it reads, or leaves moments of what it writes for products that do:
// ops/linear/layer_norm_x.h.
#pragma once

#include <functional>

#include "ops/linear/epilogue.h"
#include "ops/linear/layer_norm_x.h"

namespace pumice::engine {

// Adds its nodes, for buffers. `passes`: the weight as kernels of matrices read it. `live_shape`: of the launch.
// Returns whether one of them runs at a launch; empty where there are none.
Condition add_normed_products(Graph& graph, const char* op, Tensor out, Tensor x, const PackedWeight& weight,
                              const PackedWeight& passes, const Epilogue& epilogue,
                              const std::function<LinearShape()>& live_shape);

}  // namespace pumice::engine
