// SPDX-License-Identifier: Apache-2.0
// As linear_q8csw, with x quantized to 8-bit integers at run time. The arguments, and the error:
// ops/linear/dynamic_int8.h.
#include "glsl/linear_gemv.h"
#include "ops/linear/dynamic_int8.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

void linear_dq8ca_q8csw(Graph& graph, Args args) {
  linear_dynamic_int8(graph, args, "linear_dq8ca_q8csw", DType::i8, args.tensor(1).dim(-1), 5);
}

constexpr LinearScheme kLinearDq8caQ8cswScheme{WeightType::q8, ScalePer::row, Rows::chosen};

}  // namespace

std::span<const Op> linear_dq8ca_q8csw_ops() {
  static constexpr Op kOps[] = {
      {{"linear_dq8ca_q8csw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int act, Tensor? residual, "
        "int mapping, int qmin, int qmax, float eps, int per_token -> Tensor"},
       linear_dq8ca_q8csw,
       glsl::linear_gemv::axes,
       {.linear = &kLinearDq8caQ8cswScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
