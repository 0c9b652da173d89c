// SPDX-License-Identifier: Apache-2.0
// As linear_q4gsw, linear_q8gsw and linear_q8csw, with x quantized to 8-bit integers at run time, by parameters chosen
// from x itself: for each row of it (per_token 1), in the dtype of x as torchao does, or for all of it (0), in fp32
// from the scale on, as quantized_decomposed does; 2: likewise for each row (torchao with a scale_dtype of fp32).
// mapping: torchao's MappingType (0 asymmetric, 1 symmetric, 2 symmetric without clipping error); eps: the least scale.
// Shaders, layout and choice of kernel: ops/linear/.
//
// The integers and parameters of x are PyTorch's, bit for bit. Error, against fp64 of the same integers and scales:
// that of ops/linear.cpp with K + 28 (the scales of groups and rows round, too). A row of x with an infinity or NaN
// gives NaN, as in PyTorch.
#include <cinttypes>
#include <cmath>

#include "glsl/include/core/modes.glslh"
#include "glsl/linear_gemv.h"
#include "ops/linear/int8_node.h"
#include "ops/linear/linear_scheme.h"
#include "ops/op.h"
#include "ops/quant/choose_qparams.h"

namespace pumice::engine {
namespace {

struct Scales {
  Tensor scale, zero;
};

// A scale and a zero point for all of x, or for each row; chosen once for all linears that read it.
void choose_before(Graph& graph, RowSource& rows, bool each_row) {
  const Tensor x = rows.x;
  const auto one = graph.shared<Scales>(format("scales %d %u %u %" PRId64 " %" PRId64 " %a", each_row, x.id(),
                                               rows.mapping, rows.low, rows.high, static_cast<double>(rows.eps)));
  rows.source = ROWS_GIVEN;
  const bool known{one->scale};
  if (!known) *one = {graph.scratch(DType::f32, x.rank()), graph.scratch(DType::i32, x.rank())};
  rows.scales = {.tensor = one->scale, .stored = STORED_F32};
  rows.zeros = {.tensor = one->zero, .stored = STORED_I32};
  if (known) return;
  std::vector<int64_t> block(x.rank(), each_row ? 1 : -1);
  if (!block.empty()) block.back() = -1;
  choose_qparams(graph, one->scale, one->zero, x, block,
                 {rows.mapping == QPARAMS_ASYMMETRIC ? QPARAMS_TENSOR : rows.mapping, rows.low, rows.high, rows.eps,
                  x.dtype() == DType::f16 ? STEPS_F16_THEN_F32 : STEPS_F32});
}

// `group` columns share a scale; `act`: the index of that argument; the others follow it.
void build(Graph& graph, const Args& args, const char* op, DType weight, int64_t group, uint32_t act) {
  check(args.tensor(1).dtype() == weight, "%s: the weight is %s, not %s", op, name(args.tensor(1).dtype()),
        name(weight));
  const PackedWeight packed = pack_weight(graph, op, args.tensor(1), args.tensor(2), args.tensor(3), group, true);
  RowSource rows{.x = args.tensor(0), .source = ROWS_CHOSEN};
  check(is_float(rows.x.dtype()), "%s: x is %s, not f32 or f16", op, name(rows.x.dtype()));
  const int64_t mapping = args.integer(act + 2), per_token = args.integer(act + 6);
  check(mapping >= 0 && mapping <= QPARAMS_NO_CLIPPING, "%s: mapping %" PRId64 " is not 0, 1 or 2", op, mapping);
  check(per_token >= 0 && per_token <= 2, "%s: per_token is %" PRId64 ", not 0, 1 or 2", op, per_token);
  rows.mapping = static_cast<uint32_t>(mapping);
  rows.low = args.integer(act + 3);
  rows.high = args.integer(act + 4);
  check_range(rows.low, rows.high, op);
  rows.eps = static_cast<float>(args.real(act + 5));
  check(rows.eps >= 0 && std::isfinite(rows.eps), "%s: eps is %g", op, args.real(act + 5));
  if (per_token != 1) choose_before(graph, rows, per_token == 2);
  linear_int8(graph, {.op = op,
                      .rows = rows,
                      .weight = packed,
                      .epilogue = {args.tensor(4), args.tensor(act + 1), args.integer(act)},
                      .requantize = {},
                      .out = args.out()});
}

void linear_dq8ca_q4gsw(Graph& graph, Args args) {
  build(graph, args, "linear_dq8ca_q4gsw", DType::i4, args.integer(5), 6);
}
void linear_dq8ca_q8gsw(Graph& graph, Args args) {
  build(graph, args, "linear_dq8ca_q8gsw", DType::i8, args.integer(5), 6);
}
void linear_dq8ca_q8csw(Graph& graph, Args args) {
  build(graph, args, "linear_dq8ca_q8csw", DType::i8, args.tensor(1).dim(-1), 5);
}

#define WEIGHT_ARGS "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, "
#define X_ARGS "int act, Tensor? residual, int mapping, int qmin, int qmax, float eps, int per_token -> Tensor"

constexpr LinearScheme kLinearDq8caQ4gswScheme{WeightType::q4, ScalePer::group, Rows::chosen};
constexpr LinearScheme kLinearDq8caQ8gswScheme{WeightType::q8, ScalePer::group, Rows::chosen};
constexpr LinearScheme kLinearDq8caQ8cswScheme{WeightType::q8, ScalePer::row, Rows::chosen};

}  // namespace

std::span<const Op> linear_dq8ca_ops() {
  static constexpr Op kOps[] = {
      {{"linear_dq8ca_q4gsw", 1, WEIGHT_ARGS "int group, " X_ARGS},
       linear_dq8ca_q4gsw,
       glsl::linear_gemv::axes,
       {.linear = &kLinearDq8caQ4gswScheme}},
      {{"linear_dq8ca_q8gsw", 1, WEIGHT_ARGS "int group, " X_ARGS},
       linear_dq8ca_q8gsw,
       glsl::linear_gemv::axes,
       {.linear = &kLinearDq8caQ8gswScheme}},
      {{"linear_dq8ca_q8csw", 1, WEIGHT_ARGS X_ARGS},
       linear_dq8ca_q8csw,
       glsl::linear_gemv::axes,
       {.linear = &kLinearDq8caQ8cswScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
