// SPDX-License-Identifier: Apache-2.0
// What the device cannot allocate at once or bind to a kernel, found before anything is recorded.
#pragma once

#include "graph/graph_impl.h"

namespace pumice::engine {

// Both throw DeviceUnsupported with the name of the value, its bytes and the limit. check_weights: of everything that
// stays on the device; check_bindings: of all bindings at the live shapes.
void check_weights(const Graph& graph);
void check_bindings(const Graph& graph);

}  // namespace pumice::engine
