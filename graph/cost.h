// SPDX-License-Identifier: Apache-2.0
// What a step costs, before it was measured.
#pragma once

#include "graph/graph_impl.h"
#include "graph/hazard.h"
#include "vulkan/device.h"

namespace pumice::engine {

// Bytes that a call reads and writes: those of its dispatches, else of every tensor once, even where it is bound twice.
uint64_t moved_bytes(const Graph::Impl& graph, const Node& node);

// Adds the operations of a call's dispatches.
void add_operations(const Node& node, Operations& operations);

// What a slow device of a kind does with kernels that are not made for it: a run that nobody measured yet is cut by it.
struct Pace {
  double bytes_per_ns, flops_per_ns, dispatch_ns;
  double matrix_flops_per_ns;  // of kernels with cooperative matrices
};
Pace slow_pace(const DeviceInfo& info);

// Nanoseconds. `dispatch`: of the node of the step; null for a copy.
double estimate_ns(const Graph::Impl& graph, const Step& step, const Dispatch* dispatch, const Pace& pace);

}  // namespace pumice::engine
