// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution of x [batch, height, width, channels], each channel with a window of its own: the weight is
// [kernel_h * kernel_w, channels], the bias f32. Between operators whose channels are last it saves two copies, and a
// subgroup reads neighbouring channels. `pads`: above, left, below, right.
//
// Error, against fp64 of the same stored numbers: as conv2d's without cooperative matrices (ops/conv2d.cpp).
#include "glsl/conv2d_depthwise_channels_last.h"

#include <algorithm>
#include <cinttypes>

#include "base/divide.h"
#include "ops/linear/epilogue.h"
#include "ops/op.h"
#include "ops/reference/products.h"
#include "ops/shared/patch.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "conv2d_depthwise_channels_last";
constexpr int64_t kMostSpan = 16;  // columns of x that an invocation keeps in registers
// Invocations that a GPU has enough of: then one of more columns, which reads less, is the faster. H200: of 75,264 one
// column takes 8.9 us and four 13.9.
constexpr int64_t kManyWork = 1 << 17;
constexpr int64_t kManyParts = 152'000;
constexpr uint32_t kLanes = 128, kMostParts = 8;

// Columns of x that an invocation reads for so many of the output.
int64_t span(const Patches& p, int64_t columns) {
  return (columns - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1;
}

// Columns of the output that an invocation computes; `vec4s`: those of the whole output.
int64_t columns_of(const Patches& p, int64_t vec4s, const Features& features) {
  int64_t columns = 4;
  while (columns > 1 && (span(p, columns) > kMostSpan || (!features.cpu && vec4s / columns < kManyWork))) columns /= 2;
  return columns;
}

// Invocations that share a strip, each with some rows of its window: while a GPU has too few strips. H200, fp16, 7 x 7,
// us with 1, 2, 4 and 8: 75,264 strips 9.1, 7.9, 8.4, 9.8; 37,632 8.1, 6.3, 5.6, 6.5; 18,816 8.4, 6.1, 4.9, 5.1; 9,408
// 7.9, 5.9, 4.7, 4.5.
uint32_t parts_of(const Patches& p, int64_t strips, const Features& features) {
  uint32_t parts = 1;
  while (!features.cpu && parts < kMostParts && parts < p.kernel[0] &&
         strips * parts * 2 < features.filling(kManyParts))
    parts *= 2;
  return parts;
}

void conv2d_depthwise_channels_last(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), weight = args.tensor(1), bias = args.tensor(2), out = args.out();
  const Patches p = patches(args, 3, kOp);
  const uint32_t act = activation(args.integer(7), kOp);
  check(x.rank() == 4 && weight.rank() == 2, "%s: x has rank %u, the weight %u, not 4 and 2", kOp, x.rank(),
        weight.rank());
  check(is_float(x.dtype()) && weight.dtype() == x.dtype() && out.dtype() == x.dtype(),
        "%s: x is %s, the weight %s, the output %s", kOp, name(x.dtype()), name(weight.dtype()), name(out.dtype()));
  check(weight.dim(0) == p.kernel[0] * p.kernel[1],
        "%s: the weight has %" PRId64 " rows for a kernel of %" PRId64 " x %" PRId64, kOp, weight.dim(0), p.kernel[0],
        p.kernel[1]);
  check(weight.dim(1) % 4 == 0, "%s: %" PRId64 " channels, not a multiple of 4", kOp, weight.dim(1));
  check(span(p, 1) <= kMostSpan, "%s: the window spans %" PRId64 " columns, the limit is %" PRId64, kOp, span(p, 1),
        kMostSpan);
  check(!bias || (bias.dtype() == DType::f32 && bias.numel() == weight.dim(1)),
        "%s: the bias must be f32 of %" PRId64 " elements", kOp, weight.dim(1));
  graph.dispatch({out}, {x, weight, bias ? bias : x}, [=](Launch& launch) {
    check(x.dim(3) == weight.dim(1), "%s: x has %" PRId64 " channels, the weight %" PRId64, kOp, x.dim(3),
          weight.dim(1));
    out.resize({x.dim(0), p.count(0, x.dim(1), kOp), p.count(1, x.dim(2), kOp), x.dim(3)});
    if (out.numel() == 0) return;
    u32(x.numel());
    const int64_t columns = columns_of(p, u32(out.numel()) / 4, launch.features);
    const int64_t strips = ceil_div(out.dim(2), columns);
    glsl::conv2d_depthwise_channels_last::Params params{};
    params.vec4s = u32(x.dim(3) / 4);
    params.strips = u32(strips);
    params.count = u32(out.dim(0) * out.dim(1) * strips * params.vec4s);
    params.in_h = u32(x.dim(1));
    params.in_w = u32(x.dim(2));
    params.out_h = u32(out.dim(1));
    params.out_w = u32(out.dim(2));
    put(params, p);
    launch.params(params);
    const uint32_t parts = parts_of(p, params.count, launch.features);
    launch.over_groups(ceil_div(params.count, kLanes / parts), kLanes);
    launch.outer = 1;
    launch.flops = 2ull * static_cast<uint64_t>(out.numel() * weight.dim(0));
    launch.spec.insert(launch.spec.end(),
                       {bool(bias), act, u32(columns), params.kernel_w, params.stride_w, params.dilation_w, parts});
    launch.shader =
        &glsl::conv2d_depthwise_channels_last::variant(glsl::conv2d_depthwise_channels_last::dtype(x.dtype()));
  });
}

}  // namespace

std::span<const Op> conv2d_depthwise_channels_last_ops() {
  static constexpr Op kOps[] = {
      {{kOp, 1,
        "Tensor x, Tensor weight, Tensor? bias, ints kernel, ints stride, ints pads, ints dilation, int act -> Tensor"},
       conv2d_depthwise_channels_last,
       glsl::conv2d_depthwise_channels_last::axes,
       {"x=T[1,9,10,8] weight=T[49,8] bias=f32[8] kernel=[7,7] stride=[1,1] pads=[3,3,3,3] dilation=[1,1] act=0|4 "
        "-> T[1,9,10,8]; "
        "x=T[2,9,7,12] weight=T[15,12] kernel=[3,5] stride=[2,3] pads=[1,0,2,1] dilation=[2,1] act=1 -> T[2,4,2,12]; "
        "x=T[1,3,40,4] weight=T[16,4] kernel=[1,16] stride=[1,1] pads=[0,8,0,8] dilation=[1,1] act=0 -> T[1,3,41,4]; "
        "x=T[1,64,129,256]|T[1,64,66,256] weight=T[3,256] kernel=[1,3] stride=[1,1] pads=[0,1,0,1] dilation=[1,1] "
        "act=0",
        "x=f16[1,56,56,96] weight=f16[49,96] bias=f32[96] kernel=[7,7] stride=[1,1] pads=[3,3,3,3] dilation=[1,1] "
        "act=0; "
        "x=f16[1,14,14,384] weight=f16[49,384] bias=f32[384] kernel=[7,7] stride=[1,1] pads=[3,3,3,3] "
        "dilation=[1,1] act=0",
        reference::conv2d_depthwise_channels_last}}};
  return kOps;
}

}  // namespace pumice::engine
