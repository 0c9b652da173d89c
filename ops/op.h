// SPDX-License-Identifier: Apache-2.0
// What an operator file sees: its arguments, and the table row it ends with. See docs/adding_an_op.md.
#pragma once

#include <span>

#include "ops/shared/args.h"
#include "serialization/signature.h"

namespace pumice::engine {

struct HostCall;      // ops/shared/host_call.h
struct LinearScheme;  // ops/linear/linear_scheme.h
struct ConvScheme;    // ops/conv/conv_scheme.h

// What the kernel bench calls the operator with. A case is text: the arguments by their names in the signature and the
// outputs, "x=T[3,5,37] dim=-1 -> T[3,5,37]"; ';' stands between cases. docs/kernels.md has the grammar.
struct OpCases {
  std::string_view test = {};              // small, with odd sizes
  std::string_view bench = {};             // worth timing; empty: those of `test`
  void (*reference)(HostCall&) = nullptr;  // every output in fp64, with bounds (ops/reference/); null: "guards only"
  const LinearScheme* linear = nullptr;    // cases of matrix products instead of `test` and `bench`
  const ConvScheme* conv = nullptr;        // likewise of convolutions
};

struct Op {
  Signature signature;                  // name, version, parameters
  void (*build)(Graph&, Args);          // checks once, adds nodes
  std::span<const Axis> variants = {};  // of its main shader: the dtypes and storages the partitioner may accept
  OpCases cases = {};                   // at least one; a unit test looks
  std::string_view never = {};          // a dtype of `variants` that its function, or PyTorch, does not take
};

// The operators of every file in ops/, in a fixed order; written by CMake.
std::span<const Op> op_table();
std::span<const Signature> op_signatures();

}  // namespace pumice::engine
