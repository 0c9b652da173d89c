// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/conv.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "glsl/include/math/activation.glslh"
#include "ops/quant/requantize.h"
#include "tools/kernel_bench/exact.h"
#include "tools/kernel_bench/integers.h"
#include "tools/kernel_bench/values.h"

namespace pumice::engine::kernel_bench {
namespace {

class Conv : public CaseData {
 public:
  Conv(const ConvScheme& scheme, const Case& c, uint64_t seed) : CaseData(c), scheme_(scheme) {
    Random random(seed, "bias");
    bias_.resize(static_cast<size_t>(c.bias ? c.n : 0));
    for (float& each : bias_) each = random.uniform(-1, 1);
    bias_data_ = floats(DType::f32, {c.n}, bias_);
    make_weight(seed);
    make_x(seed);
  }

  std::vector<Argument> arguments() const override {
    using Role = Argument::Role;
    std::vector<Argument> all = {{"x", Role::input, x_data_}, {"weight", Role::constant, weight_}};
    if (scheme_.quantized) all.push_back({"scale", Role::constant, scale_data_});
    if (c_.zeros != Zeros::none) all.push_back({"zero", Role::constant, zero_data_});
    if (c_.bias) all.push_back({"bias", Role::constant, bias_data_});
    const auto square = [&](const char* name, int64_t size, size_t count) {
      all.push_back({.name = name, .role = Role::integers, .numbers = std::vector<int64_t>(count, size)});
    };
    square("kernel", c_.k, 2);
    square("stride", c_.stride, 2);
    square("pads", c_.pad, 4);
    square("dilation", c_.dilation, 2);
    const auto integer = [&](const char* name, int64_t number) {
      all.push_back({.name = name, .role = Role::integer, .number = number});
    };
    integer("groups", c_.group);
    integer("act", c_.act);
    all.push_back({.name = "transposed", .role = Role::boolean, .number = 0});
    all.push_back({.name = "x_scale", .role = Role::real, .real = kRowNumbers.scale});
    integer("x_zero", zero_of(kRowNumbers, c_.in));
    all.push_back({.name = "out_scale", .role = Role::real, .real = kOutNumbers.scale});
    integer("out_zero", zero_of(kOutNumbers, c_.out));
    integer("qmin", shift_of(c_.out) - 128);
    integer("qmax", shift_of(c_.out) + 127);
    return all;
  }

  std::vector<Output> outputs() const override {
    return {{out_dtype(), {c_.m, c_.n, c_.out_size(c_.h), c_.out_size(c_.w)}}};
  }

  std::vector<Expected> expect(size_t, std::span<const uint64_t> indices) const override {
    std::vector<Expected> result(indices.size());
    ThreadPool pool(16);
    pool.run(indices.size(), 256, [&](size_t first, size_t count) {
      std::vector<double> patch(static_cast<size_t>(c_.terms()));
      for (size_t i = first; i < first + count; ++i) result[i] = answer(static_cast<int64_t>(indices[i]), patch);
    });
    return result;
  }

  double bytes(int64_t m) const override {
    const double x = static_cast<double>(m * c_.c * c_.h) * static_cast<double>(c_.w) * device_bytes(x_data_.dtype);
    const double out = static_cast<double>(m * c_.n) * static_cast<double>(c_.out_size(c_.h) * c_.out_size(c_.w)) *
                       device_bytes(out_dtype());
    return x + out +
           static_cast<double>(weight_.bytes.size() + scale_data_.bytes.size() + bias_data_.bytes.size() +
                               (c_.zeros == Zeros::random ? zero_data_.bytes.size() : 0));
  }
  double flops(int64_t m) const override {
    return 2.0 * static_cast<double>(c_.macs()) / static_cast<double>(c_.m) * static_cast<double>(m);
  }

 private:
  DType out_dtype() const { return scheme_.out_bytes ? c_.out : c_.dtype; }
  void make_weight(uint64_t seed) {
    const auto terms = static_cast<size_t>(c_.terms()), channels = static_cast<size_t>(c_.n);
    Random random(seed, "weight"), scales(seed, "scale"), zeros(seed, "zero");
    const float unit = 1 / std::sqrt(static_cast<float>(terms));
    const bool low = c_.values == Values::low, high = c_.values == Values::high;
    std::vector<float> values(channels * terms);
    if (!scheme_.quantized) {
      for (float& each : values) each = low ? -unit : high ? unit : 1.7f * unit * random.uniform(-1, 1);
      weight_ = floats(c_.dtype, {c_.n, c_.terms()}, values);
      w_.assign(values.begin(), values.end());
      return;
    }
    weight_ = {DType::i8, {c_.n, c_.terms()}, Bytes(values.size())};
    zero_data_ = {DType::i8, {c_.n, 1}, Bytes(channels)};
    std::vector<float> scale(channels);
    for (size_t n = 0; n < channels; ++n) {
      scale[n] = unit / 74 * scales.uniform(0.5f, 1.5f);
      const int zero = c_.zeros == Zeros::random ? static_cast<int>(zeros.below(256)) - 128 : 0;
      zero_data_.bytes[n] = static_cast<std::byte>(zero);
      for (size_t k = 0; k < terms; ++k) {
        const int any = static_cast<int>(random.below(256)) - 128, q = low ? -128 : high ? 127 : any;
        weight_.bytes[n * terms + k] = static_cast<std::byte>(q);
        w_.push_back((q - zero) * static_cast<double>(scale[n]));
      }
    }
    scale_data_ = floats(DType::f32, {c_.n, 1}, scale);
  }

