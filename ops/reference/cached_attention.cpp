// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/cached_attention.h"

#include <algorithm>
#include <cmath>

#include "ops/reference/products.h"

namespace pumice::engine::reference {
namespace {

enum Argument : size_t {
  kQ,
  kK,
  kV,
  kKeyCache,
  kValueCache,
  kFirst,
  kCos,
  kSin,
  kQNorm,
  kKNorm,
  kSinks,
  kEps,
  kHeads,
  kQBegin,
  kKBegin,
  kVBegin,
  kScale,
  kWindow,
  kSoftcap,
  kScales,
};

// A head's elements in a row of q, k or v after norm and rotation, rounded to the dtype of the tensors.
struct Head {
  std::vector<double> values, errors;  // of each, before it is rounded
  // How far two kernels may differ in an element after its rounding: not at all, mostly.
  double doubt(size_t i, DType dtype) const {
    return stored(values[i] + errors[i], dtype) - stored(values[i] - errors[i], dtype);
  }
};

// A head's elements as a cache keeps them, what they stand for, and how far both may be off in a kernel.
struct Row {
  std::vector<HostResult> elements;
  std::vector<double> values, doubts;
  HostResult scale;
};

Row as_it_is(const Head& head, DType dtype) {
  Row row;
  for (size_t i = 0; i < head.values.size(); ++i) {
    row.elements.push_back({head.values[i], head.errors[i]});
    row.values.push_back(stored(head.values[i], dtype));
    row.doubts.push_back(head.doubt(i, dtype));
  }
  return row;
}

// int8, of elements that are rounded to `dtype` before.
Row as_int8(const Head& head, DType dtype) {
  double least = 0, most = 0, nominal = 0;  // of the largest element
  for (size_t i = 0; i < head.values.size(); ++i) {
    const double size = std::fabs(head.values[i]);
    least = std::max(least, stored(std::max(size - head.errors[i], 0.0), dtype));
    most = std::max(most, stored(size + head.errors[i], dtype));
    nominal = std::max(nominal, stored(size, dtype));
  }
  const double low = in_f32(least / 127), high = in_f32(most / 127), scale = in_f32(nominal / 127);
  const auto integer = [](double x, double s) {
    return s == 0 ? 0 : std::clamp(std::nearbyint(in_f32(x / s)), -127.0, 127.0);
  };
  Row row;
  row.scale = {scale, high - low};
  for (size_t i = 0; i < head.values.size(); ++i) {
    const double q = integer(stored(head.values[i], dtype), scale);
    double off = 0;
    for (const double x : {head.values[i] - head.errors[i], head.values[i] + head.errors[i]})
      for (const double s : {low, high}) off = std::max(off, std::fabs(integer(stored(x, dtype), s) - q));
    row.elements.push_back({q, off});
    row.values.push_back(q * scale);
    row.doubts.push_back(off * high + std::fabs(q) * (high - low));
  }
  return row;
}

// `norm`: the argument with the norm's weight; kV: neither norm nor rotation. `at`: sequence, new row, head; `first`:
// the position of new row 0; `interleaved`: the rotation is of pairs of neighbours.
Head head_of(const HostCall& call, bool interleaved, size_t x, size_t norm, const Shape& at, int64_t begin,
             int64_t size, int64_t first) {
  const HostTensor& rows = call.tensor(x);
  Head head;
  double squares = 0;
  for (int64_t i = 0; i < size; ++i) {
    head.values.push_back(rows.values[index_at({at[0], at[1], begin + at[2] * size + i}, rows.shape)]);
    squares += head.values.back() * head.values.back();
  }
  const bool normed = norm != kV && call.has(norm);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(size) + in_f32(call.real(kEps)));
  // The sum of squares takes up to 9 roundings, which the root halves; quotient, root and products take 6.
  constexpr double kNormSteps = 11;
  for (int64_t i = 0; i < size; ++i) {
    if (normed) head.values[i] *= factor * call.tensor(norm).values[i];
    head.errors.push_back(normed ? sum_error(kNormSteps, std::fabs(head.values[i])) : 0);
  }
  if (norm == kV || !call.has(kCos)) return head;
  const HostTensor &cos = call.tensor(kCos), &sin = call.tensor(kSin);
  const int64_t angles = cos.shape.back(), rotated = interleaved ? 2 * angles : angles;
  const int64_t apart = interleaved ? 1 : rotated / 2;
  const std::vector<double> before = head.values;
  for (int64_t i = 0; i < rotated; ++i) {
    const int64_t column = interleaved ? i / 2 : i;
    const size_t angle = cos.shape.size() == 2
                             ? index_at({std::clamp<int64_t>(first + at[1], 0, cos.dim(0) - 1), column}, cos.shape)
                             : index_at({cos.dim(0) == 1 ? 0 : at[0], at[1], column}, cos.shape);
    const bool low = interleaved ? i % 2 == 0 : i < apart;
    const double other = low ? -before[i + apart] : before[i - apart];
    head.values[i] = before[i] * cos.values[angle] + other * sin.values[angle];
    const double products = std::fabs(before[i] * cos.values[angle]) + std::fabs(other * sin.values[angle]);
    head.errors[i] = sum_error(2 + (normed ? kNormSteps : 0), products);
  }
  return head;
}

// The caches after the new rows, as numbers, and how far a key may be off.
struct CacheValues {
  std::vector<double> k, v, doubts;
};

// Writes the new rows to the outputs, and reports those that are out of the caches.
CacheValues write_rows(HostCall& call, bool int8, bool interleaved) {
  const HostTensor &keys = call.tensor(kKeyCache), &values = call.tensor(kValueCache), &first = call.tensor(kFirst);
  const int64_t batches = keys.dim(0), kv_heads = keys.dim(1), capacity = keys.dim(2), e = keys.dim(3);
  const int64_t f = values.dim(3), rows = call.tensor(kQ).dim(1);
  HostOutput &new_keys = call.out(1), &new_values = call.out(2);
  for (const double value : keys.values) new_keys.push(value);
  for (const double value : values.values) new_values.push(value);
  CacheValues caches{keys.values, values.values, std::vector<double>(keys.values.size(), 0)};
  if (int8) {
    const std::vector<double>& scales = call.tensor(kScales).values;
    for (const double scale : scales) call.out(3).push(scale);
    for (size_t i = 0; i < caches.k.size(); ++i) caches.k[i] *= scales[i / static_cast<size_t>(e) * 2];
    for (size_t i = 0; i < caches.v.size(); ++i) caches.v[i] *= scales[i / static_cast<size_t>(f) * 2 + 1];
  }
  const auto row_of = [&](const Head& head) {
    return int8 ? as_int8(head, call.out(0).dtype) : as_it_is(head, new_keys.dtype);
  };
  for (int64_t b = 0; b < batches; ++b) {
    const auto begin = static_cast<int64_t>(first.values[b]);
    if (begin < 0 || begin + rows > capacity) {
      const int64_t row = begin < 0 ? 0 : rows - 1;
      call.reports.push_back(
          {static_cast<uint32_t>(b * rows + row), static_cast<int32_t>(begin + row), static_cast<int32_t>(capacity)});
      continue;
    }
    for (int64_t l = 0; l < rows; ++l) {
      for (int64_t g = 0; g < kv_heads; ++g) {
        const Row key = row_of(head_of(call, interleaved, kK, kKNorm, {b, l, g}, call.integer(kKBegin), e, begin));
        const Row value = row_of(head_of(call, interleaved, kV, kV, {b, l, g}, call.integer(kVBegin), f, begin));
        const size_t at = index_at({b, g, begin + l}, {batches, kv_heads, capacity});
        for (size_t i = 0, to = at * static_cast<size_t>(e); i < key.values.size(); ++i, ++to) {
          new_keys.elements[to] = key.elements[i];
          caches.k[to] = key.values[i];
          caches.doubts[to] = key.doubts[i];
        }
        for (size_t i = 0, to = at * static_cast<size_t>(f); i < value.values.size(); ++i, ++to) {
          new_values.elements[to] = value.elements[i];
          caches.v[to] = value.values[i];
        }
        if (int8) call.out(3).elements[2 * at] = key.scale, call.out(3).elements[2 * at + 1] = value.scale;
      }
    }
  }
  return caches;
}

void attend(HostCall& call, bool int8, bool interleaved) {
  const auto [k, v, doubts] = write_rows(call, int8, interleaved);
  const HostTensor &keys = call.tensor(kKeyCache), &values = call.tensor(kValueCache), &first = call.tensor(kFirst);
  const int64_t batches = keys.dim(0), kv_heads = keys.dim(1), capacity = keys.dim(2), e = keys.dim(3);
  const int64_t f = values.dim(3), heads = call.integer(kHeads), rows = call.tensor(kQ).dim(1);
  HostOutput& out = call.out(0);
  out.elements.resize(out.count());
  const double scale = in_f32(call.real(kScale)), softcap = in_f32(call.real(kSoftcap));
  const int64_t window = call.integer(kWindow);
  for (size_t n = 0; n < static_cast<size_t>(batches * rows * heads); ++n) {
    const Shape at = coordinates(n, {batches, rows, heads});
    const int64_t b = at[0], g = at[2] / (heads / kv_heads), own = static_cast<int64_t>(first.values[b]) + at[1];
    const Head query = head_of(call, interleaved, kQ, kQNorm, at, call.integer(kQBegin), e, own - at[1]);
    std::vector<double> scores;
    const int64_t oldest = window == 0 ? 0 : std::max<int64_t>(0, own - window + 1);
    double most = call.has(kSinks) ? call.tensor(kSinks).values[at[2]] : -INFINITY, sizes = 0, doubt = 0;
    double most_query = 0, most_key = 0, most_value = 0;
    for (int64_t s = oldest; s <= std::min(own, capacity - 1); ++s) {
      double score = 0, size = 0, unsure = 0;
      for (int64_t i = 0; i < e; ++i) {
        const size_t at_key = index_at({b, g, s, i}, keys.shape);
        const double q = stored(query.values[i], out.dtype), product = q * k[at_key];
        unsure += query.doubt(static_cast<size_t>(i), out.dtype) * std::fabs(k[at_key]) + doubts[at_key] * std::fabs(q);
        most_query = std::max(most_query, std::fabs(q)), most_key = std::max(most_key, std::fabs(k[at_key]));
        score += product;
        size += std::fabs(product);
      }
      sizes = std::max(sizes, size * std::fabs(scale));
      doubt = std::max(doubt, unsure * std::fabs(scale));
      score *= scale;
      scores.push_back(softcap > 0 ? softcap * std::tanh(score / softcap) : score);
      most = std::max(most, scores.back());
    }
    double total = call.has(kSinks) ? std::exp(call.tensor(kSinks).values[at[2]] - most) : 0;
    for (const double score : scores) total += std::exp(score - most);
    const double score_error = sum_error(static_cast<double>(e) + 11, sizes) + doubt;
    // Matrices: weights are rounded to fp16; so are keys and values of bytes times their scale.
    const double of_keys = int8 ? 0x1p-11 * 4 * sizes : 0;
    const SplitScores split{sizes, std::fabs(scale) * static_cast<double>(e) * most_query * most_key};
    for (int64_t s = oldest; s < oldest + static_cast<int64_t>(scores.size()); ++s)
      for (int64_t i = 0; i < f; ++i)
        most_value = std::max(most_value, std::fabs(v[index_at({b, g, s, i}, values.shape)]));
    for (int64_t i = 0; i < f; ++i) {
      TermSums sums;
      double largest = 0;
      for (size_t s = 0; s < scores.size(); ++s) {
        const double value = v[index_at({b, g, oldest + static_cast<int64_t>(s), i}, values.shape)];
        sums.add(std::exp(scores[s] - most) / total * value);
        largest = std::max(largest, std::fabs(value));
      }
      const double error = (sum_error(static_cast<double>(e + capacity) + 17, 1) + 4 * score_error) * largest;
      const auto count = static_cast<double>(scores.size());
      const double halved = error + (int8 ? 2 : 1) * halved_weights(sums, count, total, largest) + of_keys * largest;
      const double more =
          out.dtype == DType::f32 && !int8 ? split_attention(split, error, count, total, largest, most_value) : halved;
      out.elements[n * static_cast<size_t>(f) + i] = {sums.sum, error, more};
    }
  }
}

}  // namespace

void cached_attention(HostCall& call) {
  attend(call, false, false);
}
void cached_attention_interleaved(HostCall& call) {
  attend(call, false, true);
}
void cached_attention_int8(HostCall& call) {
  attend(call, true, false);
}
void cached_attention_int8_interleaved(HostCall& call) {
  attend(call, true, true);
}

}  // namespace pumice::engine::reference
