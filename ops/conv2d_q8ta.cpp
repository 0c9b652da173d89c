// SPDX-License-Identifier: Apache-2.0
// 2D convolutions of 8-bit integers of a constant scale and zero point with int8 weights by output channel, summed
// exactly:
//   real = act(sum of (x - x_zero) * (weight - zero) * (x_scale * scale) + bias)
// conv2d_q8ta_q8csw returns it; q8ta_conv2d returns clamp(round(real / out_scale) + out_zero, qmin, qmax), where only a
// quotient very close to a tie may round to the other side. Padding is x_zero, a real 0. Kernels:
// ops/conv/convolution.h.
#include "glsl/conv2d_tiled_int8.h"
#include "ops/conv/conv_scheme.h"
#include "ops/conv/convolution.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

// The arguments from x to x_zero.
constexpr uint32_t kCommon = 14;
Convolution common(const Args& args, const char* op) {
  Convolution c{.op = op,
                .x = args.tensor(0),
                .weight = args.tensor(1),
                .scale = args.tensor(2),
                .zero = args.tensor(3),
                .bias = args.tensor(4),
                .out = args.out(),
                .patches = patches(args, 5, op),
                .groups = args.integer(9),
                .act = args.integer(11)};
  check(is_byte(c.x.dtype()) && c.weight.dtype() == DType::i8, "%s: x is %s, the weight %s", op, name(c.x.dtype()),
        name(c.weight.dtype()));
  c.patches.transposed = args.boolean(10);
  const int64_t low = least(c.x.dtype());
  c.x_scale = scale_at(args, 12, op);
  c.x_zero = zero_at(args, 13, low, low + 255, op);
  return c;
}

void conv2d_q8ta_q8csw(Graph& graph, Args args) {
  const Convolution c = common(args, "conv2d_q8ta_q8csw");
  check(is_float(c.out.dtype()), "%s: the output is %s", c.op, name(c.out.dtype()));
  convolution(graph, c);
}

void q8ta_conv2d(Graph& graph, Args args) {
  Convolution c = common(args, "q8ta_conv2d");
  check(is_byte(c.out.dtype()), "%s: the output is %s", c.op, name(c.out.dtype()));
  c.requantize = requantize_at(args, kCommon, c.out.dtype(), c.op);
  convolution(graph, c);
}

constexpr Axis kBytes[] = {{"DTYPE", glsl::conv2d_tiled_int8::kIN}, {"STORAGE", glsl::conv2d_tiled_int8::kSTORAGE}};

constexpr ConvScheme kConv2dQ8taQ8cswScheme{true, true};
constexpr ConvScheme kQ8taConv2dScheme{true, true, true};

}  // namespace

std::span<const Op> conv2d_q8ta_ops() {
  static constexpr Op kOps[] = {
      {{"conv2d_q8ta_q8csw", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, ints kernel, ints stride, ints pads, "
        "ints dilation, int groups, bool transposed, int act, float x_scale, int x_zero -> Tensor"},
       conv2d_q8ta_q8csw,
       kBytes,
       {.conv = &kConv2dQ8taQ8cswScheme}},
      {{"q8ta_conv2d", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, ints kernel, ints stride, ints pads, "
        "ints dilation, int groups, bool transposed, int act, float x_scale, int x_zero, float out_scale, int "
        "out_zero, "
        "int qmin, int qmax -> Tensor"},
       q8ta_conv2d,
       kBytes,
       {.conv = &kQ8taConv2dScheme}},
  };
  return kOps;
}

}  // namespace pumice::engine
