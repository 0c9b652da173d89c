// SPDX-License-Identifier: Apache-2.0
// out[..., n] = act(sum_k x[..., k] * (weight[n, k] - zero[n, k / group]) * scale[n, k / group] + bias[n]) +
// residual[..., n], weights int4 in groups of `group` columns. Zero points are any int8; absent or all zero they cost
// nothing. Shaders, layout and choice of kernel: ops/linear/.
//
// Error: linear_error of ops/linear/error_bound.h. weight - zero is exact, and scaled before or after a partial sum
// of it, so a weight equal to its zero point adds nothing.
#include "glsl/linear_gemv.h"
#include "ops/linear/linear_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

void linear_q4gsw(Graph& graph, Args args) {
  constexpr const char* kOp = "linear_q4gsw";
  const Tensor weight = args.tensor(1);
  check(weight.dtype() == DType::i4, "%s: the weight is %s, not i4", kOp, name(weight.dtype()));
  const PackedWeight packed = pack_weight(graph, kOp, weight, args.tensor(2), args.tensor(3), args.integer(5), true);
  linear(graph, kOp, args.out(), args.tensor(0), packed, {args.tensor(4), args.tensor(7), args.integer(6)});
}

constexpr LinearScheme kLinearQ4gswScheme{WeightType::q4, ScalePer::group};

}  // namespace

std::span<const Op> linear_q4gsw_ops() {
  static constexpr Op kOps[] = {
      {{"linear_q4gsw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int group, int act, "
        "Tensor? residual -> Tensor"},
       linear_q4gsw,
       glsl::linear_gemv::axes,
       {.linear = &kLinearQ4gswScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
