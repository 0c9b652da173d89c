// SPDX-License-Identifier: Apache-2.0
// A call of any operator as text, read with the operator's signature: "x=T[3,5,37] dim=-1 -> T[3,5,37]".
//
//   Arguments are given by name, in any order; '|' separates alternatives.
//   A tensor is dtype[sizes]; dtypes are f32 f16 i32 i64 u8 i8 bool, and i4 for constants. T is the float dtype of the
//   case: both f32 and f16, unless the text sets T. "const:f32[7]" is a constant; "i32[5]{0..9}" gives the range of the
//   numbers, "f32[5]{1,0.5}" the numbers, in turn; "T[5]{special}" has some NaN and infinities; "T[2,3]+T[4,3]" is a
//   list of tensors.
//   A list of integers is [1,-1].
//   The outputs follow "->"; without it there is one, like the first tensor.
//   storage=texture3d puts the first tensor into a texture; the operator decides which others follow. texture2d: the
//   packed weight, of operators that take one there.
#pragma once

#include "ops/op.h"
#include "serialization/signature.h"
#include "tools/kernel_bench/case.h"

namespace pumice::engine::kernel_bench {

struct CallTensor {
  bool is_t = false;  // has the case's dtype
  DType dtype = DType::f32;
  Shape shape = {};
  bool is_constant = false, has_special = false;
  double low = -2, high = 2;         // range of the numbers; integers: both included
  std::vector<double> numbers = {};  // these in turn, if there are any
};

struct CallArgument {
  std::string name;
  ParamType type;
  std::vector<CallTensor> tensors = {};  // one; several in a list of tensors; none where it is no tensor
  double number = 0;
  bool is_integer = false;  // the number was written without a point
  std::vector<int64_t> list = {};
  DType dtype = DType::f32;
};

struct Call {
  std::vector<CallArgument> arguments;  // those in the text; the others are absent
  std::vector<CallTensor> outputs;
};

// `t`: the dtype of T. Throws InvalidArgument with the word that is wrong.
Call parse_call(const Op& op, std::string_view text, DType t);
// A case for every combination of the alternatives, with its call, dtype and storage. `text` may hold several calls,
// separated by ';'.
std::vector<Case> call_cases(const Op& op, std::string_view text);

}  // namespace pumice::engine::kernel_bench
