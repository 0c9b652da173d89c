// SPDX-License-Identifier: Apache-2.0
// From a verified method to a graph in execution order.
#pragma once

#include "graph/graph_impl.h"

namespace pumice::engine {

// The operators of a program, which the caller of build has: graph/ is built without any.
struct OperatorCallbacks {
  std::function<void(Graph&, const Method&, const OpCall&)> add_nodes;
  std::function<std::string(uint32_t op)> op_name;                       // of OpCall::op, for texts
  std::function<void(Graph&, Tensor out, Tensor in)> copy_storage = {};  // adds a node: buffer to texture, or back
  // Of a graph at its live shapes, nodes that one dispatch can do; find_merged has `steps`. May be empty.
  std::function<std::vector<Merged>(const Graph&, std::span<const RunningNode>, bool steps)> merge = {};
};

// Shapes are at the hints of the symbols. The program must outlive the graph. Errors have the path of the operator
// call.
std::unique_ptr<Graph> build(const Program& program, uint32_t method, const Features& features,
                             const OperatorCallbacks& operators, const std::shared_ptr<ConstantFacts>& facts);

}  // namespace pumice::engine
