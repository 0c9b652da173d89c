// SPDX-License-Identifier: Apache-2.0
// Sizes that are expressions over symbolic dimensions.
#pragma once

#include <optional>
#include <string_view>

#include "serialization/program.h"

namespace pumice::engine {

// The value of every Method::exprs node at symbol values `symbols` (one for each Method::symbols), in order.
// Throws BadShape on overflow or division by zero.
std::vector<int64_t> evaluate(const Method& method, std::span<const int64_t> symbols);

// A size factor * symbol + offset. Such a size of an input gives the value of the symbol at run time.
struct Affine {
  int64_t symbol = -1, factor = 0, offset = 0;  // symbol -1: the number `offset`, and factor is 0
  bool is_symbol() const { return symbol >= 0 && factor == 1 && offset == 0; }
};

// The affine form of each Method::exprs node; nothing where it has two symbols, one of // % min max, or numbers that do
// not fit 64 bits.
std::vector<std::optional<Affine>> affine(const Method& method);

// The value of the symbol (there is one) at which the expression is `size`; nothing when no integer is.
std::optional<int64_t> solve(const Affine& expr, int64_t size);

// The entry of Program::required_features for files in which a symbol appears in the sizes of inputs only as part of
// such an expression.
inline constexpr std::string_view kAffineInputs = "affine_inputs";
// Among them when an update gives an input the value that the next run of the same call has there.
inline constexpr std::string_view kInputUpdates = "input_updates";

}  // namespace pumice::engine
