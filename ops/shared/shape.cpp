// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/shape.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "glsl/include/core/modes.glslh"

namespace pumice::engine {

uint32_t u32(int64_t value) {
  if (value < -(int64_t{1} << 31) || value >= (int64_t{1} << 31)) {
    fail(Code::LimitExceeded, Stage::plan, "", "%lld elements are more than a kernel can index (2^31)",
         static_cast<long long>(value));
  }
  return static_cast<uint32_t>(value);
}

uint32_t vec4_groups(const Tensor& out) {
  return (u32(out.numel()) + 3) / 4;
}

int64_t bounded(int64_t at, int64_t size) {
  return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
}

int64_t slice_step(int64_t step, const char* op) {
  check(step > 0, "%s: step %lld must be positive", op, static_cast<long long>(step));
  return std::min(step, int64_t{1} << 30);
}

int64_t product(std::span<const int64_t> sizes, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t d = first; d < last; ++d) count *= sizes[d];
  return count;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

Walk collapse(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t base) {
  Walk walk;
  walk.base = u32(base);
  Shape size, stride;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    if (!size.empty() && stride.back() == strides[d] * sizes[d]) {
      size.back() *= sizes[d];
      stride.back() = strides[d];
    } else {
      size.push_back(sizes[d]);
      stride.push_back(strides[d]);
    }
  }
  check(size.size() <= kMaxRank, "%zu dimensions are left after merging, the limit is %u", size.size(), kMaxRank);
  walk.rank = static_cast<uint32_t>(size.size());
  for (uint32_t d = 0; d < walk.rank; ++d) {
    walk.size[d] = u32(size[d]);
    walk.stride[d] = u32(stride[d]);
  }
  return walk;
}

namespace {

// Size of `shape` in dimension `d` of `rank`, shapes aligned at their last dimensions.
int64_t aligned(const Shape& shape, size_t d, size_t rank) {
  return d + shape.size() < rank ? 1 : shape[d + shape.size() - rank];
}

uint32_t mode_of(const Broadcast& b, uint32_t repeat) {
  const uint32_t all = (1u << b.rank) - 1;
  if (repeat == 0) return BROADCAST_FLAT;
  if (repeat == all) return BROADCAST_ONE;
  const bool whole_vec4s = b.size[b.rank - 1] % 4 == 0;
  if (b.rank != 2 && !whole_vec4s) return BROADCAST_ANY;
  if (b.rank != 2) return (repeat >> (b.rank - 1)) & 1u ? BROADCAST_SPLAT : BROADCAST_VEC4;
  if (repeat == 1) return whole_vec4s ? BROADCAST_ROW : BROADCAST_ROW_ANY;
  return whole_vec4s ? BROADCAST_COLUMN : BROADCAST_COLUMN_ANY;
}

}  // namespace

Shape broadcast_shape(std::span<const Shape* const> shapes, const char* op) {
  size_t rank = 0;
  for (const Shape* shape : shapes) rank = std::max(rank, shape->size());
  Shape out(rank, 1);
  for (const Shape* shape : shapes) {
    for (size_t d = 0; d < rank; ++d) {
      const int64_t size = aligned(*shape, d, rank);
      check(size == 1 || out[d] == 1 || size == out[d], "%s: sizes %lld and %lld do not broadcast", op,
            static_cast<long long>(out[d]), static_cast<long long>(size));
      if (size != 1) out[d] = size;
    }
  }
  return out;
}

Broadcast broadcast(const Shape& out, std::span<const Shape* const> operands) {
  Broadcast b;
  uint32_t last = ~0u;  // bit k: operand k repeats in the dimension merged last
  for (size_t d = 0; d < out.size(); ++d) {
    if (out[d] == 1) continue;
    uint32_t repeats = 0, k = 0;
    for (const Shape* shape : operands) repeats |= uint32_t{aligned(*shape, d, out.size()) == 1} << k++;
    if (repeats == last) {
      b.size[b.rank - 1] = u32(int64_t{b.size[b.rank - 1]} * out[d]);
      continue;
    }
    last = repeats;
    for (k = 0; k < operands.size(); ++k) b.repeat[k] |= ((repeats >> k) & 1u) << b.rank;
    b.size[b.rank++] = u32(out[d]);
  }
  for (uint32_t k = 0; k < operands.size(); ++k) b.mode[k] = mode_of(b, b.repeat[k]);
  if (b.rank > 0) b.row_vec4s = std::max(1u, b.size[b.rank - 1] / 4);
  return b;
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16;
}

uint16_t half_bits(float number) {
  const uint32_t word = std::bit_cast<uint32_t>(number);
  const auto sign = static_cast<uint16_t>((word >> 16) & 0x8000u);
  const uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {                        // below 2^-14: a multiple of 2^-24
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(std::fabs(number), 24))));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float half_value(uint16_t bits) {
  const uint32_t exponent = (bits >> 10) & 31u, mantissa = bits & 0x3ffu;
  const float sign = (bits & 0x8000u) ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), static_cast<int>(exponent) - 25);
}

uint32_t number_bits(double number, DType dtype, const char* op) {
  if (is_float(dtype)) return std::bit_cast<uint32_t>(static_cast<float>(number));
  double low = -2147483648.0, high = 2147483647.0;
  if (dtype == DType::u8) low = 0, high = 255;
  if (dtype == DType::i8) low = -128, high = 127;
  if (dtype == DType::boolean) low = 0, high = 1;
  check(number >= low && number <= high && number == std::floor(number), "%s: the number %g does not fit dtype %s", op,
        number, name(dtype));
  return static_cast<uint32_t>(static_cast<int32_t>(number));
}

uint32_t element_bits(double number, DType dtype, const char* op) {
  if (dtype == DType::f16) return half_bits(static_cast<float>(number));
  const uint32_t word = number_bits(number, dtype, op);
  return device_bytes(dtype) == 1 ? word & 0xffu : word;
}

}  // namespace pumice::engine
