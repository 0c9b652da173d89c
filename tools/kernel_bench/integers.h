// SPDX-License-Identifier: Apache-2.0
// Rows of 8-bit integers in kernel_bench's cases: how x becomes such, and a result again.
#pragma once

#include <span>
#include <vector>

#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

struct RowParams {
  float scale, zero;
};

// The least scale that is chosen; the numbers where parameters are numbers.
inline constexpr double kEps = 0x1p-23;
inline constexpr RowParams kRowNumbers = {0.015625f, 3}, kOutNumbers = {0.03125f, -5};

// A row as the real numbers that its integers stand for; every step is rounded to fp16 where `dtype` is that and the
// parameters are `chosen` from the row, as torchao rounds; else they are kRowNumbers.
void quantize(std::span<float> row, DType dtype, bool chosen);

// A scale (f32) and a zero point (i8) for each of `m` rows, at random; as tensors, too.
struct RowQparams {
  std::vector<RowParams> rows;
  Data scales, zeros;
};
RowQparams random_qparams(int64_t m, uint64_t seed, std::string_view what);

// The i8 for the sum `e` of products: either side is right where the error of the sum, 2^-24 `roundings`
// times the sum of sizes, leaves it open.
Expected requantized(const Expected& e, RowParams params, int64_t roundings);

}  // namespace pumice::engine::kernel_bench
