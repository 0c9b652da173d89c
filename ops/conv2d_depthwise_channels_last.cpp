// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution of x [batch, height, width, channels], each channel with a window of its own: the weight is
// [kernel_h * kernel_w, channels], the bias f32. Between operators whose channels are last it saves two copies, and a
// subgroup reads neighbouring channels. `pads`: above, left, below, right.
//
// Error, against fp64 of the same stored numbers: as conv2d's without cooperative matrices (ops/conv2d.cpp).
#include "glsl/conv2d_depthwise_channels_last.h"

#include <cinttypes>

#include "ops/conv/depthwise_norm.h"
#include "ops/linear/epilogue.h"
#include "ops/op.h"
#include "ops/reference/products.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "conv2d_depthwise_channels_last";
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
  check(depthwise_span(p, 1) <= kMostDepthwiseSpan, "%s: the window spans %" PRId64 " columns, the limit is %" PRId64,
        kOp, depthwise_span(p, 1), kMostDepthwiseSpan);
  check(!bias || (bias.dtype() == DType::f32 && bias.numel() == weight.dim(1)),
        "%s: the bias must be f32 of %" PRId64 " elements", kOp, weight.dim(1));
  const DepthwiseChannelsLast c{.x = x, .weight = weight, .bias = bias, .out = out, .patches = p, .act = act};
  const auto write = [c, &graph] {
    graph.dispatch({c.out}, {c.x, c.weight, c.bias ? c.bias : c.x}, [c](Launch& launch) {
      c.out.resize(c.out_shape());
      if (c.out.numel() != 0) launch_depthwise(launch, c, nullptr);
    });
  };
  if (!defer_for_norm(graph, c, write)) write();
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
