// SPDX-License-Identifier: Apache-2.0
#include "runtime/expected.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/reference/products.h"
#include "ops/shared/shape.h"
#include "ops/shared/sum_error.h"

namespace pumice::engine {
namespace {

// A kernel that lies is off by whole terms: bounds of what roundings may do are taken so many times.
constexpr double kRoom = 4;

double clamped(double value, double low, double high) {
  return std::min(std::max(value, low), high);
}

int64_t size_at(const OneCall& call, std::string_view param, size_t i) {
  return call.arg(param)->list.at(i);
}

}  // namespace

Expected::Expected(const OneCall& call)
    : call_(call),
      x_(call.tensor("x")),
      weight_(call.tensor("weight")),
      scale_(call.tensor("scale")),
      zero_(call.tensor("zero")),
      bias_(call.tensor("bias")),
      residual_(call.tensor("residual")),
      norm_(call.tensor("norm")) {
  // x is quantized on the device: a number is off by half a step, or, at a tie, by a whole one.
  const double steps = static_cast<double>(call.integer("qmax") - call.integer("qmin"));
  if (call.knows("mapping")) x_step_ = 4 / steps;
  if (call.has("x_scale")) {
    // OneCall::fill makes up numbers of which each has one step that is the nearest.
    quantized_ = {call.real("x_scale"), call.real("x_zero"), call.real("qmin"), call.real("qmax")};
  }
  if (call.knows("q") && is_known())
    q_ = call.tensor("q").values(), k_ = call.tensor("k").values(), v_ = call.tensor("v").values();
  for (size_t i = 0; call.knows("kernel") && i < 2; ++i)
    windows_.push_back({size_at(call, "kernel", i), size_at(call, "stride", i), size_at(call, "dilation", i),
                        size_at(call, "pads", i)});
}

int64_t Expected::terms() const {
  if (call_.is_channels_last()) return weight_.dim(0);
  return weight_.shape.empty() ? call_.tensor("k").shape.at(2) * 128 : weight_.dim(1) * (call_.has("gated") ? 3 : 1);
}

// x as the kernel multiplies it, but for x that is quantized by parameters chosen from it.
double Expected::input(int64_t index) const {
  const double number = x_.at(index);
  if (!quantized_) return number;
  const auto [scale, zero, low, high] = *quantized_;
  if (!is_float(x_.dtype)) return (number - zero) * scale;
  return (clamped(std::nearbyint(number / scale) + zero, low, high) - zero) * scale;
}

Expected::Sum Expected::product(const std::vector<double>& x, int64_t n, uint32_t act) const {
  const auto k = static_cast<int64_t>(x.size()), group = scale_.shape.empty() ? k : k / scale_.dim(1);
  const bool columns = call_.is_channels_last();  // of the weight, for channels
  TermSums sums;
  double squares = 0;
  for (int64_t i = 0; i < k; ++i) {
    double w = weight_.at(columns ? i * weight_.dim(1) + n : n * k + i);
    if (!scale_.shape.empty()) {
      const int64_t at = (n * k + i) / group;
      w = (w - (zero_.shape.empty() ? 0 : zero_.at(at))) * scale_.at(at);
    }
    sums.add(x[static_cast<size_t>(i)] * w);
    squares += w * w;
  }
  sums.add(bias_.shape.empty() ? 0 : bias_.at(n));
  const bool halves = x_.dtype == DType::f16;
  // linear_roundings of ops/linear/error_bound.cpp: of fp16, weights or normed rows that were rounded; of fp32, split.
  const SumRoundings roundings{.fixed = 28, .unit = 0x1p-23, .of_terms = halves ? 0x1p-11 : 0x1p-19, .cuts = true};
  const double error = sum_error(roundings, sums) + 4 * x_step_ * std::sqrt(squares);
  return {reference::activated(sums.sum, act),
          error * reference::slope(act) + reference::activation_error(sums.sum, act)};
}

std::vector<double> Expected::row(int64_t index) const {
  const int64_t k = weight_.dim(1);
  std::vector<double> row(static_cast<size_t>(k));
  double squares = 0;
  for (int64_t i = 0; i < k; ++i) {
    double& number = row[static_cast<size_t>(i)] = input(index * k + i);
    squares += number * number;
  }
  if (norm_.shape.empty()) return row;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(k) + call_.real("eps"));
  for (int64_t i = 0; i < k; ++i) row[static_cast<size_t>(i)] *= scale * norm_.at(i);
  return row;
}

