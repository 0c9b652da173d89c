// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/products.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "glsl/include/math/activation.glslh"
#include "ops/shared/shape.h"
#include "ops/shared/sum_error.h"

namespace pumice::engine::reference {
namespace {

double clamped(double y) {  // to 0..6; a NaN stays
  return y < 0 ? 0 : y > 6 ? 6 : y;
}

// A tensor read as permuted by `perm`; empty: as it is. A dimension of size 1 is broadcast: its stride is 0.
struct Permuted {
  const HostTensor& tensor;
  Shape shape, strides;
  int64_t begin = 0;  // the element at coordinates of zeros

  Permuted(const HostTensor& given, std::vector<int64_t> perm) : tensor(given) {
    const Shape memory = contiguous_strides(given.shape);
    if (perm.empty()) {
      perm.resize(given.shape.size());
      std::iota(perm.begin(), perm.end(), 0);
    }
    for (const int64_t d : perm) {
      shape.push_back(given.shape[axis_of(d, given.shape)]);
      strides.push_back(shape.back() == 1 ? 0 : memory[axis_of(d, given.shape)]);
    }
  }
  // The element at coordinates that count from the last dimension, as many as there are or more.
  const double* at(const Shape& coordinates) const {
    const size_t added = coordinates.size() - shape.size();
    int64_t offset = begin;
    for (size_t d = 0; d < shape.size(); ++d) offset += coordinates[added + d] * strides[d];
    return tensor.values.data() + offset;
  }
  int64_t stride(size_t from_last) const { return strides[strides.size() - from_last]; }
};

TermSums dot(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t count) {
  TermSums sums;
  for (int64_t k = 0; k < count; ++k) sums.add(a[k * a_step] * b[k * b_step]);
  return sums;
}

// q, k or v of sdpa, rank 4: [batch, head, row, element], or [batch, row, head, element] in memory.
Permuted heads(const HostCall& call, size_t input) {
  const bool blhd = call.integer(6 + input) != 0;
  return Permuted(call.tensor(input), blhd ? std::vector<int64_t>{0, 2, 1, 3} : std::vector<int64_t>{});
}

// The scores of a query row, -infinity where a key is not seen, the largest, and what each of them may be off.
struct Scores {
  std::vector<double> all;
  double most = -INFINITY, error = 0;
  SplitScores split;
};

double largest_size(const double* values, int64_t step, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i * step]));
  return largest;
}

Scores scores_of(const HostCall& call, const Permuted& q, const Permuted& k, const Shape& row, int64_t key_head) {
  const int64_t keys = k.shape[2], elements = q.shape[3];
  Scores scores;
  const double* query = q.at({row[0], row[1], row[2], 0});
  const double scale = std::fabs(in_f32(call.real(5)));
  const double reach = scale * static_cast<double>(elements) * largest_size(query, q.stride(1), elements);
  for (int64_t s = 0; s < keys; ++s) {
    const double* key = k.at({row[0], key_head, s, 0});
    const TermSums sums = dot(query, q.stride(1), key, k.stride(1), elements);
    scores.split.size = std::max(scores.split.size, scale * sums.size);
    scores.split.reach = std::max(scores.split.reach, reach * largest_size(key, k.stride(1), elements));
    double score = sums.sum * in_f32(call.real(5));
    bool seen = call.integer(4) == 0 || s <= row[2];
    if (call.has(3)) {
      const double mask = broadcast_to(call.args[3], {row[0], row[1], row[2], s});
      if (call.tensor(3).dtype == DType::boolean)
        seen = seen && mask != 0;
      else
        score += mask;
    }
    scores.all.push_back(seen ? score : -INFINITY);
    scores.most = std::max(scores.most, scores.all.back());
    scores.error = std::max(scores.error, in_f32(call.real(5)) * sum_error({.fixed = 2}, sums));
  }
  return scores;
}

