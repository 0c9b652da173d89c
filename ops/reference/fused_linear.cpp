// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/fused_linear.h"

#include <cmath>

#include "ops/reference/products.h"

namespace pumice::engine::reference {
namespace {

// A number, what it may be off, and what it may be off by kernels of matrices.
struct Bounded {
  double value = 0, error = 0, by_matrices = 0;
};

double unit(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : 0x1p-24;
}

// A row of x after its norm, where there is one; rounded to the dtype (ops/norm.cpp).
std::vector<Bounded> normed(const HostCall& call, size_t row) {
  const HostTensor& x = call.tensor(0);
  const auto k = static_cast<size_t>(x.dim(-1));
  std::vector<Bounded> out(k);
  double squares = 0;
  for (size_t i = 0; i < k; ++i) {
    out[i].value = x.values[row * k + i];
    squares += out[i].value * out[i].value;
  }
  if (!call.has(1)) return out;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(k) + call.real(2));
  const double steps = std::ceil(static_cast<double>(k) / 32) + 42;
  for (size_t i = 0; i < k; ++i) {
    const double y = out[i].value * scale * call.tensor(1).values[i];
    out[i] = {y, (unit(x.dtype) + 0x1p-24 * (steps / 2 + 12)) * std::fabs(y)};
  }
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

// act(y[n]): linear_error of ops/linear/error_bound.cpp, and what x is off.
Bounded activated_sum(const HostCall& call, const std::vector<Bounded>& x, size_t n, uint32_t act) {
  const double bias = call.has(6) ? call.tensor(6).values[n] : 0;
  double sum = bias, size = std::fabs(bias), off = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const double w = weight_of(call, n, k);
    sum += x[k].value * w;
    size += std::fabs(x[k].value * w);
    off += x[k].error * std::fabs(w);
  }
  const double steps = static_cast<double>(x.size()) + 26;
  const bool rounded = call.has(4) && call.integer(7) != call.tensor(3).dim(1);
  const double extra = 0x1p-24 * steps * size + (rounded ? 0x1p-11 * size : 0);
  return {activated(sum, act), (off + 0x1p-24 * steps * size) * slope(act) + activation_error(sum, act),
          extra * slope(act)};
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
    const std::vector<Bounded> normed_row = normed(call, row);
    for (size_t c = 0; c < columns; ++c) {
      const size_t n = gated ? c / 16 * 32 + c % 16 : c;
      const Bounded a = activated_sum(call, normed_row, n, act);
      if (!gated) {
        out.elements.push_back({a.value, a.error, a.by_matrices});
        continue;
      }
      // Where a kernel does not gate, both sums are rounded before the activation and the product.
      const Bounded b = activated_sum(call, normed_row, n + 16, 0);
      const double sum = slope(act) * std::fabs(activated_sum(call, normed_row, n, 0).value);
      const double a_error = a.error + 2 * u * sum, b_error = b.error + u * std::fabs(b.value);
      const double size = std::fabs(a.value), other = std::fabs(b.value);
      out.elements.push_back({a.value * b.value, size * b_error + other * a_error + a_error * b_error +
                                                     0x1p-24 * size * other,
                              (size + a_error) * b.by_matrices + (other + b_error) * a.by_matrices +
                                  a.by_matrices * b.by_matrices});
    }
  }
}

}  // namespace pumice::engine::reference
