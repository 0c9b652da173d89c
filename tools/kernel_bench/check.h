// SPDX-License-Identifier: Apache-2.0
// Is an output right? Sampled where it is large, element by element within the operator's error bound.
#pragma once

#include <optional>

#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

// An element that is not as it must be.
struct Wrong {
  std::string where;  // "[1, 3]"
  double got, want, allowed;
};

struct Checked {
  std::optional<Wrong> first;
  uint64_t wrong = 0, checked = 0;
  double worst = 0;  // of error / allowed, over what is right
};

// What an output of a case must be: all of them up to `kAllMacs` multiplications, else rows (of the first dimension)
// and columns (of all others) drawn by `seed`, with the edges and the rows just below each of `edges` among them.
class ExpectedOutput {
 public:
  static constexpr uint64_t kAllMacs = 100'000'000;
  ExpectedOutput(const CaseData& case_data, size_t output, std::span<const int64_t> edges, uint64_t seed);
  bool sampled() const { return sampled_; }
  // The first `m` rows of `output`, each element within allowed().
  Checked compare(std::span<const std::byte> output, int64_t m, const Bound& bound) const;

 private:
  Output output_;
  bool has_rows_;
  bool sampled_ = false;
  std::vector<uint64_t> indices_;
  std::vector<Expected> expected_;
};

// What one element may be off: u |y|, u half an ulp of the output's type, and what `bound` allows.
double allowed(const Expected& expected, DType dtype, const Bound& bound);
// One element of a tensor as the device has it, as a number.
double element(std::span<const std::byte> bytes, DType dtype, uint64_t index);

}  // namespace pumice::engine::kernel_bench
