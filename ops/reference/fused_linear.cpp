// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/fused_linear.h"

#include <cmath>
#include <numeric>

#include "ops/reference/products.h"
#include "ops/shared/sum_error.h"

namespace pumice::engine::reference {
namespace {

using Row = std::vector<double>;

double unit(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : 0x1p-24;
}

// A row of x after its norm, where there is one; kernels round it to its dtype.
Row normed(const HostCall& call, size_t row) {
  const HostTensor& x = call.tensor(0);
  const auto k = static_cast<size_t>(x.dim(-1));
  Row out(x.values.begin() + static_cast<std::ptrdiff_t>(row * k),
          x.values.begin() + static_cast<std::ptrdiff_t>((row + 1) * k));
  if (!call.has(1)) return out;
  const double squares = std::inner_product(out.begin(), out.end(), out.begin(), 0.0);
  const double scale = 1 / std::sqrt(squares / static_cast<double>(k) + call.real(2));
  for (size_t i = 0; i < k; ++i) out[i] *= scale * call.tensor(1).values[i];
  return out;
}

double weight_of(const HostCall& call, size_t n, size_t k) {
  const HostTensor& weight = call.tensor(3);
  const auto columns = static_cast<size_t>(weight.dim(1));
  const double w = weight.values[n * columns + k];
  if (!call.has(4)) return w;
  const auto group = static_cast<size_t>(call.integer(7)), at = n * (columns / group) + k / group;
  return (w - (call.has(5) ? call.tensor(5).values[at] : 0)) * call.tensor(4).values[at];
}

// Of many roundings, each of any sign, that may be off by `u` of their terms: seven standard deviations, of numbers
// that are spread evenly.
double roundings(double u, double squares) {
  return 4 * u * std::sqrt(squares);
}

// act(y[n]): linear_roundings of ops/linear/error_bound.cpp, and what x is off.
HostResult activated_sum(const HostCall& call, const Row& x, size_t n, uint32_t act) {
  const double bias = call.has(6) ? call.tensor(6).values[n] : 0;
  TermSums sums;
  sums.add(bias);
  for (size_t k = 0; k < x.size(); ++k) sums.add(x[k] * weight_of(call, n, k));
  const bool rounded = call.has(4) && call.integer(7) != call.tensor(3).dim(1);
  const double of_x = call.has(1) ? roundings(unit(call.tensor(0).dtype), sums.squares) : 0;
  const double plain = sum_error({.fixed = 26}, sums);
  const double extra = sum_error({.fixed = 26, .unit = 0x1p-23, .cuts = true}, sums) - plain +
                       (rounded ? roundings(0x1p-11, sums.squares) : 0);
  return {activated(sums.sum, act), (of_x + plain) * slope(act) + activation_error(sums.sum, act), extra * slope(act)};
}

}  // namespace

void fused_linear(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const auto rows = x.values.size() / static_cast<size_t>(x.dim(-1));
  const auto act = static_cast<uint32_t>(call.integer(8));
  const bool gated = call.integer(9) != 0;
  HostOutput& out = call.out();
  const auto columns = static_cast<size_t>(out.shape.back());
  const double u = unit(out.dtype);
  for (size_t row = 0; row < rows; ++row) {
    const Row normed_row = normed(call, row);
    for (size_t c = 0; c < columns; ++c) {
      const size_t n = gated ? c / 16 * 32 + c % 16 : c;
      const HostResult a = activated_sum(call, normed_row, n, act);
      if (!gated) {
        out.elements.push_back(a);
        continue;
      }
      // Where a kernel does not gate, both sums are rounded before the activation and the product. All roundings are
      // independent.
      const HostResult b = activated_sum(call, normed_row, n + 16, 0);
      const double sum = slope(act) * activated_sum(call, normed_row, n, 0).value;
      const double a_error = std::hypot(a.error, u * sum), b_error = std::hypot(b.error, u * b.value);
      out.elements.push_back({a.value * b.value,
                              std::hypot(a.value * b_error, b.value * a_error) + a_error * b_error +
                                  0x1p-24 * std::fabs(a.value * b.value),
                              std::hypot(a.value * b.by_matrices, b.value * a.by_matrices)});
    }
  }
}

}  // namespace pumice::engine::reference
