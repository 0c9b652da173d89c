// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/integers.h"

#include <algorithm>
#include <cmath>

#include "glsl/include/core/modes.glslh"
#include "ops/reference/products.h"
#include "ops/shared/shape.h"

namespace pumice::engine::reference {
namespace {

// The dtype to which the steps of a call are rounded.
struct Steps {
  bool half;
  double operator()(double value) const { return half ? in_f16(value) : in_f32(value); }
};

// The block of each element: a block has block[d] elements along dimension d, -1: all of them.
class Blocks {
 public:
  Blocks(const Shape& shape, const std::vector<int64_t>& block) : shape_(shape), block_(block), grid_(shape) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (block[d] == -1) block_[d] = shape[d];
      grid_[d] = shape[d] / block_[d];
    }
  }
  size_t of(size_t index) const {
    Shape at = coordinates(index, shape_);
    for (size_t d = 0; d < at.size(); ++d) at[d] /= block_[d];
    return index_at(at, grid_);
  }
  size_t count() const { return count_of(grid_); }

 private:
  Shape shape_;
  std::vector<int64_t> block_;
  Shape grid_;
};

// A scale or zero point of a block: a tensor's, a number, or 0.
double parameter(const HostArgument& argument, size_t block) {
  return argument.is_tensor() ? argument.tensors[0].values.at(block) : argument.number;
}

struct QParams {
  double scale, zero;
};

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}

// The rules of QPARAMS_*; `range`: the smallest and largest element, both NaN if one is.
QParams choose(const HostCall& call, double least, double most) {
  const auto mapping = static_cast<uint32_t>(call.integer(2)), mode = static_cast<uint32_t>(call.integer(6));
  const double low = call.real(3), high = call.real(4), eps = in_f32(call.real(5));
  const Steps first{mode != STEPS_F32}, later{mode == STEPS_F16};
  const double below = std::isnan(least) ? least : std::min(least, 0.0);
  const double above = std::isnan(most) ? most : std::max(most, 0.0);
  if (mapping == QPARAMS_ABSOLUTE) return {in_f32(larger(larger(-least, most), eps) / high), 0};
  double scale = 0;
  if (mapping == QPARAMS_SYMMETRIC) {
    scale = first(in_f32(larger(-below, above) / ((high - low) / 2)));
  } else if (mapping == QPARAMS_NO_CLIPPING) {
    scale = larger(first(in_f32(below / low)), first(in_f32(above / high)));
  } else {
    scale = first(in_f32(first(in_f32(above - below)) / (high - low)));
  }
  scale = larger(scale, later(eps));
  if (mapping == QPARAMS_SYMMETRIC || mapping == QPARAMS_NO_CLIPPING)
    return {scale, later(std::trunc((high + low + 1) / 2))};
  const double from_low = later(in_f32(below / scale));
  double zero = low - std::nearbyint(from_low);
  if (mapping == QPARAMS_NEAREST_END) {  // from the end with the smaller error
    const double from_high = later(in_f32(above / scale));
    const double errors = later(in_f32(later(in_f32(low + from_low)) + later(in_f32(high + from_high))));
    zero = in_f32(errors > 0 ? low - from_low : high - from_high);
  }
  if (mapping == QPARAMS_TENSOR && std::isnan(zero)) zero = low < 0 ? high : low;
  zero = later(zero);
  zero = std::isnan(zero) ? zero : std::clamp(zero, low, high);
  return {scale, mapping == QPARAMS_NEAREST_END ? std::nearbyint(zero) : zero};
}

// clamp(round(act(a OP b) / out_scale) + out_zero), OP of the real numbers that the bytes stand for.
template <class Join>
void of_bytes(HostCall& call, const Join& join) {
  const auto act = static_cast<uint32_t>(call.integer(6));
  const ToByte to_byte(call, 7);
  const auto real = [&](size_t side, const Shape& at) {
    return in_f32((broadcast_to(call.args[side], at) - call.real(3 + 2 * side)) * in_f32(call.real(2 + 2 * side)));
  };
  for (size_t i = 0; i < call.out().count(); ++i) {
    const Shape at = coordinates(i, call.out().shape);
    const double joined = in_f32(join(real(0, at), real(1, at)));
    call.out().elements.push_back(to_byte.within(in_f32(activated(joined, act)), activation_error(joined, act)));
  }
}

}  // namespace

ToByte::ToByte(const HostCall& call, size_t first)
    : inverse(in_f32(1.0 / call.real(first))),
      zero(call.real(first + 1)),
      low(call.real(first + 2)),
      high(call.real(first + 3)) {}

double ToByte::operator()(double real) const {
  const double q = std::nearbyint(in_f32(real * inverse)) + zero;
  return std::isnan(q) ? 0 : std::clamp(q, low, high);
}

HostResult ToByte::within(double real, double error) const {
  const double want = (*this)(real);
  return {want, std::max((*this)(real + error) - want, want - (*this)(real - error))};
}

void quantize(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const Blocks blocks(x.shape, call.ints(3));
  const auto mode = static_cast<uint32_t>(call.integer(6));
  const bool last = call.integer(7) != 0;
  const auto step = [&](double value) { return mode == STEPS_F64 ? value : Steps{mode == STEPS_F16}(value); };
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t block = blocks.of(i);
    const double scale = parameter(call.args[1], block), zero = parameter(call.args[2], block);
    // PyTorch computes the reciprocal of a Python number in fp64.
    const double inverse =
        call.args[1].is_tensor() ? step(mode == STEPS_F64 ? 1 / scale : in_f32(1 / scale)) : in_f32(1 / scale);
    const double v = step(mode == STEPS_F64 ? x.values[i] * inverse : in_f32(x.values[i] * inverse));
    const double q = last ? std::nearbyint(step(v + zero)) : step(std::nearbyint(v) + zero);
    call.out().push(std::isnan(q) ? 0 : std::clamp(q, call.real(4), call.real(5)));
  }
}

void dequantize(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const Blocks blocks(x.shape, call.ints(3));
  const Steps step{call.integer(4) == STEPS_F16};
  const bool integers = call.has(5) && call.integer(5) != 0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t block = blocks.of(i);
    const double scale = in_f32(parameter(call.args[1], block)), zero = parameter(call.args[2], block);
    const double shifted = integers ? step(x.values[i] - zero) : step(in_f32(step(x.values[i]) - step(zero)));
    call.out().push(step(in_f32(shifted * scale)));
  }
}

void choose_qparams(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const Blocks blocks(x.shape, call.ints(1));
  std::vector<double> least(blocks.count(), INFINITY), most(blocks.count(), -INFINITY);
  for (size_t i = 0; i < x.values.size(); ++i) {
    double &low = least[blocks.of(i)], &high = most[blocks.of(i)];
    if (std::isnan(x.values[i])) low = high = NAN;
    low = std::isnan(low) ? low : std::min(low, x.values[i]);
    high = std::isnan(high) ? high : std::max(high, x.values[i]);
  }
  const bool integers = !is_float(call.out(1).dtype);
  for (size_t block = 0; block < blocks.count(); ++block) {
    const QParams chosen = choose(call, least[block], most[block]);
    call.out(0).push(stored(chosen.scale, call.out(0).dtype));
    call.out(1).push(integers && std::isnan(chosen.zero) ? wrapped(INT32_MIN, call.out(1).dtype) : chosen.zero);
  }
}

void q8ta_add(HostCall& call) {
  of_bytes(call, [](double a, double b) { return a + b; });
}
void q8ta_mul(HostCall& call) {
  of_bytes(call, [](double a, double b) { return a * b; });
}

}  // namespace pumice::engine::reference
