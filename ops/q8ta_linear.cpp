// SPDX-License-Identifier: Apache-2.0
// A linear layer of int8 weights by output channel, from 8-bit integers to 8-bit integers, whose scales and zero points
// are constants:
//   out = clamp(round(act((x - x_zero) * x_scale . weight^T + bias) / out_scale) + out_zero, qmin, qmax)
// with an activation of none or relu. Shaders, layout and choice of kernel: ops/linear/.
//
// The quotient before rounding has the error of ops/linear/dynamic_int8.h: only a quotient so close to a tie may round
// to the other integer.
#include <cinttypes>

#include "glsl/include/core/modes.glslh"
#include "glsl/include/math/activation.glslh"
#include "glsl/linear_gemv.h"
#include "ops/linear/int8_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

void q8ta_linear(Graph& graph, Args args) {
  constexpr const char* kOp = "q8ta_linear";
  const PackedWeight packed = pack_q8csw(graph, args, kOp);
  RowSource rows{.x = args.tensor(0), .source = ROWS_NUMBERS};
  const Tensor x = rows.x, out = args.out();
  check(is_byte(x.dtype()) && is_byte(out.dtype()), "%s: x is %s and the output %s, not i8 or u8", kOp, name(x.dtype()),
        name(out.dtype()));
  rows.low = least(x.dtype());
  rows.high = rows.low + 255;
  rows.scale = scale_at(args, 6, kOp);
  rows.zero = zero_at(args, 7, rows.low, rows.high, kOp);
  const int64_t act = args.integer(5);
  check(act == ACT_NONE || act == ACT_RELU, "%s: activation %" PRId64 "; none and relu are known", kOp, act);
  linear_int8(graph, {.op = kOp,
                      .rows = rows,
                      .weight = packed,
                      .epilogue = {.bias = args.tensor(4), .residual = {}, .act = act},
                      .requantize = requantize_at(args, 8, out.dtype(), kOp),
                      .out = out});
}

constexpr std::string_view kBytes[] = {"i8", "u8"};
constexpr Axis kByteAxes[] = {{"DTYPE", kBytes},
                              {"STORAGE", glsl::linear_gemv::kSTORAGE},
                              {"WEIGHT_STORAGE", glsl::linear_gemv::kWEIGHT_STORAGE}};

constexpr LinearScheme kQ8taLinearScheme{WeightType::q8, ScalePer::row, Rows::bytes};

}  // namespace

std::span<const Op> q8ta_linear_ops() {
  static constexpr Op kOps[] = {
      {{"q8ta_linear", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int act, float x_scale, int x_zero, "
        "float out_scale, int out_zero, int qmin, int qmax -> Tensor"},
       q8ta_linear,
       kByteAxes,
       {.linear = &kQ8taLinearScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
