// SPDX-License-Identifier: Apache-2.0
// Sizes that are factor * symbol + offset: from such a size of an input the run time learns the symbol.
#pragma once

#include "serialization/program.h"

namespace pumice::engine {

struct Affine {
  int64_t symbol = -1, factor = 0, offset = 0;  // symbol -1: the number `offset`, and factor is 0
  bool is_symbol() const { return symbol >= 0 && factor == 1 && offset == 0; }
};

// What each Method::exprs node is as such; nothing for two symbols, // % min max, and numbers that do not fit 64 bits.
std::vector<std::optional<Affine>> affine(const Method& method);

// The value of the symbol (there is one) at which the expression is `size`; nothing when no integer is.
std::optional<int64_t> solve(const Affine& expr, int64_t size);

// What Program::required_features names when a symbol is the size of an input only as part of such an expression.
inline constexpr std::string_view kAffineInputs = "affine_inputs";

}  // namespace pumice::engine
