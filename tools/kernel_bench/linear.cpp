// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/linear.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/thread_pool.h"
#include "glsl/include/math/activation.glslh"
#include "ops/reference/products.h"
#include "tools/kernel_bench/exact.h"
#include "tools/kernel_bench/integers.h"
#include "tools/kernel_bench/values.h"

namespace pumice::engine::kernel_bench {
namespace {

// Whether x and the result are 8-bit integers.
bool are_bytes(const LinearScheme& scheme) {
  return scheme.rows == Rows::bytes || scheme.rows == Rows::given;
}

// The number of columns with one scale.
int64_t columns(const LinearScheme& scheme, const Case& c) {
  return scheme.scales != ScalePer::group || c.group == 0 ? c.k : c.group;
}

class Linear : public CaseData {
 public:
  Linear(const LinearScheme& scheme, const Case& c, uint64_t seed)
      : CaseData(c),
        scheme_(scheme),
        q4_(scheme.weight == WeightType::q4),
        quantized_(scheme.scales != ScalePer::none) {
    c_.group = columns(scheme, c);
    groups_ = c_.k / c_.group;
    huge_ = is_beside_huge() ? c_.k / 2 : -1;
    make_zeros(seed);
    make_weight(seed);
    make_x(seed);
    if (c_.bias) bias_.resize(static_cast<size_t>(c_.n));
    Random random(seed, "bias");
    for (float& each : bias_) each = random.uniform(-1, 1);
    bias_data_ = floats(c_.dtype, {c_.n}, bias_);
  }

  std::vector<Argument> arguments() const override {
    using Role = Argument::Role;
    std::vector<Argument> all = {{"x", Role::input, x_data_}, {"weight", Role::constant, weight_}};
    if (quantized_) all.push_back({"scale", Role::constant, scale_data_});
    if (c_.zeros != Zeros::none) all.push_back({"zero", Role::constant, zero_data_});
    if (c_.bias) all.push_back({"bias", Role::constant, bias_data_});
    all.push_back({.name = "group", .role = Role::integer, .number = c_.group});
    all.push_back({.name = "act", .role = Role::integer, .number = c_.act});
    if (scheme_.rows == Rows::floats) return all;
    all.push_back({.name = "mapping", .role = Role::integer, .number = 0});
    all.push_back({.name = "qmin", .role = Role::integer, .number = shift_of(c_.out) - 128});
    all.push_back({.name = "qmax", .role = Role::integer, .number = shift_of(c_.out) + 127});
    all.push_back({.name = "eps", .role = Role::real, .real = kEps});
    all.push_back({.name = "per_token", .role = Role::integer, .number = 1});
    if (scheme_.rows == Rows::given) {
      all.push_back({"x_scale", Role::input, x_qparams_.scales});
      all.push_back({"x_zero", Role::input, x_qparams_.zeros});
      all.push_back({"out_scale", Role::input, out_qparams_.scales});
      all.push_back({"out_zero", Role::input, out_qparams_.zeros});
      return all;
    }
    all.push_back({.name = "x_scale", .role = Role::real, .real = kRowNumbers.scale});
    all.push_back({.name = "x_zero", .role = Role::integer, .number = zero_of(kRowNumbers, c_.in)});
    all.push_back({.name = "out_scale", .role = Role::real, .real = kOutNumbers.scale});
    all.push_back({.name = "out_zero", .role = Role::integer, .number = zero_of(kOutNumbers, c_.out)});
    return all;
  }

  std::vector<Output> outputs() const override { return {{out_dtype(), {c_.m, c_.n}}}; }

