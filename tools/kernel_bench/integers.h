// SPDX-License-Identifier: Apache-2.0
// The reference's quantization: rows of x to 8-bit integers, and results to 8-bit integers.
#pragma once

#include <span>
#include <vector>

#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

struct RowParams {
  float scale, zero;
};

// Numbers of u8 are those of i8 plus this: integers, zero points and ranges.
inline int shift_of(DType dtype) {
  return dtype == DType::u8 ? 128 : 0;
}
// Integers of i8 as those of `dtype`.
void shift(Data& data, DType dtype);

// The least scale when parameters are chosen from x; the parameters when they are constants.
inline constexpr double kEps = 0x1p-23;
inline constexpr RowParams kRowNumbers = {0.015625f, 3}, kOutNumbers = {0.03125f, -5};

inline int64_t zero_of(const RowParams& params, DType dtype) {
  return static_cast<int64_t>(params.zero) + shift_of(dtype);
}

// Quantizes a row and appends the real numbers that its integers stand for, not rounded. `chosen`: the parameters are
// chosen from the row, and for f16 every step is rounded to fp16, as in torchao; otherwise they are kRowNumbers.
void quantize(std::span<const float> row, DType dtype, bool chosen, std::vector<double>& out);

// A random scale (f32) and zero point (i8) for each of `m` rows, as numbers and as tensors.
struct RowQparams {
  std::vector<RowParams> rows;
  Data scales, zeros;
};
RowQparams random_qparams(int64_t m, uint64_t seed, std::string_view what);

// The i8 or u8 of a sum of products `e`, which may have the error of `roundings`; where this error reaches a tie, both
// integers are accepted (Expected::slack).
Expected requantized(const Expected& e, RowParams params, const SumRoundings& roundings, DType dtype);

}  // namespace pumice::engine::kernel_bench
