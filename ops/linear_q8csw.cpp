// SPDX-License-Identifier: Apache-2.0
// As linear_q4gsw with int8 weights and one scale (and zero point) for each output channel: scales are [N, 1]. Error:
// that of ops/linear_q4gsw.cpp.
#include "glsl/linear_gemv.h"
#include "ops/linear/linear_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

void linear_q8csw(Graph& graph, Args args) {
  constexpr const char* kOp = "linear_q8csw";
  const PackedWeight packed = pack_q8csw(graph, args, kOp);
  linear(graph, kOp, args.out(), args.tensor(0), packed, {args.tensor(4), args.tensor(6), args.integer(5)});
}

constexpr LinearScheme kLinearQ8cswScheme{WeightType::q8, ScalePer::row};

}  // namespace

std::span<const Op> linear_q8csw_ops() {
  static constexpr Op kOps[] = {
      {{"linear_q8csw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int act, Tensor? residual -> Tensor"},
       linear_q8csw,
       glsl::linear_gemv::axes,
       {.linear = &kLinearQ8cswScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
