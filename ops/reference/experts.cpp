// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/reference/products.h"
#include "ops/shared/sum_error.h"

namespace pumice::engine::reference {
namespace {

enum Argument : size_t { kX, kWeight, kScale, kZero, kChosen, kFactors, kExperts, kGroup, kAct, kGated };

// A number before it is rounded to the dtype, and what it may be off.
struct Sum {
  double value = 0, error = 0, by_matrices = 0;
};

// Row `row` of x times row `n` of the weight, with linear_roundings of ops/linear/error_bound.cpp.
Sum product(const HostCall& call, size_t row, size_t n) {
  const HostTensor &x = call.tensor(kX), &weight = call.tensor(kWeight);
  const auto columns = static_cast<size_t>(weight.dim(1));
  const size_t group = call.integer(kGroup) == 0 ? columns : static_cast<size_t>(call.integer(kGroup));
  TermSums sums;
  for (size_t k = 0; k < columns; ++k) {
    double w = weight.values[n * columns + k];
    const size_t at = n * (columns / group) + k / group;
    if (call.has(kZero)) w -= call.tensor(kZero).values[at];
    if (call.has(kScale)) w *= call.tensor(kScale).values[at];
    sums.add(x.values[row * columns + k] * w);
  }
  const double plain = sum_error({.fixed = 26}, sums);
  return {sums.sum, plain, sum_error({.fixed = 26, .unit = 0x1p-23, .cuts = true}, sums) - plain};
}

Sum after(const Sum& sum, uint32_t act) {
  return {activated(sum.value, act), sum.error * slope(act) + activation_error(sum.value, act),
          sum.by_matrices * slope(act)};
}

Sum times(const Sum& a, const Sum& b) {
  const double value = a.value * b.value;
  const auto off = [&](double x, double y) { return std::fabs(a.value) * y + std::fabs(b.value) * x + x * y; };
  const double error = off(a.error, b.error) + sum_error(1, std::fabs(value));
  return {value, error, off(a.error + a.by_matrices, b.error + b.by_matrices) - off(a.error, b.error)};
}

// z[n] of expert `expert`.
Sum result(const HostCall& call, size_t row, size_t expert, size_t n) {
  const auto rows = static_cast<size_t>(call.tensor(kWeight).dim(0) / call.integer(kExperts));
  const auto act = static_cast<uint32_t>(call.integer(kAct));
  const bool gated = call.integer(kGated) != 0;
  const size_t gate = expert * rows + (gated ? n / 16 * 32 + n % 16 : n);
  const Sum first = after(product(call, row, gate), act);
  return gated ? times(first, product(call, row, gate + 16)) : first;
}

}  // namespace

void route_experts(HostCall& call) {
  const HostTensor& logits = call.tensor(0);
  const auto width = static_cast<size_t>(logits.dim(1)), count = static_cast<size_t>(call.integer(1));
  for (size_t row = 0; row < logits.values.size(); row += width) {
    const double* x = &logits.values[row];
    std::vector<size_t> order(width);
    std::iota(order.begin(), order.end(), size_t{0});
    const auto before = [&](size_t a, size_t b) {
      return std::isnan(x[a]) ? !std::isnan(x[b]) : !std::isnan(x[b]) && x[a] > x[b];
    };
    std::stable_sort(order.begin(), order.end(), before);
    const double most = x[order[0]];
    double sum = 0;
    for (size_t i = 0; i < (call.integer(2) != 0 ? count : width); ++i) sum += std::exp(x[order[i]] - most);
    for (size_t i = 0; i < count; ++i) {
      const double y = std::exp(x[order[i]] - most) / sum;
      call.out(0).push(y, 0x1p-15 * std::fabs(y) + 0x1p-23);
      call.out(1).push(static_cast<double>(order[i]));
    }
  }
}

void expert_linear(HostCall& call) {
  const HostTensor &x = call.tensor(kX), &chosen = call.tensor(kChosen);
  const auto each = static_cast<size_t>(chosen.dim(1));
  const int64_t experts = call.integer(kExperts);
  HostOutput& out = call.out();
  const auto columns = static_cast<size_t>(out.shape.back());
  for (size_t p = 0; p < chosen.values.size(); ++p) {
    const auto expert = static_cast<int64_t>(chosen.values[p]);
    if (expert < 0 || expert >= experts)
      call.reports.push_back({static_cast<uint32_t>(p), static_cast<int32_t>(expert), static_cast<int32_t>(experts)});
  }
  if (!call.reports.empty()) {
    out.elements.resize(out.count());
    return;
  }
  const double unit = out.dtype == DType::f16 ? 0x1p-11 : 0x1p-24;
  for (size_t t = 0; t < static_cast<size_t>(chosen.dim(0)); ++t) {
    std::vector<Sum> sums(columns);
    for (size_t j = 0; j < each; ++j) {
      const size_t p = t * each + j, row = x.shape.size() == 2 ? t : p;
      for (size_t n = 0; n < columns; ++n) {
        const Sum z = result(call, row, static_cast<size_t>(chosen.values[p]), n);
        if (!call.has(kFactors)) {
          out.elements.push_back({z.value, z.error, z.by_matrices});
          continue;
        }
        const double factor = call.tensor(kFactors).values[p], size = std::fabs(factor * z.value);
        sums[n].value += factor * z.value;
        sums[n].error += std::fabs(factor) * z.error + unit * size + sum_error(static_cast<double>(each) + 1, size);
        sums[n].by_matrices += std::fabs(factor) * z.by_matrices;
      }
    }
    for (const Sum& sum : sums)
      if (call.has(kFactors)) out.elements.push_back({sum.value, sum.error, sum.by_matrices});
  }
}

}  // namespace pumice::engine::reference
