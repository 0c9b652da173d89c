// SPDX-License-Identifier: Apache-2.0
// What sizes can be, from the bounds of the symbols: interval arithmetic over the expressions.
#pragma once

#include <cstdint>
#include <vector>

#include "serialization/program.h"

namespace pumice::engine {

// Smallest and largest value of each of a method's expressions, from the symbols' bounds; then of a size.
struct Bounds {
  int64_t min, max;
};
std::vector<Bounds> bounds(const Method& method);
Bounds bounds(const std::vector<Bounds>& exprs, SymInt size);
// The symbol that a dimension is, or null.
const Symbol* symbol(const Method& method, SymInt size);

}  // namespace pumice::engine
