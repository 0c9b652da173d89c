// SPDX-License-Identifier: Apache-2.0
#include "runtime/expected.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/reference/products.h"
#include "ops/shared/shape.h"

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

// A factor of matmul, its dimensions in the order in which they are read.
struct Factor {
  CallTensor tensor;
  Shape size, stride;
  Factor(const OneCall& call, std::string_view name, std::string_view perm) : tensor(call.tensor(name)) {
    const Shape strides = contiguous_strides(tensor.shape);
    const std::vector<int64_t>& order = call.arg(perm)->list;
    for (size_t d = 0; d < strides.size(); ++d) {
      const size_t axis = order.empty() ? d : static_cast<size_t>(order[d]);
      size.push_back(tensor.shape[axis]);
      stride.push_back(strides[axis]);
    }
  }
  // Of the matrix that is multiplied for these indices of the output, which batches of one broadcast over.
  int64_t begin(const Shape& at) const {
    int64_t found = 0;
    for (size_t d = 0; d + 2 < size.size(); ++d)
      found += size[d] == 1 ? 0 : at[at.size() - size.size() + d] * stride[d];
    return found;
  }
};

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

bool Expected::is_known() const {
  const bool alone = call_.calls() == 1 || call_.op(1) == "mean" || call_.op(1) == "layer_norm";
  return alone && !call_.integer("transposed") && !call_.has_caches();
}

int64_t Expected::terms() const {
  if (call_.op(0) == "matmul") return Factor(call_, "a", "a_perm").size.back();
  const Shape& out = call_.result_shape(0);
  const bool norm = call_.calls() > 1 && call_.op(1) == "layer_norm", mean = call_.calls() > 1 && call_.op(1) == "mean";
  const int64_t together = norm ? out.back() : mean ? out[2] * out[3] : 1;
  if (call_.is_channels_last()) return weight_.dim(0) * together;
  if (mean) return weight_.dim(1) * together;
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
  return rounded(sums, act, x_.dtype, 4 * x_step_ * std::sqrt(squares));
}

// Of a product of such factors; `more`: what the sum may be off besides.
Expected::Sum Expected::rounded(const TermSums& sums, uint32_t act, DType of, double more) const {
  const bool halves = of == DType::f16;
  // linear_roundings of ops/linear/error_bound.cpp: of fp16, weights or normed rows that were rounded; of fp32, split.
  const SumRoundings roundings{.fixed = 28, .unit = 0x1p-23, .of_terms = halves ? 0x1p-11 : 0x1p-19, .cuts = true};
  const double error = sum_error(roundings, sums) + more;
  return {reference::activated(sums.sum, act),
          error * reference::slope(act) + reference::activation_error(sums.sum, act)};
}

Expected::Sum Expected::matmul(int64_t index) const {
  const Factor a(call_, "a", "a_perm"), b(call_, "b", "b_perm");
  const Shape& out = call_.out_shape();
  Shape at(out.size());
  for (size_t d = out.size(); d-- > 0; index /= out[d]) at[d] = index % out[d];
  const int64_t row = at[at.size() - 2], column = at.back();
  const int64_t a_begin = a.begin(at) + row * a.stride[a.size.size() - 2],
                b_begin = b.begin(at) + column * b.stride.back();
  TermSums sums;
  for (int64_t k = 0; k < a.size.back(); ++k)
    sums.add(a.tensor.at(a_begin + k * a.stride.back()) * b.tensor.at(b_begin + k * b.stride[b.size.size() - 2]));
  sums.add(bias_.shape.empty() ? 0 : bias_.at(column));
  return rounded(sums, static_cast<uint32_t>(call_.integer("act")), a.tensor.dtype, 0);
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
  const Pixels out{call_.result_shape(0), call_.is_channels_last()};
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

Expected::Sum Expected::mean(int64_t index) const {
  const Shape& image = call_.result_shape(0);
  const int64_t pixels = image[2] * image[3];
  const double rounds = (x_.dtype == DType::f16 ? 0x1p-11 : 0) + 0x1p-24 * (static_cast<double>(pixels) / 32 + 10);
  Sum all{0, 0};
  for (int64_t i = 0; i < pixels; ++i) {
    const Sum each = conv(index * pixels + i);
    all.value += each.value;
    all.error += each.error + rounds * std::fabs(each.value);
  }
  return {all.value / static_cast<double>(pixels), all.error / static_cast<double>(pixels)};
}

// Of the channels of a pixel. To first order, the mean is off by the mean of what they are off, and the deviation by
// the root of the mean square of that.
Expected::Sum Expected::layer_norm(int64_t index) const {
  const int64_t channels = call_.result_shape(0).back(), first = index / channels * channels;
  const auto count = static_cast<double>(channels);
  const double rounds = (x_.dtype == DType::f16 ? 0x1p-11 : 0) + 0x1p-24 * (count / 32 + 12);
  std::vector<double> values;
  double mean = 0, mean_error = 0, square_error = 0, squares = 0, own_error = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const Sum each = conv(first + c);
    const double error = each.error + rounds * std::fabs(each.value);
    values.push_back(each.value);
    mean += each.value / count;
    mean_error += error / count;
    square_error += error * error / count;
    if (first + c == index) own_error = error;
  }
  for (const double value : values) squares += (value - mean) * (value - mean) / count;
  const double deviation = std::sqrt(squares + call_.real("eps", 0, 1));
  const CallTensor weight = call_.tensor("weight", 1), bias = call_.tensor("bias", 1);
  const int64_t channel = index - first;
  const double w = weight.shape.empty() ? 1 : weight.at(channel), b = bias.shape.empty() ? 0 : bias.at(channel);
  const double normed = (values[static_cast<size_t>(channel)] - mean) / deviation;
  const double error =
      (own_error + mean_error) / deviation + std::fabs(normed) * (std::sqrt(square_error) / deviation + rounds);
  return {normed * w + b, std::fabs(w) * error + 0x1p-22 * (std::fabs(normed * w) + std::fabs(b))};
}

Expected::Sum Expected::sum_of(int64_t index, size_t output) const {
  if (output == 0 && call_.calls() > 1) return call_.op(1) == "mean" ? mean(index) : layer_norm(index);
  if (call_.op(0) == "matmul") return matmul(index);
  return call_.knows("q") ? attention(index) : call_.knows("kernel") ? conv(index) : linear(index);
}

std::optional<Expected::Element> Expected::element(int64_t index, size_t output) const {
  const Sum sum = sum_of(index, output);
  const DType dtype = call_.out_dtype(output);
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
