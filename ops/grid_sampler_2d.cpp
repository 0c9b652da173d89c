// SPDX-License-Identifier: Apache-2.0
// out[n, c, i, j] = x[n, c] at the place grid[n, i, j], as PyTorch's grid_sampler_2d: x [N, C, H, W], grid [N, I, J, 2]
// of the same dtype. interpolation 0 bilinear, 1 nearest, 2 bicubic; padding 0 zeros, 1 border, 2 reflection.
//
// Error: places are computed in fp32, |place error| <= 2^-22 * size * (|coordinate| + 1). For each element of distance
// a bilinear value moves by at most twice the largest element, a bicubic one by 4.2 times: the slopes of the weights
// along one axis add up to 3, the weights along the other to 1.375. And 2^-20 of the largest element for weights and
// sums.
#include "glsl/grid_sampler_2d.h"

#include <cinttypes>

#include "base/divide.h"
#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/reference/images.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void grid_sampler_2d(Graph& graph, Args args) {
  constexpr const char* kOp = "grid_sampler_2d";
  const Tensor x = args.tensor(0), grid = args.tensor(1), out = args.out();
  const int64_t interpolation = args.integer(2), padding = args.integer(3);
  const bool aligned = args.boolean(4);
  check(x.rank() == 4 && grid.rank() == 4, "%s: x of rank %u, a grid of rank %u, not 4", kOp, x.rank(), grid.rank());
  check(is_float(x.dtype()) && x.dtype() == grid.dtype() && x.dtype() == out.dtype(), "%s: x %s, grid %s, output %s",
        kOp, name(x.dtype()), name(grid.dtype()), name(out.dtype()));
  check(interpolation >= 0 && interpolation <= 2 && padding >= 0 && padding <= 2,
        "%s: interpolation %" PRId64 " or padding %" PRId64 " is not in 0..2", kOp, interpolation, padding);
  graph.dispatch({out}, {x, grid}, [=](Launch& launch) {
    check(grid.dim(0) == x.dim(0) && grid.dim(3) == 2,
          "%s: a grid [%" PRId64 ", .., .., %" PRId64 "] for %" PRId64 " images", kOp, grid.dim(0), grid.dim(3),
          x.dim(0));
    out.resize({x.dim(0), x.dim(1), grid.dim(1), grid.dim(2)});
    if (out.numel() == 0) return;
    check(x.numel() != 0, "%s: an empty image", kOp);
    u32(x.numel());
    u32(grid.numel());
    const bool by_place = x.dtype() == DType::f32;
    const int64_t positions = grid.dim(1) * grid.dim(2);
    const uint32_t items =
        by_place ? u32(positions * x.dim(0) * ceil_div(x.dim(1), int64_t{GRID_CHANNELS})) : vec4_groups(out);
    launch.over(items);
    launch.params(glsl::grid_sampler_2d::Params{.items = items,
                                                .last = u32(out.numel() - 1),
                                                .positions = u32(positions),
                                                .channels = u32(x.dim(1)),
                                                .in_h = u32(x.dim(2)),
                                                .in_w = u32(x.dim(3))});
    launch.spec.insert(launch.spec.end(),
                       {static_cast<uint32_t>(interpolation), static_cast<uint32_t>(padding), uint32_t{aligned}});
    launch.shader = &glsl::grid_sampler_2d::variant(glsl::grid_sampler_2d::dtype(x.dtype()));
  });
}

}  // namespace

std::span<const Op> grid_sampler_2d_ops() {
  static constexpr Op kOps[] = {
      {{"grid_sampler_2d", 1, "Tensor x, Tensor grid, int interpolation, int padding, bool aligned -> Tensor"},
       grid_sampler_2d,
       glsl::grid_sampler_2d::axes,
       {"x=T[2,3,5,7] grid=T[2,3,5,2]{-1.4..1.3} interpolation=0|1|2 padding=0|1 aligned=0|1 -> T[2,3,3,5]; "
        "x=T[1,2,4,6] grid=T[1,9,4,2]{-2.9..3.3} interpolation=0|2 padding=2 aligned=0|1 -> T[1,2,9,4]; "
        "x=T[1,2,1,1] grid=T[1,3,1,2]{-2..2} interpolation=0 padding=0|2 aligned=1 -> T[1,2,3,1]",
        "x=f32[4,16,512,512] grid=f32[4,512,512,2]{-1..1} interpolation=0 padding=0 aligned=0 -> f32[4,16,512,512]",
        reference::grid_sampler_2d}}};
  return kOps;
}

}  // namespace pumice::engine
