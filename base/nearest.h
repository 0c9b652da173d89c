// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the candidate with the smallest edit distance to a name that is not known.
#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

namespace pumice::engine {

inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Empty when there is no candidate. `text` may be anything a user typed; only its first 64 bytes are compared.
template <class Range>
std::string_view nearest(std::string_view text, const Range& candidates) {
  std::string_view best;
  size_t best_distance = ~size_t{0};
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(text.substr(0, 64), candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace pumice::engine
