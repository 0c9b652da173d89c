// SPDX-License-Identifier: Apache-2.0
// What graphs of a program need to know of the bytes of its constants. Each fact is computed once and kept, so that a
// graph built after the load needs no bytes.
#pragma once

#include <map>

#include "graph/graph.h"
#include "serialization/constants.h"

namespace pumice::engine {

class ConstantFacts {
 public:
  // The bytes of external constants, while the program is loaded. Without it their facts are unknown.
  ExternalData external;

  // As the functions of Graph, for constant `index`; half_exponents is for f16, bad_scale for f16 and f32.
  bool is_zero(const Program& program, uint32_t index);
  std::optional<Graph::Exponents> half_exponents(const Program& program, uint32_t index);
  std::optional<Graph::Scale> bad_scale(const Program& program, uint32_t index, DType dtype);

 private:
  bool has_bytes(const Program& program, uint32_t index) const;

  std::map<uint32_t, bool> zeros_;
  std::map<uint32_t, std::optional<Graph::Exponents>> exponents_;
  std::map<uint32_t, std::optional<Graph::Scale>> scales_;
};

}  // namespace pumice::engine
