// SPDX-License-Identifier: Apache-2.0
// The error of a kernel that met data it cannot take.
#pragma once

#include "graph/graph_impl.h"

namespace pumice::engine {

// `status`: the words that glsl/include/core/status.glslh writes: call + 1, position, value, limit or what is wrong.
[[noreturn]] void refuse_data(const Graph::Impl& graph, const uint32_t (&status)[4]);

}  // namespace pumice::engine
