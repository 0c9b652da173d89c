// SPDX-License-Identifier: Apache-2.0
// The node of a linear of floats.
#pragma once

#include "ops/linear/epilogue.h"

namespace pumice::engine {

// Adds the node: out = the epilogue of x . weight^T. The kernel is picked at each launch from the live shape. Throws
// when types, or shapes known now, do not fit.
void linear(Graph& graph, const char* op, Tensor out, Tensor x, const PackedWeight& weight, Epilogue epilogue);

}  // namespace pumice::engine
