// SPDX-License-Identifier: Apache-2.0
// What an operator file sees: its arguments, and the table row it ends with. See docs/adding_an_op.md.
#pragma once

#include <optional>
#include <span>
#include <string_view>
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

// What a kernel writes that may have to report trouble (glsl/include/status.glslh): `out`, and if so the status.
std::vector<Tensor> reporting(Graph& graph, Tensor out, bool may_report);

struct HostCall;      // ops/shared/host_call.h
struct LinearScheme;  // ops/linear/linear_scheme.h
struct ConvScheme;    // ops/conv/conv_scheme.h

// What the kernel bench calls the operator with. A case is text: the arguments by their names in the signature and the
// outputs, "x=T[3,5,37] dim=-1 -> T[3,5,37]"; ';' stands between cases. docs/kernels.md has the grammar.
struct OpCases {
  std::string_view test = {};              // small, with odd sizes
  std::string_view bench = {};             // worth timing; empty: those of `test`
  void (*reference)(HostCall&) = nullptr;  // output 0 in fp64; null: results are compared with a portable f32 run
  const LinearScheme* linear = nullptr;    // cases of matrix products instead of `test` and `bench`
  const ConvScheme* conv = nullptr;        // likewise of convolutions
};

struct Op {
  Signature signature;                  // name, version, parameters
  void (*build)(Graph&, Args);          // checks once, adds nodes
  std::span<const Axis> variants = {};  // of its main shader: the dtypes and storages the partitioner may accept
  OpCases cases = {};                   // at least one; a unit test looks
};

// The operators of every file in ops/, in a fixed order; written by CMake.
std::span<const Op> op_table();
std::span<const Signature> op_signatures();

}  // namespace pumice::engine
