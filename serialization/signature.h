// SPDX-License-Identifier: Apache-2.0
// The parameter text of an operator ("Tensor x, Tensor? bias, int dim -> Tensor"), parsed. program.h has the grammar.
#pragma once

#include <vector>

#include "serialization/program.h"

namespace pumice::engine {

enum class ParamType : uint8_t { tensor, tensors, operand, integer, real, boolean, dtype, size, ints, sizes };

const char* name(ParamType type);  // as in the text

struct Param {
  ParamType type;
  bool optional;
  std::string_view name;
};

struct Parameters {
  std::vector<Param> params;
  uint32_t outputs = 0;
  bool any_outputs = false;  // "-> Tensors": one or more
};

// Throws Internal: an operator's own text is wrong.
Parameters parse(const Signature& signature);

}  // namespace pumice::engine
