// SPDX-License-Identifier: Apache-2.0
// out[..., n] = act(sum_k x[..., k] * weight[n, k] + bias[n]) + residual[..., n], with weights of x's dtype; a weight
// that is not a constant is a matmul (ops/matmul.cpp). Shaders, layout and choice of kernel:
// ops/linear/. Error: linear_error of ops/linear/error_bound.h.
#include "glsl/linear_gemv.h"
#include "ops/linear/linear_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

void linear(Graph& graph, Args args) {
  const PackedWeight weight = pack_weight(graph, "linear", args.tensor(1), {}, {}, 0, true);
  check_weight_of("linear", args.tensor(0), weight);
  linear(graph, "linear", args.out(), args.tensor(0), weight, {args.tensor(2), args.tensor(4), args.integer(3)});
}

constexpr LinearScheme kLinearScheme{WeightType::f32, ScalePer::none};

}  // namespace

std::span<const Op> linear_ops() {
  static constexpr Op kOps[] = {
      {{"linear", 1, "Tensor x, Tensor weight, Tensor? bias, int act, Tensor? residual -> Tensor"},
       linear,
       glsl::linear_gemv::axes,
       {.linear = &kLinearScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
