// SPDX-License-Identifier: Apache-2.0
// Gate 3, first half: from verified bytes to structs. Checks every field by itself: limits, text, enums. What relates
// one object to another is checked by semantics.h. Private to serialization/.
#pragma once

#include <string>
#include <vector>

#include "serialization/limits.h"
#include "serialization/program.h"

namespace pumice::engine {

// An operator as the file names it.
struct OpName {
  std::string name;
  uint16_t version;
};

// OpCall::op of the result is an index in `op_names`.
Program decode(std::span<const std::byte> bytes, const Limits& limits, std::vector<OpName>& op_names);

}  // namespace pumice::engine
