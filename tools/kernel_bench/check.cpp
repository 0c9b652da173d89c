// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tools/kernel_bench/exact.h"
#include "tools/kernel_bench/values.h"

namespace pumice::engine::kernel_bench {
namespace {

// A sample of 0 .. count - 1: those of `must` that are in this range, and others, `wanted` in all.
std::vector<int64_t> draw(int64_t count, int64_t wanted, std::initializer_list<int64_t> must,
                          std::span<const int64_t> more, Random& random) {
  std::set<int64_t> chosen;
  const auto add = [&](int64_t each) {
    if (each >= 0 && each < count) chosen.insert(each);
  };
  std::for_each(must.begin(), must.end(), add);
  for (const int64_t edge : more) add(edge - 1);
  wanted = std::min(wanted, count);
  if (wanted == count)
    for (int64_t i = 0; i < count; ++i) chosen.insert(i);
  while (static_cast<int64_t>(chosen.size()) < wanted)
    add(static_cast<int64_t>(random.below(static_cast<uint64_t>(count))));
  return {chosen.begin(), chosen.end()};
}

// The size of the last dimension.
int64_t columns_of(const Shape& shape) {
  int64_t columns = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) columns *= shape[axis];
  return columns;
}

// The indices of an element, as text.
std::string place(const Shape& shape, uint64_t index) {
  std::string all = "]";
  for (size_t axis = shape.size(); axis-- > 0;) {
    const auto size = static_cast<uint64_t>(shape[axis]);
    all = (axis == 0 ? "[" : ", ") + std::to_string(axis == 0 ? index : index % size) + all;
    index /= size;
  }
  return all;
}

}  // namespace

ExpectedOutput::ExpectedOutput(const CaseData& case_data, size_t output, std::span<const int64_t> edges, uint64_t seed)
    : output_(case_data.outputs()[output]), has_rows_(case_data.has_rows()) {
  const int64_t m = output_.shape.empty() ? 1 : output_.shape[0], n = columns_of(output_.shape);
  sampled_ = case_data.macs() > kAllMacs;
  Random random(seed, "sample");
  // Up to about this many multiplications every element is checked.
  const int64_t room = std::max<int64_t>(static_cast<int64_t>(kAllMacs) / case_data.shape().terms(), 256);
  const auto rows = draw(m, sampled_ ? 64 : m, {0, 1, 2, m - 2, m - 1}, edges, random);
  const auto columns = draw(n, sampled_ ? std::max<int64_t>(room / static_cast<int64_t>(rows.size()), 32) : n,
                            {0, 1, n - 2, n - 1}, {}, random);
  for (const int64_t row : rows)
    for (const int64_t column : columns) indices_.push_back(static_cast<uint64_t>(row * n + column));
  expected_ = case_data.expect(output, indices_);
  indices_.resize(expected_.size());
}

double element(std::span<const std::byte> bytes, DType dtype, uint64_t index) {
  const std::byte* at = bytes.data() + index * device_bytes(dtype);
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  if (dtype == DType::f16) {
    uint16_t bits;
    std::memcpy(&bits, at, 2);
    return half_value(bits);
  }
  if (dtype == DType::i32 || dtype == DType::i64) {  // i64 is i32 on the device
    int32_t value;
    std::memcpy(&value, at, 4);
    return value;
  }
  return dtype == DType::i8 ? static_cast<int8_t>(*at) : std::to_integer<int>(*at);
}

double allowed(const Expected& expected, DType dtype, const Bound& bound) {
  if (!is_float(dtype)) return expected.slack;
  const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-24, least = dtype == DType::f16 ? 0x1p-25 : 0x1p-150;
  // The error of the sum comes before the rounding of the result.
  const double sum = sum_error(bound.sum, expected);
  return (unit * std::fabs(expected.want) + sum + bound.reach * expected.reach) * (1 + unit) + expected.slack +
         (bound.matrices ? expected.by_matrices : 0) + (bound.any_order ? expected.in_any_order : 0) + least;
}

Checked ExpectedOutput::compare(std::span<const std::byte> output, int64_t m, const Bound& bound) const {
  const DType dtype = output_.dtype;
  const auto n = static_cast<uint64_t>(columns_of(output_.shape));
  const double most = dtype == DType::f16 ? 65504 : dtype == DType::f32 ? 3.4028234663852886e38 : INFINITY;
  Checked result;
  for (size_t i = 0; i < indices_.size(); ++i) {
    if (has_rows_ && indices_[i] >= static_cast<uint64_t>(m) * n) continue;
    const Expected& expected = expected_[i];
    const double got = element(output, dtype, indices_[i]), want = expected.want;
    const double limit = allowed(expected, dtype, bound), error = std::fabs(got - want);
    const bool overflows = std::isinf(got) && std::fabs(want) + limit > most && (got > 0) == (want > 0);
    const bool right = std::isnan(want)   ? std::isnan(got)
                       : std::isinf(want) ? got == want
                                          : got == want || overflows || error <= limit;
    ++result.checked;
    if (!right) {
      ++result.wrong;
      if (!result.first) result.first = Wrong{place(output_.shape, indices_[i]), got, want, limit};
    } else if (std::isfinite(error) && limit > 0) {
      result.worst = std::max(result.worst, error / limit);
    }
  }
  return result;
}

}  // namespace pumice::engine::kernel_bench
