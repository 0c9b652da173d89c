// SPDX-License-Identifier: Apache-2.0
// Calls of a method that one kernel computes together, so that none of them alone has that kernel: the self test runs
// them as one program.
#pragma once

#include <vector>

#include "graph/graph_impl.h"

namespace pumice::engine {

// Lists of calls, each in their order, that may have the kernel of a node of `call`: the three convolutions of
// ops/conv/chain.h with the one that reads them, and a depthwise convolution with its mean (ops/conv/depthwise_mean.h),
// its layer norm (ops/conv/depthwise_norm.h), or the convolution that it reads (ops/conv/expanded_depthwise.h).
std::vector<std::vector<uint32_t>> fused_calls(const Graph::Impl& graph, uint32_t call);

}  // namespace pumice::engine
