// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/reductions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "glsl/include/core/modes.glslh"
#include "ops/shared/shape.h"

namespace pumice::engine::reference {
namespace {

using Row = std::vector<double>;

double sum_of(const Row& x) {
  return std::accumulate(x.begin(), x.end(), 0.0);
}
double size_of(const Row& x) {
  return std::accumulate(x.begin(), x.end(), 0.0, [](double sum, double each) { return sum + std::fabs(each); });
}
double product_of(const Row& x) {
  return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>());
}
double squares_of(const Row& x, double mean) {
  return std::accumulate(x.begin(), x.end(), 0.0,
                         [&](double sum, double each) { return sum + (each - mean) * (each - mean); });
}

// Roundings of a term of a sum: one invocation adds fewer than 64 terms in a row; more are shared by 64 lanes or more,
// whose parts meet in a tree.
double reduce_steps(double n) {
  return n < 64 ? n : std::ceil(n / 64) + 7;
}

// The first of the largest (`sign` 1) or smallest (-1); a NaN before all others.
size_t chosen(const Row& x, double sign) {
  size_t best = 0;
  for (size_t i = 1; i < x.size(); ++i)
    if (!std::isnan(x[best]) && (std::isnan(x[i]) || sign * x[i] > sign * x[best])) best = i;
  return best;
}

HostResult variance(const Row& x, double correction) {
  const auto n = static_cast<double>(x.size());
  const double mean = sum_of(x) / n, steps = reduce_steps(n), divisor = std::max(0.0, n - correction);
  const double off = sum_error(steps + 2, size_of(x) / n);  // of the mean: every square is taken around another one
  const double y = squares_of(x, mean) / divisor;
  return {y, 0x1p-24 * (steps + 8) * y + n / divisor * off * off};
}

HostResult of_row(const Row& x, uint32_t code, double correction) {
  const auto n = static_cast<double>(x.size());
  const double steps = reduce_steps(n);
  const auto nonzero = [](double each) { return each != 0; };
  switch (code) {
    case REDUCE_SUM:
      return {sum_of(x), sum_error(steps, size_of(x))};
    case REDUCE_MEAN:
      return {sum_of(x) / n, sum_error(steps + 3, size_of(x) / n)};
    case REDUCE_PROD:
      return {product_of(x), 0x1p-24 * n * std::fabs(product_of(x))};
    case REDUCE_ANY:
      return {double(std::any_of(x.begin(), x.end(), nonzero))};
    case REDUCE_ALL:
      return {double(std::all_of(x.begin(), x.end(), nonzero))};
    case REDUCE_VAR:
      return variance(x, correction);
    case REDUCE_NORM:
      return {std::sqrt(squares_of(x, 0)), 0x1p-24 * (steps / 2 + 8) * std::sqrt(squares_of(x, 0))};
    case REDUCE_ARGMAX:
    case REDUCE_ARGMIN:
      return {static_cast<double>(chosen(x, code == REDUCE_ARGMAX ? 1 : -1))};
    default:
      return {x[chosen(x, code == REDUCE_MAX ? 1 : -1)]};
  }
}

double log_of_sum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return a == b && std::isinf(a) ? a : std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// One row of a norm: `factor(k)`, `shift(k)` are the elements of weight and bias for element k.
template <class Factor, class Shift>
void norm_row(HostOutput& out, const Row& x, bool center, double eps, const Factor& factor, const Shift& shift) {
  const auto n = static_cast<double>(x.size());
  const double mean = center ? sum_of(x) / n : 0, var = squares_of(x, mean) / n, scale = 1 / std::sqrt(var + eps);
  // A row is summed by 32 lanes or more, whose parts meet in a tree.
  const double steps = std::ceil(n / 32) + 10;
  const double off = center ? sum_error(steps, size_of(x) / n) : 0;
  const double relative = 0x1p-24 * (steps / 2 + 12) + 0.5 * off * off * scale * scale;
  for (size_t k = 0; k < x.size(); ++k) {
    const double w = factor(k), b = shift(k), scaled = (x[k] - mean) * scale * w;
    const double error = std::fabs(w) * scale * off + relative * std::fabs(scaled) + 0x1p-24 * std::fabs(b);
    out.push(scaled + b, error);
  }
}

// Rows of `width` neighbours; `weight` and `bias`: the arguments, with `channels` elements each of which `inner`
// neighbours share.
void norm(HostCall& call, size_t width, size_t weight, size_t bias, bool center, double eps, size_t inner,
          size_t channels) {
  const std::vector<double>& x = call.tensor(0).values;
  for (size_t first = 0; first < x.size(); first += width) {
    const auto of = [&](size_t argument, double absent) {
      return [&call, argument, absent, first, inner, channels](size_t k) {
        if (argument == 0 || !call.has(argument)) return absent;
        return call.tensor(argument).values.at((first + k) / inner % channels);
      };
    };
    const Row row(x.begin() + static_cast<std::ptrdiff_t>(first),
                  x.begin() + static_cast<std::ptrdiff_t>(first + width));
    norm_row(call.out(), row, center, eps, of(weight, 1), of(bias, 0));
  }
  limit_errors(call.out());
}

size_t last_sizes(const HostCall& call) {
  const Shape& shape = call.tensor(0).shape;
  return static_cast<size_t>(product(shape, shape.size() - static_cast<size_t>(call.integer(1)), shape.size()));
}

}  // namespace

