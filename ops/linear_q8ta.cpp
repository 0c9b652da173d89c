// SPDX-License-Identifier: Apache-2.0
// Linear layers of int8 weights by output channel with x quantized to 8 bits by a constant scale and zero point:
// linear_q8ta_q8csw takes floats and quantizes them, or integers, and returns floats; q8ta_linear takes integers and
// returns integers,
//   out = clamp(round(act((x - x_zero) * x_scale . weight^T + bias) / out_scale) + out_zero, qmin, qmax)
// with an activation of none or relu. Shaders, layout and choice of kernel: ops/linear/.
//
// Error of floats: that of ops/linear_dq8ca.cpp. The quotient before rounding has that error: only a quotient so close
// to a tie may round to the other integer.
#include <cinttypes>

#include "glsl/include/core/modes.glslh"
#include "glsl/include/math/activation.glslh"
#include "glsl/linear_gemv.h"
#include "ops/linear/int8_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

PackedWeight pack(Graph& graph, const Args& args, const char* op) {
  const Tensor weight = args.tensor(1);
  check(weight.dtype() == DType::i8, "%s: the weight is %s, not i8", op, name(weight.dtype()));
  return pack_weight(graph, op, weight, args.tensor(2), args.tensor(3), weight.dim(-1), true);
}

void linear_q8ta_q8csw(Graph& graph, Args args) {
  constexpr const char* kOp = "linear_q8ta_q8csw";
  const PackedWeight packed = pack(graph, args, kOp);
  RowSource rows{.x = args.tensor(0), .source = ROWS_NUMBERS};
  rows.low = args.integer(9);
  rows.high = args.integer(10);
  check_range(rows.low, rows.high, kOp);
  if (!is_float(rows.x.dtype())) {
    check(is_byte(rows.x.dtype()), "%s: x is %s, not f32, f16, i8 or u8", kOp, name(rows.x.dtype()));
    rows.low = least(rows.x.dtype());
    rows.high = rows.low + 255;
  }
  rows.scale = scale_at(args, 7, kOp);
  rows.zero = zero_at(args, 8, rows.high > 127 ? 0 : -128, rows.high > 127 ? 255 : 127, kOp);
  linear_int8(graph, {.op = kOp,
                      .rows = rows,
                      .weight = packed,
                      .epilogue = {args.tensor(4), args.tensor(6), args.integer(5)},
                      .requantize = {},
                      .out = args.out()});
}

void q8ta_linear(Graph& graph, Args args) {
  constexpr const char* kOp = "q8ta_linear";
  const PackedWeight packed = pack(graph, args, kOp);
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
constexpr Axis kStorage = {"STORAGE", glsl::linear_gemv::kSTORAGE},
               kWeightStorage = {"WEIGHT_STORAGE", glsl::linear_gemv::kWEIGHT_STORAGE};
constexpr Axis kByteAxes[] = {{"DTYPE", kBytes}, kStorage, kWeightStorage};
constexpr std::string_view kAny[] = {"f32", "f16", "i8", "u8"};
constexpr Axis kAnyAxes[] = {{"DTYPE", kAny}, kStorage, kWeightStorage};

constexpr LinearScheme kLinearQ8taQ8cswScheme{WeightType::q8, ScalePer::row, Rows::numbers};
constexpr LinearScheme kQ8taLinearScheme{WeightType::q8, ScalePer::row, Rows::bytes};

}  // namespace

std::span<const Op> linear_q8ta_ops() {
  static constexpr Op kOps[] = {
      {{"linear_q8ta_q8csw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int act, Tensor? residual, float x_scale, "
        "int x_zero, int qmin, int qmax -> Tensor"},
       linear_q8ta_q8csw,
       kAnyAxes,
       {.linear = &kLinearQ8taQ8cswScheme}},
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
