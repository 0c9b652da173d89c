// SPDX-License-Identifier: Apache-2.0
// How a result becomes 8-bit integers: clamp(round(real / scale) + zero, low, high), rounded as eager PyTorch rounds.
#pragma once

#include <algorithm>

#include "ops/quant/blocks.h"
#include "ops/quant/qparams.h"

namespace pumice::engine {

// An empty `scales`: numbers for all.
struct Requantize {
  double scale = 1;
  int64_t zero = 0, low = -128, high = 127;
  Parameter scales = {}, zeros = {};  // an element for each row
  // Of a Python number PyTorch divides in fp64.
  float inverse() const { return static_cast<float>(1.0 / scale); }
  // Kernels of integers leave a number alone that needs more than a multiplication (is_extreme in
  // quant/quantize.glslh).
  bool is_extreme() const { return !scales.tensor && !(inverse() >= 0x1p-126f && inverse() < 0x1p124f); }
};

// With a relu before it: nothing below the zero point.
inline Requantize above_zero(Requantize requantize) {
  requantize.low = std::min(std::max(requantize.low, requantize.zero), requantize.high);
  return requantize;
}

// Arguments from `first` on: out_scale, out_zero, qmin, qmax, of a result of `dtype`, i8 or u8.
inline Requantize requantize_at(const Args& args, uint32_t first, DType dtype, const char* op) {
  const int64_t low = least(dtype), high = low + 255;
  Requantize requantize{.scale = scale_at(args, first, op), .zero = zero_at(args, first + 1, low, high, op)};
  requantize.low = args.integer(first + 2);
  requantize.high = args.integer(first + 3);
  check(requantize.low >= low && requantize.high <= high && requantize.low < requantize.high,
        "%s: %" PRId64 "..%" PRId64 " is no range of %s", op, requantize.low, requantize.high, name(dtype));
  return requantize;
}

// Numbers of a shader.
template <class Params>
void put(Params& params, const Requantize& requantize) {
  params.out_inverse = requantize.inverse();
  params.out_zero = static_cast<float>(requantize.zero);
  params.low = static_cast<float>(requantize.low);
  params.high = static_cast<float>(requantize.high);
}

// Of operators from bytes to the same kind of bytes: the scale and zero point of x, too, from argument `first` on.
template <class Params>
void put_numbers(Params& params, const Args& args, uint32_t first, const char* op) {
  const DType dtype = args.tensor(0).dtype();
  check(is_byte(dtype), "%s: x is %s, not i8 or u8", op, name(dtype));
  params.x_scale = static_cast<float>(scale_at(args, first, op));
  params.x_zero = static_cast<int32_t>(zero_at(args, first + 1, least(dtype), least(dtype) + 255, op));
  put(params, requantize_at(args, first + 2, dtype, op));
}

}  // namespace pumice::engine
