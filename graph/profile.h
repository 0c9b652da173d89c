// SPDX-License-Identifier: Apache-2.0
// What each step of a run took.
#pragma once

#include <string>
#include <vector>

#include "graph/record.h"

namespace pumice::engine {

struct ProfileRow {
  std::string op, source, kernel, shapes;
  std::string operands;  // of the call, by name: "x up.weight -> #7"; a value without a name is its number
  uint32_t call;         // index in Method::ops; kNone: a copy that the engine added
  double start_us, us;   // since the first step began; of this one
  uint64_t bytes;
  Operations operations;
  bool split;  // Dispatch::split
};

// After a run of `timed`, which was recorded with timestamps. The graph must be at the encoding's symbols.
std::vector<ProfileRow> profile_rows(const Graph& graph, const Encoding& timed);

}  // namespace pumice::engine
