// SPDX-License-Identifier: Apache-2.0
// The states of a program, which its methods share.
#pragma once

#include <memory>
#include <span>

#include "graph/graph_impl.h"

namespace pumice::engine {

struct StateInfo {
  bool used = false;  // by a method
  DType dtype = DType::f32;
  Shape shape = {};
  uint64_t bytes = 0;  // on the device
};

// For each of Program::states, its shape and dtype in the methods that use it. Throws BadShape or BadDtype where two
// methods disagree, or where the initial value has other bytes.
std::vector<StateInfo> states(const Program& program, std::span<const std::unique_ptr<Graph>> graphs);

}  // namespace pumice::engine
