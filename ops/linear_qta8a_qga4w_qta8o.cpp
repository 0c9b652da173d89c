// SPDX-License-Identifier: Apache-2.0
// int8 in and out, both with a scale and a zero point for each row of x (one for each token); int4 weights with a scale
// and maybe a zero point for each group of `group` columns:
//   out = clamp(round(((x - x_zero) * x_scale . weight^T + bias) / out_scale) + out_zero, -128, 127)
// Shaders, layout and choice of kernel: ops/linear/. Rounding: that of ops/q8ta_linear.cpp.
#include "glsl/include/core/modes.glslh"
#include "glsl/linear_gemv.h"
#include "ops/linear/int8_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "linear_qta8a_qga4w_qta8o";

// Scales (f32, f16) or zero points (integers), an element for each row of x.
Parameter row_parameter(const Args& args, uint32_t index, bool integers) {
  const DType dtype = args.tensor(index).dtype();
  check(is_float(dtype) != integers, "%s: argument %u is %s", kOp, index, name(dtype));
  return parameter(args, index, kOp, integers);
}

void linear_qta8a_qga4w_qta8o(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), weight = args.tensor(3), out = args.out();
  check(x.dtype() == DType::i8 && out.dtype() == DType::i8, "%s: x is %s and the output %s, not i8", kOp,
        name(x.dtype()), name(out.dtype()));
  check(weight.dtype() == DType::i4, "%s: the weight is %s, not i4", kOp, name(weight.dtype()));
  const PackedWeight packed = pack_weight(graph, kOp, weight, args.tensor(4), args.tensor(5), args.integer(7), true);
  const RowSource rows{
      .x = x, .source = ROWS_GIVEN, .scales = row_parameter(args, 1, false), .zeros = row_parameter(args, 2, true)};
  const Requantize requantize{.scales = row_parameter(args, 8, false), .zeros = row_parameter(args, 9, true)};
  linear_int8(graph, {.op = kOp,
                      .rows = rows,
                      .weight = packed,
                      .epilogue = {.bias = args.tensor(6), .residual = {}},
                      .requantize = requantize,
                      .out = out});
}

constexpr std::string_view kBytes[] = {"i8"};
constexpr Axis kByteAxes[] = {{"DTYPE", kBytes},
                              {"STORAGE", glsl::linear_gemv::kSTORAGE},
                              {"WEIGHT_STORAGE", glsl::linear_gemv::kWEIGHT_STORAGE}};

constexpr LinearScheme kLinearQta8aQga4wQta8oScheme{WeightType::q4, ScalePer::group, Rows::given};

}  // namespace

std::span<const Op> linear_qta8a_qga4w_qta8o_ops() {
  static constexpr Op kOps[] = {
      {{kOp, 1,
        "Tensor x, Tensor x_scale, Tensor x_zero, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int group, "
        "Tensor out_scale, Tensor out_zero -> Tensor"},
       linear_qta8a_qga4w_qta8o,
       kByteAxes,
       {.linear = &kLinearQta8aQga4wQta8oScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
