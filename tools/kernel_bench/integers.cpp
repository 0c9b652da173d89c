// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/integers.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tools/kernel_bench/exact.h"
#include "tools/kernel_bench/values.h"

namespace pumice::engine::kernel_bench {

void quantize(std::span<const float> row, DType dtype, bool chosen, std::vector<double>& out) {
  const auto step = [&](float x) { return chosen && dtype == DType::f16 ? half_value(half_bits(x)) : x; };
  RowParams p = kRowNumbers;
  if (chosen) {
    float low = 0, high = 0;
    for (const float x : row) {
      low = std::isnan(x) || x < low ? x : low;
      high = std::isnan(x) || x > high ? x : high;
    }
    p.scale = std::max(step(step(high - low) / 255), step(static_cast<float>(kEps)));
    if (std::isnan(low) || std::isinf(p.scale)) p.scale = NAN;  // some element is 0 times infinity
    p.zero = std::clamp(step(-128 - std::nearbyint(step(low / p.scale))), -128.0f, 127.0f);
  }
  const float inverse = step(1 / p.scale);
  for (const float x : row) {
    const float q = std::nearbyint(step(x * inverse)) + p.zero;
    const double whole = (std::isnan(q) ? 0 : std::clamp(q, -128.0f, 127.0f)) - p.zero;
    out.push_back(std::isnan(p.scale) ? NAN : whole * static_cast<double>(p.scale));
  }
}

void shift(Data& data, DType dtype) {
  if (dtype == DType::u8)
    for (std::byte& each : data.bytes) each ^= std::byte{128};
  data.dtype = dtype;
}

RowQparams random_qparams(int64_t m, uint64_t seed, std::string_view what) {
  const auto count = static_cast<size_t>(m);
  RowQparams qparams;
  std::vector<float> scales(count);
  Random random(seed, what);
  for (float& each : scales) each = kOutNumbers.scale * random.uniform(0.5f, 1.5f);
  qparams.zeros = {DType::i8, {m}, Bytes(count)};
  for (size_t row = 0; row < count; ++row) {
    const auto zero = static_cast<int8_t>(static_cast<int>(random.below(41)) - 20);
    qparams.zeros.bytes[row] = static_cast<std::byte>(zero);
    qparams.rows.push_back({scales[row], static_cast<float>(zero)});
  }
  qparams.scales = floats(DType::f32, {m}, scales);
  return qparams;
}

Expected requantized(const Expected& e, RowParams params, const SumRoundings& roundings, DType dtype) {
  const double quotient = e.want / static_cast<double>(params.scale);
  // The sum's error, and the quotient's.
  const double sum = sum_error(roundings, e);
  const double error = sum / static_cast<double>(params.scale) + 0x1p-22 * std::fabs(quotient);
  const auto whole = [&](double x) {
    return std::clamp(std::nearbyint(x) + static_cast<double>(params.zero), -128.0, 127.0);
  };
  Expected result{.want = whole(quotient)};
  result.slack = std::max(whole(quotient + error) - result.want, result.want - whole(quotient - error));
  result.want += shift_of(dtype);
  return result;
}

}  // namespace pumice::engine::kernel_bench
