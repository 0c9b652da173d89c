// SPDX-License-Identifier: Apache-2.0
// Calls whose outer indices are independent (Launch::outer), on tensors larger than a binding: the launch runs for
// slices of the tensors, as if these were the tensors, and its dispatches bind them.
#pragma once

#include "graph/graph_impl.h"

namespace pumice::engine {

// In place of node.dispatches, which were made for whole tensors, where one is larger than a binding; while the node
// launches. They stay where slicing does not help: check_bindings then names the value.
void slice(Graph& graph, Node& node, uint32_t outer);

}  // namespace pumice::engine