  void make_x(uint64_t seed) {
    const Shape shape = {c_.m, c_.c, c_.h, c_.w};
    x_.resize(static_cast<size_t>(c_.m * c_.c * c_.h * c_.w));
    Random random(seed, "x");
    if (!scheme_.x_bytes) {
      for (float& each : x_) each = random.uniform(-2, 2);
      if (c_.values == Values::special) {
        const float special[] = {NAN, INFINITY, -INFINITY};
        for (size_t at = 0; at < x_.size(); at += 101) x_[at] = special[at % 3];
      }
      x_data_ = floats(c_.dtype, shape, x_);
      return;
    }
    x_data_ = {DType::i8, shape, Bytes(x_.size())};
    for (size_t at = 0; at < x_.size(); ++at) {
      const int any = static_cast<int>(random.below(256)) - 128, q = c_.values == Values::high ? 127 : any;
      x_data_.bytes[at] = static_cast<std::byte>(q);
      x_[at] = (static_cast<float>(q) - kRowNumbers.zero) * kRowNumbers.scale;
    }
    shift(x_data_, c_.in);
  }

  Expected answer(int64_t index, std::vector<double>& patch) const {
    const int64_t out_h = c_.out_size(c_.h), out_w = c_.out_size(c_.w), plane = out_h * out_w;
    const int64_t image = index / (plane * c_.n), channel = index / plane % c_.n, of_group = c_.c / c_.group;
    const int64_t y = index / out_w % out_h * c_.stride - c_.pad, x = index % out_w * c_.stride - c_.pad;
    const float* from = &x_[static_cast<size_t>((image * c_.c + channel / (c_.n / c_.group) * of_group) * c_.h * c_.w)];
    size_t at = 0;
    for (int64_t i = 0; i < of_group; ++i) {
      for (int64_t ky = y; ky < y + c_.k * c_.dilation; ky += c_.dilation) {
        for (int64_t kx = x; kx < x + c_.k * c_.dilation; kx += c_.dilation) {
          const bool inside = ky >= 0 && ky < c_.h && kx >= 0 && kx < c_.w;
          patch[at++] = inside ? static_cast<double>(from[(i * c_.h + ky) * c_.w + kx]) : 0;
        }
      }
    }
    const TermSums sums = dot(patch.data(), &w_[static_cast<size_t>(channel * c_.terms())], patch.size());
    const double bias = c_.bias ? static_cast<double>(bias_[static_cast<size_t>(channel)]) : 0;
    const Expected e = finished(sums, bias, c_.act, c_.values != Values::high);
    return scheme_.out_bytes ? requantized(e, kOutNumbers, {.per_term = 0, .fixed = 6}, c_.out) : e;
  }

  const ConvScheme& scheme_;
  std::vector<float> x_, bias_;  // real numbers
  std::vector<double> w_;
  Data x_data_, weight_, scale_data_, zero_data_, bias_data_;
};

}  // namespace

std::unique_ptr<CaseData> make_conv(const ConvScheme& scheme, const Case& c, uint64_t seed) {
  return std::make_unique<Conv>(scheme, c, seed);
}

ConvFacts conv_facts(const ConvScheme& scheme, const Case& c) {
  ConvFacts facts{.x = scheme.x_bytes ? c.in : c.dtype,
                  .out = scheme.out_bytes ? c.out : c.dtype,
                  .quantized = scheme.quantized,
                  .has_zero = c.zeros == Zeros::random,
                  .groups = c.group,
                  .channels = c.n,
                  .in_channels = c.c};
  facts.patches = {.kernel = {c.k, c.k},
                   .stride = {c.stride, c.stride},
                   .dilation = {c.dilation, c.dilation},
                   .pads = {c.pad, c.pad, c.pad, c.pad}};
  facts.textures = c.in_textures();
  facts.pixels = c.m * c.out_size(c.h) * c.out_size(c.w);
  facts.width = c.out_size(c.w);
  return facts;
}

std::string refuse_conv(const ConvScheme& scheme, const Case& c) {
  constexpr int64_t kMost = 1 << 15;
  if (std::max({c.k, c.stride, c.pad, c.dilation}) >= kMost) return "k, s, p and d are below 32768";
  if (c.c % c.group != 0 || c.n % c.group != 0) return "g must divide c and o";
  if (std::min(c.out_size(c.h), c.out_size(c.w)) < 1) return "the window is larger than the padded image";
  const auto count = [](std::initializer_list<int64_t> sizes) {
    double all = 1;
    for (const int64_t size : sizes) all *= static_cast<double>(size);
    return all;
  };
  if (std::max({count({c.m, c.c, c.h, c.w}), count({c.m, c.n, c.out_size(c.h), c.out_size(c.w)}),
                count({c.n, c.terms()})}) > 0x1p31)
    return "a tensor has more than 2^31 elements";
  if (c.scale != c.dtype) return "scales of its weight are f32: leave scale out";
  if (!scheme.quantized && c.zeros != Zeros::none) return "float weights have no zero points";
  const bool in = !scheme.x_bytes && c.in != DType::i8, out = !scheme.out_bytes && c.out != DType::i8;
  if (in || out) return format("its %s is not u8", in ? "x" : "result");
  if (c.weight_in_texture()) return "it keeps its weight in a buffer: storage is buffer or texture3d";
  if (c.values != Values::random && c.values != Values::low && c.values != Values::high && c.values != Values::special)
    return "its values are random, low, high or special";
  if (scheme.x_bytes && c.values == Values::special) return "no integer is infinite or NaN";
  if (scheme.out_bytes && c.dtype != DType::f32) return "x and the result are integers, the bias is f32: dtype=f32";
  const bool steep = c.act == ACT_GELU || c.act == ACT_GELU_TANH || c.act == ACT_SILU;
  if (scheme.out_bytes && steep) return "its activation is none, relu, relu6, hardswish or hardsigmoid";
  return "";
}

}  // namespace pumice::engine::kernel_bench
