// SPDX-License-Identifier: Apache-2.0
// q8ta_add, q8ta_mul: sums and products of 8-bit integers of constant scales and zero points, with broadcasting,
//   clamp(round(act(real(a) OP real(b)) / out_scale) + out_zero, qmin, qmax)     real(q) = (q - zero) * scale
// With no activation, relu and relu6 bit for bit what eager PyTorch gives in fp32.
#include "glsl/q8ta_binary.h"

#include "ops/conv/channels_last_product.h"
#include "ops/linear/epilogue.h"
#include "ops/op.h"
#include "ops/quant/requantize.h"
#include "ops/reference/integers.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

using glsl::q8ta_binary::BINARY;

template <BINARY code>
void binary(Graph& graph, Args args) {
  constexpr const char* kOp = code == BINARY::add ? "q8ta_add" : "q8ta_mul";
  const Tensor a = args.tensor(0), b = args.tensor(1), out = args.out();
  const DType dtype = a.dtype();
  check(is_byte(dtype) && b.dtype() == dtype && out.dtype() == dtype, "%s: operands are %s and %s, the output %s", kOp,
        name(dtype), name(b.dtype()), name(out.dtype()));
  const int64_t low = least(dtype), high = low + 255;
  glsl::q8ta_binary::Params numbers{};
  numbers.a_scale = static_cast<float>(scale_at(args, 2, kOp));
  numbers.a_zero = static_cast<int32_t>(zero_at(args, 3, low, high, kOp));
  numbers.b_scale = static_cast<float>(scale_at(args, 4, kOp));
  numbers.b_zero = static_cast<int32_t>(zero_at(args, 5, low, high, kOp));
  const uint32_t act = activation(args.integer(6), kOp);
  const Requantize requantize = requantize_at(args, 7, dtype, kOp);
  put(numbers, requantize);
  const Addition addition{.other = b,
                          .scale = args.real(2),
                          .other_scale = args.real(4),
                          .zero = args.integer(3),
                          .other_zero = args.integer(5),
                          .requantize = requantize,
                          .act = args.integer(6)};
  if (code == BINARY::add && try_convolution_with(graph, out, a, addition)) return;
  graph.dispatch({out}, {a, b}, [=](Launch& launch) {
    out.resize(broadcast_shape({&a.shape(), &b.shape()}, kOp));
    const Broadcast shape = broadcast(out.shape(), {&a.shape(), &b.shape()});
    glsl::q8ta_binary::Params params = numbers;
    put(params, shape, out);
    params.repeat_a = shape.repeat[0];
    params.repeat_b = shape.repeat[1];
    launch.params(params);
    launch.over(vec4_groups(out));
    launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(code), shape.mode[0], shape.mode[1], act});
    launch.shader = &glsl::q8ta_binary::variant(glsl::q8ta_binary::dtype(dtype));
  });
}

constexpr std::string_view kSignature =
    "Tensor a, Tensor b, float a_scale, int a_zero, float b_scale, int b_zero, int act, float out_scale, int out_zero, "
    "int qmin, int qmax -> Tensor";

// Of the kernel bench.
constexpr std::string_view kCases =
    "a=i8[5,37] b=i8[5,37]|i8[37] a_scale=0.03125 a_zero=3 b_scale=0.015625 b_zero=-2 act=0|1 out_scale=0.0625 "
    "out_zero=1 "
    "qmin=-128 qmax=127; "
    "a=u8[5,37] b=u8[5,1] a_scale=0.037 a_zero=90 b_scale=0.011 b_zero=100 act=0|1|2|5|6 out_scale=0.029 out_zero=100 "
    "qmin=0 qmax=255";

}  // namespace

std::span<const Op> q8ta_binary_ops() {
  static constexpr Op kOps[] = {
      {{"q8ta_add", 1, kSignature}, binary<BINARY::add>, glsl::q8ta_binary::axes, {kCases, "", reference::q8ta_add}},
      {{"q8ta_mul", 1, kSignature}, binary<BINARY::mul>, glsl::q8ta_binary::axes, {kCases, "", reference::q8ta_mul}},
  };
  return kOps;
}

}  // namespace pumice::engine