  std::vector<Expected> expect(size_t, std::span<const uint64_t> indices) const override {
    std::vector<uint32_t> order(indices.size());  // sorted by column of the output: each weight row is unpacked once
    std::iota(order.begin(), order.end(), 0);
    const auto n = static_cast<uint64_t>(c_.n);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(indices[a] % n, indices[a]) < std::pair(indices[b] % n, indices[b]);
    });
    std::vector<size_t> firsts;  // where a column begins in `order`
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || indices[order[i]] % n != indices[order[i - 1]] % n) firsts.push_back(i);
    }
    firsts.push_back(order.size());
    std::vector<Expected> result(indices.size());
    ThreadPool pool(16);
    pool.run(firsts.size() - 1, 8, [&](size_t first, size_t count) {
      std::vector<double> weights(static_cast<size_t>(c_.k));
      for (size_t column = first; column < first + count; ++column) {
        row(static_cast<int64_t>(indices[order[firsts[column]]] % n), weights.data());
        for (size_t i = firsts[column]; i < firsts[column + 1]; ++i)
          result[order[i]] = answer(indices[order[i]], weights.data());
      }
    });
    return result;
  }

  double bytes(int64_t m) const override {
    const double outputs = static_cast<double>(m) * static_cast<double>(c_.n);
    const double inputs = static_cast<double>(m) * static_cast<double>(c_.k);
    const size_t constants = weight_.bytes.size() + scale_data_.bytes.size() + bias_data_.bytes.size() +
                             (c_.zeros == Zeros::random ? zero_data_.bytes.size() : 0);
    return (outputs + inputs) * device_bytes(out_dtype()) + static_cast<double>(constants);
  }
  double flops(int64_t m) const override {
    return 2.0 * static_cast<double>(m) * static_cast<double>(c_.n) * static_cast<double>(c_.k);
  }

 private:
  DType out_dtype() const { return are_bytes(scheme_) ? c_.out : c_.dtype; }
  int lowest() const { return q4_ ? -8 : -128; }
  int highest() const { return q4_ ? 7 : 127; }

  void make_zeros(uint64_t seed) {
    if (!quantized_) return;
    const auto count = static_cast<size_t>(c_.n * groups_);
    Random random(seed, "scale");
    const float unit = 1.0f / ((q4_ ? 4.6f : 74.0f) * std::sqrt(static_cast<float>(c_.k)));
    scale_.resize(count);
    for (float& each : scale_) each = unit * random.uniform(0.5f, 1.5f);
    scale_data_ = floats(c_.scale, {c_.n, groups_}, scale_);
    zero_.assign(count, 0);
    Random zeros(seed, "zero");
    const auto range = static_cast<uint64_t>(highest() - lowest() + 1);
    if (c_.zeros == Zeros::random)
      for (int8_t& each : zero_) each = static_cast<int8_t>(lowest() + static_cast<int>(zeros.below(range)));
    const auto* bytes = reinterpret_cast<const std::byte*>(zero_.data());
    zero_data_ = {DType::i8, {c_.n, groups_}, Bytes(bytes, bytes + count)};
  }

  // Whether weights are random.
  bool is_plain() const {
    return c_.values == Values::random || c_.values == Values::special || c_.values == Values::one ||
           c_.values == Values::group;
  }
  // Whether one column of x is far larger than the others, and its weights 0.
  bool is_beside_huge() const { return c_.values == Values::huge || c_.values == Values::wide; }

  // Whether an element of x is 0 whatever is drawn for it.
  bool is_nothing(size_t at) const {
    const auto row = static_cast<int64_t>(at) / c_.k, column = static_cast<int64_t>(at) % c_.k;
    const int64_t width = c_.values == Values::one ? 1 : c_.group == c_.k ? 32 : c_.group;
    const int64_t groups = c_.k / width;  // row 0: the last of these
    return (c_.values == Values::one || c_.values == Values::group) &&
           column / width != (row * 37 + groups - 1) % groups;
  }

  int pattern(int64_t n, int64_t k, int random) const {
    switch (c_.values) {
      case Values::low:
        return lowest();
      case Values::high:
        return highest();
      case Values::alternate:
        return k % 2 == 0 ? highest() : lowest();
      case Values::equal:
        return k == (n * 7) % c_.k ? random : zero(n, k);
      default:
        return k == huge_ ? zero(n, k) : random;
    }
  }

  void make_weight(uint64_t seed) {
    Random random(seed, "weight");
    if (!quantized_) {
      std::vector<float> values(static_cast<size_t>(c_.n * c_.k));
      const float unit = 1.7f / std::sqrt(static_cast<float>(c_.k));
      size_t at = 0;
      for (int64_t n = 0; n < c_.n; ++n) {
        for (int64_t k = 0; k < c_.k; ++k, ++at) {
          const float any = random.uniform(-unit, unit);
          const bool is_random =
              is_plain() || (is_beside_huge() && k != huge_) || (c_.values == Values::equal && k == (n * 7) % c_.k);
          const bool is_zero = c_.values == Values::equal || is_beside_huge();
          const bool is_low = c_.values == Values::low || (c_.values == Values::alternate && k % 2 == 1);
          values[at] = is_random ? any : is_zero ? 0 : is_low ? -unit : unit;
        }
      }
      weight_ = floats(c_.dtype, {c_.n, c_.k}, values);
      return;
    }
    const int64_t row_bytes = q4_ ? (c_.k + 1) / 2 : c_.k;
    weight_ = {q4_ ? DType::i4 : DType::i8, {c_.n, c_.k}, Bytes(static_cast<size_t>(c_.n * row_bytes))};
    if (is_plain() && (!q4_ || c_.k % 2 == 0)) {  // every byte is a valid pair of nibbles, so eight are made at once
      for (size_t at = 0; at < weight_.bytes.size(); at += 8) {
        const uint64_t word = random.next();
        std::memcpy(&weight_.bytes[at], &word, std::min<size_t>(8, weight_.bytes.size() - at));
      }
      return;
    }
    const auto range = static_cast<uint64_t>(highest() - lowest() + 1);
    for (int64_t n = 0; n < c_.n; ++n) {
      for (int64_t k = 0; k < c_.k; ++k) {
        const int q = pattern(n, k, lowest() + static_cast<int>(random.below(range)));
        std::byte& place = weight_.bytes[static_cast<size_t>(n * row_bytes + (q4_ ? k / 2 : k))];
        place = q4_ ? place | static_cast<std::byte>((q + 8) << (k % 2 * 4)) : static_cast<std::byte>(q);
      }
    }
  }

  void make_bytes(uint64_t seed) {
    x_data_ = {DType::i8, {c_.m, c_.k}, Bytes(static_cast<size_t>(c_.m * c_.k))};
    const bool given = scheme_.rows == Rows::given;
    if (given)
      x_qparams_ = random_qparams(c_.m, seed, "x parameters"), out_qparams_ = random_qparams(c_.m, seed, "out");
    Random random(seed, "x");
    for (size_t at = 0; at < x_data_.bytes.size(); ++at) {
      const int any = static_cast<int>(random.below(256)) - 128;
      const RowParams p = given ? x_qparams_.rows[at / static_cast<size_t>(c_.k)] : kRowNumbers;
      const int q = is_nothing(at)                   ? static_cast<int>(p.zero)
                    : c_.values == Values::high      ? 127
                    : c_.values == Values::alternate ? std::abs(any) % 128
                                                     : any;
      x_data_.bytes[at] = static_cast<std::byte>(q);
      x_.push_back((q - static_cast<double>(p.zero)) * static_cast<double>(p.scale));
    }
    shift(x_data_, c_.in);
  }

  void make_x(uint64_t seed) {
    if (are_bytes(scheme_)) return make_bytes(seed);
    std::vector<float> values(static_cast<size_t>(c_.m * c_.k));
    Random random(seed, "x");
    for (float& each : values) each = random.uniform(-2, 2);
    const auto k = static_cast<size_t>(c_.k);
    if (c_.values == Values::high) std::fill(values.begin(), values.end(), 127.0f);
    if (c_.values == Values::alternate)
      for (float& each : values) each = std::fabs(each);
    for (size_t at = 0; at < values.size(); ++at)
      if (is_nothing(at)) values[at] = 0;
    if (huge_ >= 0)
      for (size_t at = static_cast<size_t>(huge_); at < values.size(); at += k)
        values[at] = c_.dtype == DType::f16 ? 3e4f : c_.values == Values::huge ? 1e30f : 0x1p31f;
    if (c_.values == Values::special) {
      const float special[] = {NAN, INFINITY, -INFINITY};
      for (size_t row = 0; row < 3 && row < static_cast<size_t>(c_.m); ++row)
        values[row * k + (row == 0 ? k - 1 : row * k / 3)] = special[row];
    }
    x_data_ = floats(c_.dtype, {c_.m, c_.k}, values);
    if (scheme_.rows == Rows::floats) return x_.assign(values.begin(), values.end());
    for (size_t row = 0; row < static_cast<size_t>(c_.m); ++row)
      quantize(std::span(values).subspan(row * k, k), c_.dtype, scheme_.rows == Rows::chosen, x_);
  }

  int zero(int64_t n, int64_t k) const { return zero_[static_cast<size_t>(n * groups_ + k / c_.group)]; }

  // Row n of the weight, as real numbers.
  void row(int64_t n, double* out) const {
    const std::byte* bytes = weight_.bytes.data();
    for (int64_t k = 0; k < c_.k; ++k) {
      const auto at = static_cast<size_t>(n * c_.k + k);
      if (!quantized_) {
        float f;
        uint16_t half;
        if (c_.dtype == DType::f32)
          std::memcpy(&f, bytes + at * 4, 4);
        else
          std::memcpy(&half, bytes + at * 2, 2), f = half_value(half);
        out[k] = f;
        continue;
      }
      const int packed = std::to_integer<int>(bytes[q4_ ? n * ((c_.k + 1) / 2) + k / 2 : static_cast<int64_t>(at)]);
      const int q = q4_ ? (packed >> (k % 2 * 4) & 15) - 8 : static_cast<int8_t>(packed);
      out[k] = (q - zero(n, k)) * static_cast<double>(scale_[static_cast<size_t>(n * groups_ + k / c_.group)]);
    }
  }

  Expected answer(uint64_t index, const double* weights) const {
    const auto n = static_cast<uint64_t>(c_.n);
    const double* row = &x_[index / n * static_cast<uint64_t>(c_.k)];
    const TermSums sums = dot(row, weights, static_cast<size_t>(c_.k));
    double most = 0, all = 0, most_weight = 0, all_x = 0;
    for (int64_t k = 0; k < c_.k; ++k) {
      if (std::isfinite(row[k])) most = std::max(most, std::fabs(row[k])), all_x += std::fabs(row[k]);
      most_weight = std::max(most_weight, std::fabs(weights[k]));
      all += std::fabs(weights[k]);
    }
    const bool one_sign = c_.values == Values::high || c_.values == Values::alternate;
    Expected e = finished(sums, c_.bias ? static_cast<double>(bias_[index % n]) : 0, c_.act, !one_sign);
    e.reach = (most * all + (quantized_ ? 0 : most_weight * all_x)) * reference::slope(c_.act);
    if (!are_bytes(scheme_)) return e;
    // Those of ops/linear/error_bound.cpp for the kernel that has most.
    return requantized(e, scheme_.rows == Rows::given ? out_qparams_.rows[index / n] : kOutNumbers, {.fixed = 28},
                       c_.out);
  }

  const LinearScheme& scheme_;
  const bool q4_, quantized_;
  int64_t groups_ = 1, huge_ = -1;
  std::vector<double> x_;
  std::vector<float> scale_, bias_;
  std::vector<int8_t> zero_;
  RowQparams x_qparams_, out_qparams_;
  Data x_data_, weight_, scale_data_, zero_data_, bias_data_;
};

}  // namespace

