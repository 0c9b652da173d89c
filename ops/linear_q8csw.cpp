// SPDX-License-Identifier: Apache-2.0
// As linear_q4gsw with int8 weights: linear_q8csw has one scale (and zero point) for each output channel, [N, 1];
// linear_q8gsw one for each group of `group` columns. Error: that of ops/linear_q4gsw.cpp.
#include <cinttypes>

#include "glsl/linear_gemv.h"
#include "ops/linear/gemm.h"
#include "ops/linear/linear_scheme.h"

namespace pumice::engine {
namespace {

// `act`: the index of that argument; the residual is behind it.
void build(Graph& graph, const Args& args, const char* op, int64_t group, uint32_t act) {
  const Tensor weight = args.tensor(1);
  check(weight.dtype() == DType::i8, "%s: the weight is %s, not i8", op, name(weight.dtype()));
  const PackedWeight packed = pack_weight(graph, op, weight, args.tensor(2), args.tensor(3), group, true);
  linear(graph, op, args.out(), args.tensor(0), packed, {args.tensor(4), args.tensor(act + 1), args.integer(act)});
}

void linear_q8csw(Graph& graph, Args args) {
  build(graph, args, "linear_q8csw", args.tensor(1).dim(-1), 5);
}
void linear_q8gsw(Graph& graph, Args args) {
  build(graph, args, "linear_q8gsw", args.integer(5), 6);
}

constexpr LinearScheme kLinearQ8cswScheme{Storage::q8, ScalePer::row};
constexpr LinearScheme kLinearQ8gswScheme{Storage::q8, ScalePer::group};

}  // namespace

std::span<const Op> linear_q8csw_ops() {
  static constexpr Op kOps[] = {
      {{"linear_q8csw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int act, Tensor? residual -> Tensor"},
       linear_q8csw,
       glsl::linear_gemv::axes,
       {.linear = &kLinearQ8cswScheme}},
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
