// SPDX-License-Identifier: Apache-2.0
// Running sums along a dimension, in fp32 or integers (Python casts narrower types). Integers wrap; an i64 result that
// 32 bits cannot hold is an error of the run.
//
// Error of floats, at element j of n: |err| <= u |y| + 2^-24 * (ceil(n / 32) + 8) * sum|x| of the elements up to j, and
// at most 2^-18 of the largest result: a scan of at least 32 lanes, blocks of them one after the other.
#include "glsl/cumsum.h"

#include "ops/op.h"
#include "ops/reference/reductions.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void cumsum(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), out = args.out();
  check(x.dtype() == out.dtype(), "cumsum: input is %s, output %s", name(x.dtype()), name(out.dtype()));
  const bool scalar = x.rank() == 0;
  const uint32_t dim = scalar ? 0 : axis(args.integer(1), x.rank(), "cumsum");
  const uint32_t call = graph.call_id();
  graph.dispatch(reporting(graph, out, out.dtype() == DType::i64), {x}, [=](Launch& launch) {
    out.resize(x.shape());
    if (out.numel() == 0) return;
    const int64_t length = scalar ? 1 : x.dim(dim);
    const uint32_t rows = u32(x.numel() / length);
    launch.params(glsl::cumsum::Params{
        .rows = rows, .extent = u32(length), .inner = scalar ? 1 : u32(x.numel(dim + 1, x.rank())), .call = call});
    launch.shader = &glsl::cumsum::variant(glsl::cumsum::dtype(x.dtype()));
    const uint32_t lanes = length > 64 ? 128 : 32;
    launch.over(uint64_t{rows} * lanes, lanes);
  });
}

}  // namespace

std::span<const Op> cumsum_ops() {
  static constexpr Op kOps[] = {{{"cumsum", 1, "Tensor x, int dim -> Tensor"},
                                 cumsum,
                                 glsl::cumsum::axes,
                                 {"x=f32[3,37] dim=-1|0; x=f32[2,300,3] dim=1; x=i32[5,9]|i64[5,9] dim=1; "
                                  "x=i64[5]{1500000000..2000000000} dim=0; x=i32[5]{1500000000..2000000000} dim=0",
                                  "x=f32[1024,1024] dim=-1", reference::cumsum}}};
  return kOps;
}

}  // namespace pumice::engine
