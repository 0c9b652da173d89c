// SPDX-License-Identifier: Apache-2.0
// What the inputs of a call must be, by the file; and the values of the symbols that their sizes give.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "serialization/expr.h"

namespace pumice::engine {

// An input of a call; any alignment.
struct InputView {
  DType dtype;
  std::span<const int64_t> dims;
  const void* data;
  uint64_t bytes;
};

class InputRules {
 public:
  // The program must stay where it is. Throws BadShape where no input gives the value of a symbol.
  InputRules(const Program& program, uint32_t method);
  // Checks dtypes, ranks, sizes, bounds and byte counts before anything runs; throws InvalidArgument with the input as
  // path. Sets `symbols`.
  void bind(std::span<const InputView> inputs, std::vector<int64_t>& symbols) const;
  std::string path(size_t input) const;  // "input 'ids'"

 private:
  struct Dim {
    enum class Rule : uint8_t { fixed, binds, expr } rule;  // binds: the size gives the value of a symbol
    int64_t value;                                          // the size or the expression
    Affine binds;                                           // the expression, for Rule::binds
  };
  int64_t symbol_of(size_t input, size_t d, int64_t got) const;
  void check_tensor(size_t index, const InputView& input) const;
  const Method& method_;
  std::vector<std::vector<Dim>> dims_;
};

}  // namespace pumice::engine