Expected::Sum Expected::linear(int64_t index) const {
  const int64_t columns = call_.out_shape().back(), column = index % columns;
  const std::vector<double> x = row(index / columns);
  const auto act = static_cast<uint32_t>(call_.integer("act"));
  if (call_.integer("gated") == 0) {
    const Sum sum = product(x, column, act);
    return {sum.value + (residual_.shape.empty() ? 0 : residual_.at(index)), sum.error};
  }
  const int64_t n = column / 16 * 32 + column % 16;  // ops/fused_linear.cpp
  const Sum a = product(x, n, act), b = product(x, n + 16, 0);
  const double rounded = 0x1p-10 * std::fabs(a.value * b.value);  // where a kernel does not gate
  return {a.value * b.value, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error + rounded};
}

// Of an image, with its channels before or after rows and columns.
struct Expected::Pixels {
  const Shape& shape;
  bool channels_last;
  int64_t channels() const { return shape[channels_last ? 3 : 1]; }
  int64_t rows() const { return shape[channels_last ? 1 : 2]; }
  int64_t columns() const { return shape[channels_last ? 2 : 3]; }
  int64_t at(int64_t image, int64_t c, int64_t y, int64_t x) const {
    return channels_last ? ((image * rows() + y) * columns() + x) * channels() + c
                         : ((image * channels() + c) * rows() + y) * columns() + x;
  }
};

std::vector<double> Expected::patch(int64_t image, int64_t group, int64_t y, int64_t x) const {
  const Pixels in{x_.shape, call_.is_channels_last()};
  const int64_t channels = in.channels() / groups();
  const Window &rows = windows_[0], &columns = windows_[1];
  std::vector<double> patch;
  for (int64_t c = group * channels; c < (group + 1) * channels; ++c) {
    for (int64_t ky = 0; ky < rows.kernel; ++ky) {
      for (int64_t kx = 0; kx < columns.kernel; ++kx) {
        const int64_t at_y = y * rows.stride + ky * rows.dilation - rows.pad,
                      at_x = x * columns.stride + kx * columns.dilation - columns.pad;
        const bool inside = at_y >= 0 && at_y < in.rows() && at_x >= 0 && at_x < in.columns();
        patch.push_back(inside ? input(in.at(image, c, at_y, at_x)) : 0);
      }
    }
  }
  return patch;
}

int64_t Expected::groups() const {
  return call_.is_channels_last() ? weight_.dim(1) : call_.integer("groups", 1);
}

Expected::Sum Expected::conv(int64_t index) const {
  const Pixels out{call_.out_shape(), call_.is_channels_last()};
  const int64_t inner = out.channels_last ? out.channels() : out.columns(), first = index % inner;
  const int64_t second = index / inner % (out.channels_last ? out.columns() : out.rows());
  const int64_t outer = out.channels_last ? out.columns() : out.rows();
  const int64_t third = index / (inner * outer) % (out.channels_last ? out.rows() : out.channels());
  const int64_t image = index / (out.channels() * out.rows() * out.columns());
  const auto [channel, y, x] = out.channels_last ? std::array{first, third, second} : std::array{third, second, first};
  return product(patch(image, channel / (out.channels() / groups()), y, x), channel,
                 static_cast<uint32_t>(call_.integer("act")));
}

