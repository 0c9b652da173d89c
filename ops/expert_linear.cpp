// SPDX-License-Identifier: Apache-2.0
// Linears of which each row of x has its own: the experts chosen for it. The weight has the E experts' rows one below
// the other, N of each. With row r = x[t], or x[t, j] where x has a row for each expert, and e = chosen[t, j]:
//   y[n]         = sum_k r[k] * (weight[e * N + n, k] - zero[.., k / group]) * scale[.., k / group]
//   z[t, j, n]   = act(y[n])                                        or, `gated`, of half as many columns:
//   z[t, j, 16 i + c] = act(y[32 i + c]) * y[32 i + 16 + c], c < 16
//   out          = z, or with factors [T, A]: out[t] = sum_j factors[t, j] * z[t, j]
// Only rows of chosen experts are read. An expert that does not exist ends the run with an error. The weight is i4 or
// i8 with scales, or f16 or f32 without; N is a multiple of 16 (32 where it is gated), K of 8.
//
// One row t reads its experts from `chosen`; of many rows those with one expert come together, in blocks that read its
// weight once (glsl/expert_rows.glsl).
//
// Error: linear_error (ops/linear/error_bound.h), gated that of a product of two such sums; with factors each z is
// rounded to x's dtype, and the sum over j takes A roundings.
#include <cinttypes>

#include "glsl/expert_gemv.h"
#include "glsl/expert_sum.h"
#include "glsl/include/core/modes.glslh"
#include "ops/linear/experts.h"
#include "ops/op.h"
#include "ops/reference/experts.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "expert_linear";

Experts read(Graph& graph, const Args& args) {
  Experts e{.weight = pack_weight(graph, kOp, args.tensor(1), args.tensor(2), args.tensor(3), args.integer(7)),
            .x = args.tensor(0),
            .chosen = args.tensor(4),
            .epilogue = {.act = args.integer(8), .gated = args.boolean(9)}};
  const int64_t count = args.integer(6);
  check(count >= 1 && count <= MOST_EXPERTS && e.weight.n % count == 0,
        "%s: %u rows of %" PRId64 " experts; 1 to %u experts with as many rows each are needed", kOp, e.weight.n, count,
        MOST_EXPERTS);
  e.count = u32(count);
  e.weight.n /= e.count;
  const uint32_t rows = e.epilogue.gated ? 32 : 16;
  check(e.weight.n % rows == 0 && e.weight.k % 8 == 0,
        "%s: an expert's weight is [%u, %u]; multiples of %u and 8 are needed", kOp, e.weight.n, e.weight.k, rows);
  check(e.x.rank() == 2 || e.x.rank() == 3, "%s: x of rank %u", kOp, e.x.rank());
  check(is_float(e.x.dtype()), "%s: x is %s", kOp, name(e.x.dtype()));
  check_weight_of(kOp, e.x, e.weight);
  check(e.chosen.rank() == 2 && (e.chosen.dtype() == DType::i64 || e.chosen.dtype() == DType::i32),
        "%s: the experts chosen are %s of rank %u", kOp, name(e.chosen.dtype()), e.chosen.rank());
  check_epilogue(kOp, e.x.dtype(), e.epilogue);
  return e;
}

void sum(Graph& graph, Tensor out, Tensor parts, Tensor factors) {
  graph.dispatch({out}, {parts, factors}, [=](Launch& launch) {
    check(factors.dim(0) == parts.dim(0) && factors.dim(1) == parts.dim(1),
          "%s: factors of another shape than the experts chosen", kOp);
    out.resize({parts.dim(0), parts.dim(2)});
    if (out.numel() == 0) return;
    const uint32_t count = u32(out.numel()) / 4;
    launch.over(count);
    launch.params(glsl::expert_sum::Params{count, u32(parts.dim(2)) / 4, u32(parts.dim(1))});
    launch.shader = &glsl::expert_sum::variant(glsl::expert_sum::dtype(out.dtype()));
  });
}

void build(Graph& graph, Args args) {
  const Experts experts = read(graph, args);
  const Tensor factors = args.tensor(5), out = args.out();
  check(out.dtype() == experts.x.dtype(), "%s: x is %s, the output %s", kOp, name(experts.x.dtype()),
        name(out.dtype()));
  check(!factors || (factors.dtype() == DType::f32 && factors.rank() == 2), "%s: factors are not f32 of rank 2", kOp);
  const Tensor parts = factors ? graph.scratch(experts.x.dtype(), 3) : out;
  expert_product(graph, parts, experts, false);
  expert_product(graph, parts, experts, true);
  if (factors) sum(graph, out, parts, factors);
}

}  // namespace

