// SPDX-License-Identifier: Apache-2.0
// A linear layer of int8 weights by output channel; x is quantized to 8 bits by a constant scale and zero point, or is
// such integers already, and the result is floats. Shaders, layout and choice of kernel: ops/linear/.
//
// Error: that of ops/linear/dynamic_int8.h.
#include "glsl/include/core/modes.glslh"
#include "glsl/linear_gemv.h"
#include "ops/linear/int8_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

void linear_q8ta_q8csw(Graph& graph, Args args) {
  constexpr const char* kOp = "linear_q8ta_q8csw";
  const PackedWeight packed = pack_q8csw(graph, args, kOp);
  check(is_float(args.out().dtype()), "%s: the output is %s, not f32 or f16", kOp, name(args.out().dtype()));
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

constexpr std::string_view kAny[] = {"f32", "f16", "i8", "u8"};
constexpr Axis kAnyAxes[] = {
    {"DTYPE", kAny}, {"STORAGE", glsl::linear_gemv::kSTORAGE}, {"WEIGHT_STORAGE", glsl::linear_gemv::kWEIGHT_STORAGE}};

constexpr LinearScheme kLinearQ8taQ8cswScheme{WeightType::q8, ScalePer::row, Rows::numbers};

}  // namespace

std::span<const Op> linear_q8ta_q8csw_ops() {
  static constexpr Op kOps[] = {
      {{"linear_q8ta_q8csw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int act, Tensor? residual, float x_scale, "
        "int x_zero, int qmin, int qmax -> Tensor"},
       linear_q8ta_q8csw,
       kAnyAxes,
       {.linear = &kLinearQ8taQ8cswScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
