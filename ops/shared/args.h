// SPDX-License-Identifier: Apache-2.0
// The arguments of an operator call, as an operator file reads them.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace pumice::engine {

// A tensor or a number, for operators whose either side may be a Python scalar.
struct Operand {
  Tensor tensor;      // set, or
  double number = 0;  // this
  bool is_integer = false;
};

// The arguments of one call; kinds and counts were checked against the operator's signature when the file was read.
class Args {
 public:
  Args(Graph& graph, const Method& method, const OpCall& call);
  Tensor tensor(uint32_t index) const;  // optional ones: an empty Tensor when absent
  std::vector<Tensor> tensors(uint32_t index) const;
  Operand operand(uint32_t index) const;
  int64_t integer(uint32_t index) const;
  double real(uint32_t index) const;
  bool boolean(uint32_t index) const;
  DType dtype(uint32_t index) const;
  SymInt size(uint32_t index) const;  // resolve in a launch: launch.size(...)
  std::vector<int64_t> ints(uint32_t index) const;
  std::vector<SymInt> sizes(uint32_t index) const;
  bool has(uint32_t index) const;  // not none
  Tensor out(uint32_t index = 0) const;

 private:
  Graph& graph_;
  const OpCall& call_;
};

// Axis of rank `rank` with negatives resolved; throws BadGraph outside.
uint32_t axis(int64_t index, uint32_t rank, const char* op);

// What a kernel writes that may have to report trouble (glsl/include/core/status.glslh): `out`, and if so the status.
std::vector<Tensor> reporting(Graph& graph, Tensor out, bool may_report);

}  // namespace pumice::engine
