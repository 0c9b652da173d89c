// SPDX-License-Identifier: Apache-2.0
// How pumice-rt generate draws tokens: the options of python/pumice/llm/sampling.py, which says what they mean.
#pragma once

#include <array>
#include <cstdint>

namespace tool {

struct Sampling {
  double temperature = 0, top_p = 1, min_p = 0, repeat_penalty = 1;
  int64_t top_k = 0, repeat_last = 64;
  uint64_t seed = 0;

  bool is_greedy() const { return temperature == 0 && repeat_penalty == 1; }
  // Throws UsageError for the first number out of its range.
  void check() const;
  // The inputs "options" and "counts" of a file's method "sample".
  std::array<float, 4> options() const;
  std::array<int32_t, 4> counts() const;
};

}  // namespace tool
