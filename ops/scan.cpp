// SPDX-License-Identifier: Apache-2.0
// Running sums, products, extrema and log(sum(exp)) along a dimension, in fp32 or integers (Python casts narrower
// types); cummax and cummin with places, the last of equal elements, and NaN before all numbers. Sums and products of
// i32 wrap, of i64 one that 32 bits cannot hold is an error of the run.
//
// Error of floats at element j of n: cumsum 2^-24 * (ceil(n / 32) + 8) * sum|x| of the elements up to j, and at most
// 2^-18 of the largest result: a scan of at least 32 lanes, of rows of more than 1024 elements with eight each, blocks
// of them one after the other; cumprod 2^-24 * j |y|; logcumsumexp (ceil(n / 32) + 8) * 2^-20 (|y| + 1), each step
// log_1_plus of an exp; cummax and cummin choose: exact.
#include <cmath>

#include "glsl/scan.h"
#include "ops/op.h"
#include "ops/reference/reductions.h"
#include "ops/shared/shape.h"
#include "ops/shared/sort_rows.h"

namespace pumice::engine {
namespace {

using glsl::scan::OP;

constexpr const char* kNames[] = {"cumprod", "cummax", "cummin", "logcumsumexp", "cumsum"};

void scan(Graph& graph, const Args& args, OP code) {
  const char* const op = kNames[static_cast<size_t>(code)];
  const bool has_places = code == OP::max || code == OP::min;
  const Tensor x = args.tensor(0), out = args.out(), places = has_places ? args.out(1) : graph.scratch(DType::i32, 1);
  const uint32_t dim = x.rank() == 0 ? 0 : axis(args.integer(1), x.rank(), op), call = graph.call_id();
  check(x.dtype() == out.dtype(), "%s: input is %s, output %s", op, name(x.dtype()), name(out.dtype()));
  check(places.dtype() == DType::i64 || places.dtype() == DType::i32, "%s: the places are %s", op,
        name(places.dtype()));
  check(code != OP::logsumexp || is_float(x.dtype()), "%s: needs floats, got %s", op, name(x.dtype()));
  graph.dispatch({out, places, graph.status()}, {x}, [=](Launch& launch) {
    out.resize(x.shape());
    places.resize(has_places ? x.shape() : Shape{0});
    if (out.numel() == 0) return;
    const Rows rows(x, dim);
    launch.params(glsl::scan::Params{.rows = rows.count, .extent = rows.extent, .inner = rows.inner, .call = call});
    launch.shader = &glsl::scan::variant(glsl::scan::dtype(x.dtype()));
    launch.over_groups(rows.count, rows.extent > 64 ? 128 : 32);
    // Rows of more elements than that have a larger bound than the roundings of eight elements one after the other add.
    const uint32_t each = rows.extent > 1024 ? 8 : 1;
    const bool vectors = each != 1 && rows.inner == 1 && rows.extent % 4 == 0;
    launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(code), each, uint32_t{vectors}});
  });
}

template <OP code>
void build(Graph& graph, Args args) {
  scan(graph, args, code);
}

template <OP code>
void reference_of(HostCall& call) {
  reference::scan(call, static_cast<int>(code));
}

template <OP code>
constexpr Op row(std::span<const Axis> axes, std::string_view cases, std::string_view bench) {
  constexpr bool kPlaces = code == OP::max || code == OP::min;
  return {{kNames[static_cast<size_t>(code)], 1,
           kPlaces ? "Tensor x, int dim -> Tensor, Tensor" : "Tensor x, int dim -> Tensor"},
          build<code>,
          axes,
          {cases, bench, reference_of<code>}};
}

constexpr Axis kFloats[] = {{"DTYPE", std::span(glsl::scan::kDTYPE).first(1)}};
constexpr std::string_view kExtremes =
    "x=f32[3,37]|f32[3,37]{special} dim=-1 -> f32[3,37] i64[3,37]; x=f32[2,300,3] dim=1 -> f32[2,300,3] i32[2,300,3]; "
    "x=i32[5,90]{-3..3} dim=1 -> i32[5,90] i64[5,90]; x=i64[5,9] dim=0 -> i64[5,9] i64[5,9]; "
    "x=f32[2,2052]{special} dim=1 -> f32[2,2052] i64[2,2052]; x=f32[2,1500,2] dim=1 -> f32[2,1500,2] i64[2,1500,2]";
constexpr std::string_view kBenchExtremes = "x=f32[1024,1024] dim=-1 -> f32[1024,1024] i64[1024,1024]";

}  // namespace

std::span<const Op> scan_ops() {
  static constexpr Op kOps[] = {
      row<OP::prod>(
          glsl::scan::axes,
          "x=f32[3,37]{0.5..1.6} dim=-1|0; x=f32[2,300,3]{0.9..1.1} dim=1; x=i32[5,90]{-9..9}|i64[5,9]{-9..9} "
          "dim=1; x=i64[40]{2..3} dim=0; x=f32[2,2052]{0.99..1.01}|i64[2,2050]{0..1} dim=1; x=i32[2,1500,2]{-1..1} "
          "dim=1",
          "x=f32[1024,1024] dim=-1"),
      row<OP::max>(glsl::scan::axes, kExtremes, kBenchExtremes),
      row<OP::min>(glsl::scan::axes, kExtremes, kBenchExtremes),
      row<OP::sum>(glsl::scan::axes,
                   "x=f32[3,37] dim=-1|0; x=f32[2,300,3] dim=1; x=i32[5,9]|i64[5,9] dim=1; "
                   "x=i64[5]{1500000000..2000000000} dim=0; x=i32[5]{1500000000..2000000000} dim=0; "
                   "x=f32[2,2052]|f32[2,2049]|i64[2,2052]{-9..9} dim=1; x=f32[2,1500,2] dim=1; "
                   "x=i64[2,2052]{1000000..2000000} dim=1",
                   "x=f32[1024,1024] dim=-1; x=f32[4096,4096] dim=-1"),
      row<OP::logsumexp>(
          kFloats,
          "x=f32[3,37]|f32[3,37]{special} dim=-1|0; x=f32[2,300,3] dim=1; x=f32[2,2052]|f32[2,2049]{special} dim=1",
          "x=f32[1024,1024] dim=-1"),
  };
  return kOps;
}

}  // namespace pumice::engine
