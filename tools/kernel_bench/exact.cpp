// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/exact.h"

#include <algorithm>
#include <cmath>

#include "glsl/include/math/activation.glslh"
#include "ops/reference/products.h"

namespace pumice::engine::kernel_bench {

// Four independent sums, so that the compiler uses vector instructions.
TermSums dot(const double* a, const double* b, size_t count) {
  TermSums all[4];
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t j = 0; j < 4; ++j) all[j].add(a[i + j] * b[i + j]);
  }
  for (; i < count; ++i) all[0].add(a[i] * b[i]);
  for (size_t j = 1; j < 4; ++j) {
    all[0].sum += all[j].sum;
    all[0].size += all[j].size;
    all[0].squares += all[j].squares;
    all[0].terms += all[j].terms;
  }
  return all[0];
}

double sum_error(const SumRoundings& roundings, const Expected& e) {
  const double of_reference = 0x1p-53 * e.terms * e.size;
  if (roundings.per_term == 0) return roundings.worst(0) * e.exact + of_reference;
  return std::min(roundings.worst(e.terms) * e.size, roundings.by_chance(e.terms) * e.usual) + of_reference;
}

Expected finished(TermSums sums, double bias, uint32_t act, bool by_chance) {
  const double slope = reference::slope(act), exact = std::fabs(sums.sum) + std::fabs(bias);
  sums.add(bias);
  return {.want = reference::activated(sums.sum, act),
          .terms = sums.terms,
          .size = sums.size * slope,
          .usual = by_chance ? sums.usual() * slope : INFINITY,
          .exact = exact * slope,
          .slack = reference::activation_error(sums.sum, act)};
}

}  // namespace pumice::engine::kernel_bench
