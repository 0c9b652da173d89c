// SPDX-License-Identifier: Apache-2.0
// out[b, n, y, x] = act(sum over (c, ky, kx) of x[b, c, y * stride + ky * dilation - pad, ...] * weight[n, (c, ky, kx)]
// + bias[n]): convolutions of floats, with weights of x's dtype or of int8 by output channel; the bias is f32. `pads`:
// above, left, below, right; transposed: the stride spreads the input, and pads cut the output. Kernels:
// ops/conv/convolution.h.
//
// Error, against fp64 of the same stored numbers, with S = sum|x w| + |bias|: |err| <= u |y| + 2^-24 * (k + 4) * S * L;
// with cooperative matrices 2^-23 * (k + 4), which may truncate instead of rounding; u and L as in
// ops/linear/error_bound.h. fp32 as two fp16 (conv/fragments.glslh): 2^-23 * (k + 26) and 2^-19 and, with the largest
// elements of the pixel's patch and of the channel's weights, 2^-49 * (max|x| * sum|w| + sum|x| * max|w|).
#include "glsl/conv2d_tiled.h"
#include "ops/conv/conv_scheme.h"
#include "ops/conv/convolution.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

Convolution with_geometry(Convolution c, const Args& args, uint32_t first) {
  c.patches = patches(args, first, c.op);
  c.groups = args.integer(first + 4);
  c.patches.transposed = args.boolean(first + 5);
  c.act = args.integer(first + 6);
  c.out = args.out();
  check(c.out.dtype() == c.x.dtype(), "%s: x is %s, the output %s", c.op, name(c.x.dtype()), name(c.out.dtype()));
  return c;
}

void conv2d(Graph& graph, Args args) {
  Convolution c{.op = "conv2d", .x = args.tensor(0), .weight = args.tensor(1), .bias = args.tensor(2)};
  convolution(graph, with_geometry(c, args, 3));
}

void conv2d_q8csw(Graph& graph, Args args) {
  Convolution c{.op = "conv2d_q8csw",
                .x = args.tensor(0),
                .weight = args.tensor(1),
                .scale = args.tensor(2),
                .zero = args.tensor(3),
                .bias = args.tensor(4)};
  check(is_float(c.x.dtype()) && c.weight.dtype() == DType::i8, "%s: x is %s, the weight %s", c.op, name(c.x.dtype()),
        name(c.weight.dtype()));
  convolution(graph, with_geometry(c, args, 5));
}

constexpr Axis kFloats[] = {{"DTYPE", glsl::conv2d_tiled::kDTYPE}, {"STORAGE", glsl::conv2d_tiled::kSTORAGE}};

constexpr ConvScheme kConv2dScheme{false};
constexpr ConvScheme kConv2dQ8cswScheme{true};

}  // namespace

std::span<const Op> conv2d_ops() {
  static constexpr Op kOps[] = {
      {{"conv2d", 1,
        "Tensor x, Tensor weight, Tensor? bias, ints kernel, ints stride, ints pads, ints dilation, int groups, "
        "bool transposed, int act -> Tensor"},
       conv2d,
       kFloats,
       {.conv = &kConv2dScheme}},
      {{"conv2d_q8csw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, ints kernel, ints stride, ints pads, "
        "ints dilation, int groups, bool transposed, int act -> Tensor"},
       conv2d_q8csw,
       kFloats,
       {.conv = &kConv2dQ8cswScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