void attend(HostCall& call, const Permuted& q, const Permuted& k, const Permuted& v) {
  const bool out_blhd = call.integer(9) != 0;
  const int64_t keys = k.shape[2], per_key = q.shape[1] / k.shape[1];
  HostOutput& out = call.out();
  out.elements.resize(out.count());
  const auto e = static_cast<double>(q.shape[3]), s_count = static_cast<double>(keys);
  for (int64_t n = 0; n < q.shape[0] * q.shape[1] * q.shape[2]; ++n) {
    const Shape row = coordinates(static_cast<size_t>(n), {q.shape[0], q.shape[1], q.shape[2]});
    const int64_t head = row[1] / per_key;
    const Scores scores = scores_of(call, q, k, row, head);
    double total = 0;
    for (const double score : scores.all) total += std::isinf(scores.most) ? 0 : std::exp(score - scores.most);
    double most = 0;
    for (int64_t s = 0; s < keys; ++s)
      most = std::max(most, largest_size(v.at({row[0], head, s, 0}), v.stride(1), v.shape[3]));
    for (int64_t f = 0; f < v.shape[3]; ++f) {
      TermSums sums;
      double largest = 0;
      for (int64_t s = 0; s < keys && total > 0; ++s) {
        const double value = *v.at({row[0], head, s, f});
        sums.add(std::exp(scores.all[static_cast<size_t>(s)] - scores.most) / total * value);
        largest = std::max(largest, std::fabs(value));
      }
      const Shape at = out_blhd ? Shape{row[0], row[2], row[1], f} : Shape{row[0], row[1], row[2], f};
      const double error = (sum_error(e + s_count + 8, 1) + 4 * scores.error) * largest;
      const double more = out.dtype == DType::f32 ? split_attention(scores.split, error, s_count, total, largest, most)
                                                  : error + halved_weights(sums, s_count, total, largest);
      out.elements[index_at(at, out.shape)] = {sums.sum, error, more};
    }
  }
  limit_errors(out);
}

}  // namespace

double activated(double y, uint32_t act) {
  switch (act) {
    case ACT_RELU:
      return y > 0 || std::isnan(y) ? y : 0;
    case ACT_GELU:
      return 0.5 * y * (1 + std::erf(y * std::sqrt(0.5)));
    case ACT_GELU_TANH:
      return 0.5 * y * (1 + std::tanh(std::sqrt(2 / M_PI) * (y + 0.044715 * y * y * y)));
    case ACT_SILU:
      return y / (1 + std::exp(-y));
    case ACT_RELU6:
      return clamped(y);
    case ACT_HARDSWISH:
      return y * clamped(y + 3) / 6;
    case ACT_HARDSIGMOID:
      return clamped(y + 3) / 6;
    default:
      return y;
  }
}

double slope(uint32_t act) {
  return act == ACT_HARDSWISH ? 1.5 : act == ACT_GELU || act == ACT_GELU_TANH || act == ACT_SILU ? 1.13 : 1;
}

double activation_error(double y, uint32_t act) {
  constexpr double kUnit = 0x1p-24;
  if (act == ACT_NONE || act == ACT_RELU || act == ACT_RELU6) return 0;
  if (act != ACT_HARDSWISH && act != ACT_HARDSIGMOID) return 4e-7 * std::fabs(y);
  // y + 3 is rounded, the product by a unit, and the division by 6 may be off by 2.5 ulp (GLSL), 5 units.
  const double shifted = kUnit * (std::min(std::fabs(y), 3.0) + 3) / 6;
  return (act == ACT_HARDSWISH ? std::fabs(y) : 1) * shifted + 6 * kUnit * std::fabs(activated(y, act));
}

double halved_weights(const TermSums& sums, double keys, double total, double largest) {
  return sum_error({.per_term = 0, .of_terms = 0x1p-11}, sums) + 0x1p-25 * keys / std::max(total, 1.0) * largest;
}

double split_attention(const SplitScores& scores, double error, double keys, double total, double largest,
                       double most) {
  const double of_score = 0x1p-21 * scores.size + 0x1p-49 * scores.reach;
  const double of_weights = 0x1p-21 + 0x1p-36 * keys / std::max(total, 1.0);
  return error + (4 * of_score + of_weights) * largest + 0x1p-49 * most;
}

// max|a| * sum|b| + sum|a| * max|b|, of a row and a column.
static double lost_by_split(const Permuted& a, const double* at_a, const Permuted& b, const double* at_b,
                            int64_t count) {
  double most_a = 0, most_b = 0, sum_a = 0, sum_b = 0;
  for (int64_t k = 0; k < count; ++k) {
    const double x = std::fabs(at_a[k * a.stride(1)]), w = std::fabs(at_b[k * b.stride(2)]);
    most_a = std::max(most_a, x), most_b = std::max(most_b, w);
    sum_a += x, sum_b += w;
  }
  return most_a * sum_b + sum_a * most_b;
}

