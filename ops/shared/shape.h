// SPDX-License-Identifier: Apache-2.0
// Index arithmetic that several operators share: checked 32-bit counts, walks over strided inputs, broadcasting, raw
// bits. Pure functions of live shapes, called from launch functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "ops/shared/args.h"

namespace pumice::engine {

inline constexpr uint32_t kMaxRank = 8;

// A count or index as kernels hold it. Throws LimitExceeded from 2^31 on: sums of two never wrap.
uint32_t u32(int64_t value);
// vec4 groups (four consecutive elements) of a tensor: the invocations of a kernel in which each writes one of them.
uint32_t vec4_groups(const Tensor& out);

// A place in a dimension of `size`, as a slice takes it: negative ones count from the end, those outside are at its
// ends.
int64_t bounded(int64_t at, int64_t size);
// The step of a slice, at least 1. More than any size takes the same elements as the number that is returned for it.
int64_t slice_step(int64_t step, const char* op);
// Product of sizes[first..last).
int64_t product(std::span<const int64_t> sizes, size_t first, size_t last);
Shape contiguous_strides(const Shape& shape);

// Counts a contiguous output's elements while walking an input: input index = base + sum(coordinate * stride).
// Strides may be negative (their two's complement) or 0.
struct Walk {
  uint32_t rank = 0, base = 0;
  std::array<uint32_t, kMaxRank> size{}, stride{};
};
// Dimensions of size 1 dropped, neighbours merged where they walk like one. `sizes` may have any length; throws when
// more than kMaxRank are left.
Walk collapse(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t base = 0);

inline constexpr uint32_t kMaxOperands = 5;  // of one kernel that broadcasts

// How a kernel reads an operand that is broadcast to the output (glsl/include/core/broadcast.glslh reads these).
struct Broadcast {
  uint32_t rank = 0;
  std::array<uint32_t, kMaxRank> size{};        // of the output, merged
  std::array<uint32_t, kMaxOperands> repeat{};  // of each: bit d set = it has size 1 in merged dimension d
  std::array<uint32_t, kMaxOperands> mode{};    // BROADCAST_FLAT ... BROADCAST_SPLAT
  uint32_t row_vec4s = 1;  // vec4 groups of the innermost merged dimension, for BROADCAST_ROW and BROADCAST_COLUMN
};
// Throws when the shapes do not broadcast together.
Shape broadcast_shape(std::span<const Shape* const> shapes, const char* op);
Broadcast broadcast(const Shape& out, std::span<const Shape* const> operands);  // kMaxOperands at most
inline Shape broadcast_shape(std::initializer_list<const Shape*> shapes, const char* op) {
  return broadcast_shape(std::span(shapes.begin(), shapes.size()), op);
}
inline Broadcast broadcast(const Shape& out, std::initializer_list<const Shape*> operands) {
  return broadcast(out, std::span(operands.begin(), operands.size()));
}
// The part of a Params struct that core/broadcast.glslh calls BROADCAST_PARAMS.
template <class Params>
void put(Params& params, const Broadcast& b, const Tensor& out) {
  params.count = u32(out.numel());
  params.rank = b.rank;
  params.row_vec4s = b.row_vec4s;
  std::copy(b.size.begin(), b.size.end(), params.size);
}

// The dtype axis of kernels that only move elements (glsl/include/core/bits.glslh).
template <class Bits>
Bits bits(DType dtype) {
  const uint32_t bytes = device_bytes(dtype);
  return bytes == 4 ? Bits::b32 : bytes == 2 ? Bits::b16 : Bits::b8;
}
// The bits of one element of `dtype` that holds `number`; integers must fit the dtype.
uint32_t element_bits(double number, DType dtype, const char* op);
uint16_t half_bits(float number);  // round to nearest even
float half_value(uint16_t bits);
bool is_float(DType dtype);
// A number as a kernel that computes in `dtype` takes it: the bits of a float, or of an int.
uint32_t number_bits(double number, DType dtype, const char* op);

}  // namespace pumice::engine