std::span<const Op> expert_linear_ops() {
  static constexpr Op kOps[] = {
      {{"expert_linear", 1,
        "Tensor x, Tensor weight, Tensor? scale, Tensor? zero, Tensor chosen, Tensor? factors, int experts, int group, "
        "int act, bool gated -> Tensor"},
       build,
       glsl::expert_gemv::axes,
       {// A row, many rows, gated and summed, every kind of weight; experts that do not exist.
        "x=T[1,128] weight=const:i4[256,128] scale=const:f16[256,4]{0.01..0.1} chosen=i64[1,2]{0..7} experts=8 "
        "group=32 act=4 gated=1 -> T[1,2,16]; "
        "x=T[37,128] weight=const:i4[256,128] scale=const:f16[256,4]{0.01..0.1} chosen=i64[37,2]{0..7} experts=8 "
        "group=32 act=4 gated=1 -> T[37,2,16]; "
        "x=T[40,3,72] weight=const:i8[240,72] scale=const:f32[240,1]{0.01..0.1} zero=const:i8[240,1]{-9..9} "
        "chosen=i32[40,3]{0..4} factors=f32[40,3] experts=5 group=72 act=0 gated=0 -> T[40,48]; "
        "x=T[1,3,72] weight=const:i8[240,72] scale=const:f32[240,1]{0.01..0.1} chosen=i32[1,3]{0..4} "
        "factors=f32[1,3] experts=5 group=72 act=0 gated=0 -> T[1,48]; "
        "x=T[70,72] weight=const:T[64,72] chosen=i64[70,1]{0..1} experts=2 group=0 act=3 gated=1 -> T[70,1,16]; "
        "x=T[3,72] weight=const:T[96,72] chosen=i64[3,2]{0..2} experts=3 group=0 act=0 gated=0 -> T[3,2,32]; "
        "x=T[1,64] weight=const:i4[64,64] scale=const:f32[64,2]{0.01..0.1} chosen=i64[1,2]{4..5}|i64[1,2]{-2..-1} "
        "experts=4 group=32 act=0 gated=0 -> T[1,2,16]; "
        "x=T[9,64] weight=const:i4[64,64] scale=const:f32[64,2]{0.01..0.1} chosen=i64[9,2]{3..9}|i64[9,2]{-2..3} "
        "experts=4 group=32 act=0 gated=0 -> T[9,2,16]; "
        "x=T[3,72] weight=const:i4[64,72] scale=const:f32[64,1]{0.01..0.1} chosen=i64[3,1]{0..1} experts=2 "
        "group=72 act=0 gated=0 -> T[3,1,32]; "
        "x=T[3,64] weight=const:i8[64,64] scale=const:f32[64,1]{0.01..0.1} chosen=i64[3,1]{0..1} experts=2 "
        "group=64 act=0 gated=0 -> T[3,1,32]; "
        "x=T[3,64] weight=const:T[64,64] chosen=i64[3,1]{0..1} experts=2 group=0 act=0 gated=0 -> T[3,1,32]",
        "x=f16[1,2048] weight=const:i4[196608,2048] scale=const:f16[196608,64]{0.001..0.01} chosen=i64[1,8]{0..127} "
        "experts=128 group=32 act=4 gated=1 -> f16[1,8,768]; "
        "x=f16[1,8,768] weight=const:i4[262144,768] scale=const:f16[262144,24]{0.001..0.01} chosen=i64[1,8]{0..127} "
        "factors=f32[1,8] experts=128 group=32 act=0 gated=0 -> f16[1,2048]; "
        "x=f16[512,2048] weight=const:i4[196608,2048] scale=const:f16[196608,64]{0.001..0.01} "
        "chosen=i64[512,8]{0..127} experts=128 group=32 act=4 gated=1 -> f16[512,8,768]; "
        "x=f16[512,8,768] weight=const:i4[262144,768] scale=const:f16[262144,24]{0.001..0.01} "
        "chosen=i64[512,8]{0..127} factors=f32[512,8] experts=128 group=32 act=0 gated=0 -> f16[512,2048]",
        reference::expert_linear}},
  };
  return kOps;
}

}  // namespace pumice::engine
