// SPDX-License-Identifier: Apache-2.0
// What gate 3 must know of an operator: its name, version and parameters.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace pumice::engine {

// `params` is a comma list of "type name", e.g. "Tensor x, Tensor? bias, int dim, float eps -> Tensor". Types: Tensor,
// Tensors, operand (a tensor or a number), int, float, bool, dtype, size (int or expr), ints, sizes (ints or exprs); a
// '?' after the type means that the argument may be missing. After the arrow: the outputs.
struct Signature {
  std::string_view name;
  uint16_t version;
  std::string_view params;
};

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

// Throws Internal where the text is wrong.
Parameters parse(const Signature& signature);

}  // namespace pumice::engine