void matmul(HostCall& call) {
  const Permuted a(call.tensor(0), call.ints(3)), b(call.tensor(1), call.ints(4));
  const auto act = static_cast<uint32_t>(call.integer(5));
  const int64_t count = a.shape.back();
  HostOutput& out = call.out();
  const bool split = out.dtype == DType::f32;
  for (size_t i = 0; i < out.count(); ++i) {
    const Shape at = coordinates(i, out.shape);
    Shape left = at, right = at;
    const double bias = call.has(2) ? call.tensor(2).values.at(static_cast<size_t>(at.back())) : 0;
    left.back() = right[right.size() - 2] = 0;
    const double *at_a = a.at(left), *at_b = b.at(right);
    TermSums sums = dot(at_a, a.stride(1), at_b, b.stride(2), count);
    sums.add(bias);
    const double error = sum_error({.fixed = 2}, sums) * slope(act);
    const SumRoundings matrices = {.fixed = 2, .unit = 0x1p-23, .of_terms = split ? 0x1p-20 : 0, .cuts = true};
    const double lost = split ? 0x1p-49 * lost_by_split(a, at_a, b, at_b, count) : 0;  // glsl/matmul_matrix.glsl
    out.elements.push_back({activated(sums.sum, act), error + activation_error(sums.sum, act),
                            (sum_error(matrices, sums) + lost) * slope(act) - error});
  }
  limit_errors(out);
}

void conv2d_depthwise_channels_last(HostCall& call) {
  const HostTensor &x = call.tensor(0), &weight = call.tensor(1);
  const std::vector<int64_t>&kernel = call.ints(3), &stride = call.ints(4), &pads = call.ints(5),
        &dilation = call.ints(6);
  const auto act = static_cast<uint32_t>(call.integer(7));
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) {
    const Shape at = coordinates(i, out.shape);
    const int64_t c = at[3];
    TermSums sums;
    sums.add(call.has(2) ? call.tensor(2).values.at(static_cast<size_t>(c)) : 0);
    for (int64_t tap = 0; tap < kernel[0] * kernel[1]; ++tap) {
      const int64_t ky = tap / kernel[1], kx = tap % kernel[1];
      const int64_t y = at[1] * stride[0] + ky * dilation[0] - pads[0], column = at[2] * stride[1] + kx * dilation[1];
      const int64_t in_x = column - pads[1];
      if (y < 0 || y >= x.shape[1] || in_x < 0 || in_x >= x.shape[2]) continue;
      sums.add(x.values[index_at({at[0], y, in_x, c}, x.shape)] * weight.values[index_at({tap, c}, weight.shape)]);
    }
    out.push(activated(sums.sum, act), sum_error({.fixed = 4}, sums) * slope(act) + activation_error(sums.sum, act));
  }
  limit_errors(out);
}

void sdpa(HostCall& call) {
  attend(call, heads(call, 0), heads(call, 1), heads(call, 2));
}

void sdpa_heads(HostCall& call) {
  const auto slice = [&](size_t input, size_t count) {
    Permuted all = heads(call, input);
    all.begin = call.integer(10 + input) * all.stride(3);
    all.shape[1] = call.integer(count);
    return all;
  };
  attend(call, slice(0, 13), slice(1, 14), slice(2, 14));
}

void squeeze_excite(HostCall& call) {
  const HostTensor &x = call.tensor(0), &weight1 = call.tensor(1), &weight2 = call.tensor(3);
  const int64_t hidden = weight1.dim(0), channels = weight1.dim(1);
  const auto act = static_cast<uint32_t>(call.integer(5));
  const bool hard = call.integer(6) != 0;
  const auto row_sums = [&](const double* row, const HostTensor& weight, int64_t n, size_t bias) {
    const int64_t columns = weight.dim(1);
    TermSums sums = dot(row, 1, weight.values.data() + n * columns, 1, columns);
    sums.add(call.has(bias) ? call.tensor(bias).values[static_cast<size_t>(n)] : 0);
    return sums;
  };
  for (int64_t row = 0; row < x.dim(0); ++row) {
    std::vector<double> h, off;
    for (int64_t r = 0; r < hidden; ++r) {
      const TermSums sums = row_sums(x.values.data() + row * channels, weight1, r, 2);
      h.push_back(activated(sums.sum, act));
      off.push_back(sum_error({.fixed = 2}, sums) * slope(act) + activation_error(sums.sum, act));
    }
    for (int64_t c = 0; c < channels; ++c) {
      const TermSums sums = row_sums(h.data(), weight2, c, 4);
      double error = sum_error({.fixed = 2}, sums);
      for (int64_t r = 0; r < hidden; ++r)
        error += std::fabs(weight2.values[static_cast<size_t>(c * hidden + r)]) * off[static_cast<size_t>(r)];
      const double y = hard ? activated(sums.sum, ACT_HARDSIGMOID) : 1 / (1 + std::exp(-sums.sum));
      const double of_gate = hard ? activation_error(sums.sum, ACT_HARDSIGMOID)
                                  : 0x1p-23 * (3 + 2 * std::fabs(sums.sum)) * y * (1 - y) + 6 * 0x1p-24 * y;
      call.out().push(y, error / (hard ? 6 : 4) + of_gate);
    }
  }
  limit_errors(call.out());
}

}  // namespace pumice::engine::reference
