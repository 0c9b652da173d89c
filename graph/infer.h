// SPDX-License-Identifier: Apache-2.0
// Live shapes and dispatches at given values of the symbols. Only launches whose sizes changed run again.
#pragma once

#include <span>

#include "graph/graph_impl.h"

namespace pumice::engine {

// Computes shapes and dispatches for these values of the symbols. Returns how many launches ran. After an error the
// graph has no shapes until the next infer.
uint32_t infer(Graph& graph, std::span<const int64_t> symbols);
std::vector<int64_t> hints(const Method& method);  // of its symbols

// Runs the launch of a packed constant or node, checks its dispatches against their shaders and the features, and
// returns those that run. Throws Internal for mistakes of the operator, LimitExceeded or DeviceUnsupported for the
// limits of the device.
// `outer`: gets Launch::outer.
std::vector<Dispatch> launch(const Graph& graph, const LaunchFunction& function, size_t bindings,
                             uint32_t* outer = nullptr);

}  // namespace pumice::engine