void reduce(HostCall& call, uint32_t code) {
  const HostTensor& x = call.tensor(0);
  HostOutput& out = call.out();
  std::vector<bool> over(x.shape.size(), call.ints(1).empty());
  for (const int64_t dim : call.ints(1)) over[axis_of(dim, x.shape)] = true;
  std::vector<Row> rows(out.count());
  Shape keepdim_shape = x.shape;  // the output's shape with all dimensions
  for (size_t d = 0; d < keepdim_shape.size(); ++d) keepdim_shape[d] = over[d] ? 1 : keepdim_shape[d];
  for (size_t i = 0; i < x.values.size(); ++i) {
    Shape at = coordinates(i, x.shape);
    for (size_t d = 0; d < at.size(); ++d) at[d] = over[d] ? 0 : at[d];
    rows.at(index_at(at, keepdim_shape)).push_back(x.values[i]);
  }
  const bool joins = code == REDUCE_SUM || code == REDUCE_PROD;
  for (const Row& row : rows) {
    HostResult result = of_row(row, code, code == REDUCE_VAR ? call.real(3) : 0);
    if (!is_float(out.dtype)) result.error = 0;
    if (joins && out.dtype == DType::i32) {  // wraps after each step
      int64_t all = code == REDUCE_SUM ? 0 : 1;
      for (const double each : row)
        all = static_cast<int32_t>(code == REDUCE_SUM ? all + static_cast<int64_t>(each)
                                                      : all * static_cast<int64_t>(each));
      result.value = static_cast<double>(all);
    }
    out.elements.push_back(result);
  }
  if (joins && out.dtype == DType::i64) check_i64(call);
  if (is_float(out.dtype)) limit_errors(out);
}

// 0: product, 1 and 2: the largest, the smallest, and the place of the last of equal ones; 3: log of the sum of
// exponentials; 4: sum.
void scan(HostCall& call, int code) {
  const HostTensor& x = call.tensor(0);
  const size_t dim = axis_of(call.integer(1), x.shape);
  const auto inner = static_cast<size_t>(product(x.shape, dim + 1, x.shape.size()));
  const double steps = std::ceil(static_cast<double>(x.shape[dim]) / 32) + 8;
  HostOutput& out = call.out(0);
  std::vector<double> sizes(x.values.size());
  for (size_t i = 0; i < x.values.size(); ++i) {
    const int64_t j = x.shape.empty() ? 0 : coordinates(i, x.shape)[dim];
    sizes[i] = std::fabs(x.values[i]) + (j == 0 ? 0 : sizes[i - inner]);
    const double before = j == 0 ? 0 : out.elements[i - inner].value, term = x.values[i];
    double y = term, place = static_cast<double>(j);
    if (j > 0 && code == 0) y = before * term;
    if (j > 0 && code == 3) y = log_of_sum(before, term);
    if (j > 0 && code == 4) y = before + term;
    if (j > 0 && (code == 1 || code == 2)) {
      const bool later = std::isnan(term) || (!std::isnan(before) && (code == 1 ? term >= before : term <= before));
      y = later ? term : before;
      if (!later) place = call.out(1).elements[i - inner].value;
    }
    const bool whole = !is_float(out.dtype);
    if (whole && out.dtype != DType::i64) y = wrapped(static_cast<int64_t>(y), out.dtype);
    double error = 0;
    if (!whole && code == 0) error = 0x1p-24 * static_cast<double>(j) * std::fabs(y);
    if (!whole && code == 4) error = sum_error(steps, sizes[i]);
    if (code == 3 && std::isfinite(y)) error = 0x1p-20 * steps * (std::fabs(y) + 1);
    out.push(y, error);
    if (code == 1 || code == 2) call.out(1).push(place);
  }
  if (out.dtype == DType::i64) check_i64(call);
  if (is_float(out.dtype) && code == 4) limit_errors(out);
}

void layer_norm(HostCall& call) {
  const size_t width = last_sizes(call);
  norm(call, width, 2, 3, true, call.real(4), 1, width);
}

void rms_norm(HostCall& call) {
  const size_t width = last_sizes(call);
  norm(call, width, 2, 0, false, call.real(3), 1, width);
}

void group_norm(HostCall& call) {
  const Shape& shape = call.tensor(0).shape;
  const auto channels = static_cast<size_t>(shape[1]);
  const auto inner = static_cast<size_t>(product(shape, 2, shape.size()));
  norm(call, channels / static_cast<size_t>(call.integer(1)) * inner, 2, 3, true, call.real(4), inner, channels);
}

}  // namespace pumice::engine::reference