std::unique_ptr<CaseData> make_linear(const LinearScheme& scheme, const Case& c, uint64_t seed) {
  return std::make_unique<Linear>(scheme, c, seed);
}

LinearShape linear_shape(const LinearScheme& scheme, const Case& c) {
  const int64_t group = columns(scheme, c);
  const bool quantized = scheme.scales != ScalePer::none;
  const WeightType weight = quantized ? scheme.weight : c.dtype == DType::f16 ? WeightType::f16 : WeightType::f32;
  return {.m = c.m,
          .n = c.n,
          .k = c.k,
          .group = group == c.k ? 0 : static_cast<uint32_t>(group),
          .weight = weight,
          .dtype = c.dtype,
          .scale_f16 = c.scale == DType::f16,
          .integers = scheme.rows != Rows::floats,
          .may_split = scheme.rows == Rows::floats,
          .split_weight = scheme.rows == Rows::floats,
          .textures = c.in_textures(),
          .weight_texture = c.weight_in_texture()};
}

std::string refuse_linear(const LinearScheme& scheme, const Case& c) {
  if (scheme.scales == ScalePer::group && c.group != 0 && c.group != c.k && (c.k % c.group != 0 || c.group % 4 != 0))
    return "g must divide k and be a multiple of 4, or be 0 for whole rows";
  const bool in = scheme.rows != Rows::bytes && c.in != DType::i8,
             out = scheme.rows != Rows::bytes && c.out != DType::i8;
  if (in || out) return format("its %s is not u8", in ? "x" : "result");
  if (are_bytes(scheme)) {
    if (c.dtype != DType::f32) return "x and the result are integers, the bias is f32: dtype=f32";
    if (c.values == Values::huge || c.values == Values::wide || c.values == Values::special)
      return "no integer is huge, infinite or NaN";
    if (c.act > (scheme.rows == Rows::bytes ? ACT_RELU : ACT_NONE)) return "it has no such activation";
  }
  if (scheme.scales == ScalePer::none && c.zeros != Zeros::none) return "float weights have no zero points";
  return "";
}

}  // namespace pumice::engine::kernel_bench
