// SPDX-License-Identifier: Apache-2.0
// Summaries of timings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pumice::engine::kernel_bench {

// The percentile `share` (0 to 1) of at least one value, interpolated between its two neighbours.
inline double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

struct Spread {
  double median, p10, p90;
};
inline Spread spread(const std::vector<double>& values) {
  return {percentile(values, 0.5), percentile(values, 0.1), percentile(values, 0.9)};
}

}  // namespace pumice::engine::kernel_bench
