// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/dynamic_int8.h"

#include <cinttypes>
#include <cmath>

#include "glsl/include/core/modes.glslh"
#include "ops/linear/int8_node.h"
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

}  // namespace

void linear_dynamic_int8(Graph& graph, const Args& args, const char* op, DType weight, int64_t group, uint32_t act) {
  check(args.tensor(1).dtype() == weight, "%s: the weight is %s, not %s", op, name(args.tensor(1).dtype()),
        name(weight));
  const PackedWeight packed = pack_weight(graph, op, args.tensor(1), args.tensor(2), args.tensor(3), group, true);
  RowSource rows{.x = args.tensor(0), .source = ROWS_CHOSEN};
  check(is_float(rows.x.dtype()) && is_float(args.out().dtype()), "%s: x is %s and the output %s, not f32 or f16", op,
        name(rows.x.dtype()), name(args.out().dtype()));
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

}  // namespace pumice::engine