Expected::Sum Expected::attention(int64_t index) const {
  const CallTensor q = call_.tensor("q"), k = call_.tensor("k"), v = call_.tensor("v"), mask = call_.tensor("mask");
  // [batch, head, row, element], or with heads and rows the other way around.
  struct View {
    const Shape& shape;
    bool blhd;
    int64_t heads() const { return shape[blhd ? 2 : 1]; }
    int64_t rows() const { return shape[blhd ? 1 : 2]; }
    int64_t at(int64_t b, int64_t h, int64_t l) const {
      return (blhd ? (b * rows() + l) * heads() + h : (b * heads() + h) * rows() + l) * shape[3];
    }
  };
  const View in_q{q.shape, call_.integer("q_blhd") != 0}, in_k{k.shape, call_.integer("k_blhd") != 0},
      in_v{v.shape, call_.integer("v_blhd") != 0}, out{call_.out_shape(), call_.integer("out_blhd") != 0};
  const int64_t f = index % out.shape[3], outer = index / out.shape[3];
  const int64_t inner = out.blhd ? out.heads() : out.rows(), b = outer / (out.heads() * out.rows());
  const int64_t first = outer / inner % (out.blhd ? out.rows() : out.heads()), second = outer % inner;
  const int64_t h = out.blhd ? second : first, l = out.blhd ? first : second;
  const int64_t kv = h / (in_q.heads() / in_k.heads());
  const auto number = [](const std::vector<float>& of, int64_t at) { return double{of[static_cast<size_t>(at)]}; };
  const double scale = call_.real("scale");
  const bool causal = call_.integer("causal") != 0;
  std::vector<double> scores;
  double most = -INFINITY, score_error = 0;
  for (int64_t s = 0; s < in_k.rows(); ++s) {
    TermSums sums;
    for (int64_t e = 0; e < q.shape[3]; ++e)
      sums.add(number(q_, in_q.at(b, h, l) + e) * number(k_, in_k.at(b, kv, s) + e));
    double score = sums.sum * scale;
    bool seen = !causal || s <= l;
    if (!mask.shape.empty()) {
      const Shape& m = mask.shape;
      const int64_t at = (((b % m[0]) * m[1] + h % m[1]) * m[2] + l % m[2]) * m[3] + s % m[3];
      if (mask.dtype == DType::boolean)
        seen = seen && mask.at(at) != 0;
      else
        score += mask.at(at);
    }
    scores.push_back(seen ? score : -INFINITY);
    most = std::max(most, scores.back());
    score_error = std::max(score_error, scale * sum_error({.fixed = 2, .unit = 0x1p-23}, sums));
  }
  double total = 0, largest = 0;
  for (const double score : scores) total += std::isinf(most) ? 0 : std::exp(score - most);
  TermSums sums;
  for (int64_t s = 0; s < in_k.rows() && total > 0; ++s) {
    const double value = number(v_, in_v.at(b, kv, s) + f);
    sums.add(std::exp(scores[static_cast<size_t>(s)] - most) / total * value);
    largest = std::max(largest, std::fabs(value));
  }
  const auto keys = static_cast<double>(in_k.rows());
  const double roundings = 0x1p-23 * (static_cast<double>(q.shape[3]) + keys + 8) + 4 * score_error;
  const bool halves = q.dtype == DType::f16;
  return {sums.sum, roundings * largest + (halves ? reference::halved_weights(sums, keys, total, largest) : 0)};
}

std::optional<Expected::Element> Expected::element(int64_t index) const {
  const Sum sum = call_.knows("q") ? attention(index) : call_.knows("kernel") ? conv(index) : linear(index);
  const DType dtype = call_.out_dtype();
  double value = sum.value, error = kRoom * sum.error;
  if (is_float(dtype)) {
    const double size = std::fabs(value) + (residual_.shape.empty() ? 0 : std::fabs(residual_.at(index)));
    error += kRoom * (dtype == DType::f16 ? 0x1p-11 * size + 0x1p-24 : 0x1p-24 * size + 0x1p-126);
    if (dtype == DType::f16 && std::fabs(value) + error > 65504) return std::nullopt;
  } else {
    const double scale = call_.real("out_scale", 1);
    value = clamped(value / scale + call_.real("out_zero"), call_.real("qmin"), call_.real("qmax"));
    error = error / scale + 0.5 + 1e-3;
  }
  if (!std::isfinite(value) || !std::isfinite(error)) return std::nullopt;
  return Element{value, error};
}

}  // namespace pumice::engine
