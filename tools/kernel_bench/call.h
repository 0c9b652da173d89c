// SPDX-License-Identifier: Apache-2.0
// A call of any operator as text, read with the operator's signature: "x=T[3,5,37] dim=-1 -> T[3,5,37]".
//
//   Arguments by name, in any order; '|' stands between alternatives. Tensors: dtype[sizes], dtypes f32 f16 i32 i64
//   u8 i8 bool, of constants also i4; T is the case's float dtype (T=f32|f16 unless said). "const:f32[7]" is a
//   constant, "i32[5]{0..9}" says the range of the numbers, "T[5]{special}" puts NaN and infinities in between,
//   "T[2,3]+T[4,3]" is a list. Lists of integers: [1,-1]. After "->" come the outputs; without it one like the first
//   tensor. storage=texture3d has the first tensor in a texture, and with it what the operator takes along.
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
  double low = -2, high = 2;  // of the numbers; integers: both may occur
};

struct CallArgument {
  std::string name;
  ParamType type;
  std::vector<CallTensor> tensors = {};  // one, but for a list of tensors; none: another kind
  double number = 0;
  bool is_integer = false;  // the number was written without a point
  std::vector<int64_t> list = {};
  DType dtype = DType::f32;
};

struct Call {
  std::vector<CallArgument> arguments;  // those that are given
  std::vector<CallTensor> outputs;
};

// Throws InvalidArgument, and says what is wrong with the text.
Call parse_call(const Op& op, std::string_view text, DType t);
// Every combination of the alternatives as a case of its own: Case::call, dtype and storage. `text` may hold several
// calls, with ';' in between.
std::vector<Case> call_cases(const Op& op, std::string_view text);

}  // namespace pumice::engine::kernel_bench
