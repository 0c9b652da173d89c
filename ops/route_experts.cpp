// SPDX-License-Identifier: Apache-2.0
// The router of a mixture of experts. Of each row of logits [T, E]: the `count` largest, largest first, as their shares
// of softmax(row), f32, and their positions. `normalize`: shares of softmax over those chosen alone, so that they add
// up to 1. Of equal logits the earlier comes first; NaN is larger than every number, as torch.topk has it.
//
// Error: that of softmax (ops/softmax.cpp).
#include "glsl/route_experts.h"

#include <algorithm>
#include <bit>

#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/reference/experts.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "route_experts";

void route_experts(Graph& graph, Args args) {
  const Tensor logits = args.tensor(0), shares = args.out(0), positions = args.out(1);
  const int64_t count = args.integer(1);
  const bool normalize = args.boolean(2);
  check(is_float(logits.dtype()) && logits.rank() == 2, "%s: logits are %s of rank %u", kOp, name(logits.dtype()),
        logits.rank());
  check(shares.dtype() == DType::f32, "%s: the shares are %s", kOp, name(shares.dtype()));
  check(positions.dtype() == DType::i64 || positions.dtype() == DType::i32, "%s: the positions are %s", kOp,
        name(positions.dtype()));
  graph.dispatch({shares, positions}, {logits}, [=](Launch& launch) {
    const int64_t rows = logits.dim(0), width = logits.dim(1);
    check(width <= MOST_EXPERTS && count >= 1 && count <= width,
          "%s: %lld of %lld experts; at least one, of at most %u", kOp, static_cast<long long>(count),
          static_cast<long long>(width), MOST_EXPERTS);
    for (const Tensor& out : {shares, positions}) out.resize({rows, count});
    if (rows == 0) return;
    const uint32_t most = std::min(256u, std::bit_floor(launch.features.max_invocations));
    launch.over_groups(u32(rows), std::clamp(std::bit_ceil(u32(width)), 32u, most));
    launch.spec.push_back(normalize);
    launch.params(glsl::route_experts::Params{u32(rows), u32(width), u32(count)});
    launch.shader = &glsl::route_experts::variant(glsl::route_experts::dtype(logits.dtype()));
  });
}

}  // namespace

std::span<const Op> route_experts_ops() {
  static constexpr Op kOps[] = {
      {{"route_experts", 1, "Tensor logits, int count, bool normalize -> Tensor, Tensor"},
       route_experts,
       glsl::route_experts::axes,
       {// Ties, and rows with NaN and infinities.
        "logits=T[5,8]{-3..3}|T[5,8]{1..1}|T[5,8]{special} count=2 normalize=0|1 -> f32[5,2] i64[5,2]; "
        "logits=T[3,129]{-9..9} count=8 normalize=0|1 -> f32[3,8] i64[3,8]; "
        "logits=T[2,600]{special} count=3 normalize=1 -> f32[2,3] i64[2,3]; "
        "logits=T[2,1] count=1 normalize=0|1 -> f32[2,1] i64[2,1]",
        "logits=f16[1,128] count=8 normalize=1 -> f32[1,8] i64[1,8]; "
        "logits=f16[512,128] count=8 normalize=1 -> f32[512,8] i64[512,8]",
        reference::route_experts}},
  };
  return kOps;
}

}  // namespace pumice::engine
