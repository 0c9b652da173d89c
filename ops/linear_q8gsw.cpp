// SPDX-License-Identifier: Apache-2.0
// As linear_q4gsw with int8 weights. Error: that of ops/linear_q4gsw.cpp.
#include "glsl/linear_gemv.h"
#include "ops/linear/linear_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

void linear_q8gsw(Graph& graph, Args args) {
  constexpr const char* kOp = "linear_q8gsw";
  const Tensor weight = args.tensor(1);
  check(weight.dtype() == DType::i8, "%s: the weight is %s, not i8", kOp, name(weight.dtype()));
  const PackedWeight packed = pack_weight(graph, kOp, weight, args.tensor(2), args.tensor(3), args.integer(5), true);
  linear(graph, kOp, args.out(), args.tensor(0), packed, {args.tensor(4), args.tensor(7), args.integer(6)});
}

constexpr LinearScheme kLinearQ8gswScheme{WeightType::q8, ScalePer::group};

}  // namespace

std::span<const Op> linear_q8gsw_ops() {
  static constexpr Op kOps[] = {
      {{"linear_q8gsw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int group, int act, "
        "Tensor? residual -> Tensor"},
       linear_q8gsw,
       glsl::linear_gemv::axes,
       {.linear = &kLinearQ8gswScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
