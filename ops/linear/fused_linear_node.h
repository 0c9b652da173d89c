// SPDX-License-Identifier: Apache-2.0
// The nodes of a linear with a norm of x or a gate.
#pragma once

#include "ops/linear/epilogue.h"

namespace pumice::engine {

// Adds the nodes: out = gate(epilogue(norm(x) . weight^T)), the formula of ops/fused_linear.cpp. What the kernel that
// is picked at a launch does not do itself has a dispatch of its own there. Throws when types, or shapes known now, do
// not fit.
void fused_linear(Graph& graph, Tensor out, Tensor x, const PackedWeight& weight, const Epilogue& epilogue);

}  // namespace pumice::engine
