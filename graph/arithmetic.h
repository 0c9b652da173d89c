// SPDX-License-Identifier: Apache-2.0
// The arithmetic that gives a kernel's results, which says whose units' rate limits it.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <numeric>

#include "base/dtype.h"

namespace pumice::engine {

// split2, split3: fp32, also as that many products of fp16 operands, which glsl/linear_split.glsl makes. Products of
// fp16 numbers are exact in fp32, and in a matrix unit that sums in fp32. i8: integers.
enum class Arithmetic : uint8_t { f32, split2, split3, f16, i8 };

// Of products of two activations, or of one with weights that it is not split for.
constexpr Arithmetic arithmetic_of(DType dtype) {
  return dtype == DType::f16 ? Arithmetic::f16 : Arithmetic::f32;
}

// In profiles, and in docs/gpu.
inline constexpr const char* kArithmetics[] = {"f32", "f32 by 2", "f32 by 3", "f16", "i8"};

// How many of each; for reports.
using Operations = std::array<uint64_t, std::size(kArithmetics)>;
inline uint64_t total_of(const Operations& operations) {
  return std::accumulate(operations.begin(), operations.end(), uint64_t{0});
}

}  // namespace pumice::engine
