// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/quantize.h"

#include <algorithm>
#include <cmath>

#include "glsl/include/core/modes.glslh"
#include "tools/kernel_bench/integers.h"
#include "tools/kernel_bench/values.h"

namespace pumice::engine::kernel_bench {
namespace {

class Quantize : public Problem {
 public:
  Quantize(const Case& c, uint64_t seed) : Problem(c), x_(static_cast<size_t>(c.m * c.k)) {
    Random random(seed, "x");
    for (float& each : x_) each = random.uniform(-3, 3);
    if (c.values == Values::special) {
      const float special[] = {NAN, INFINITY, -INFINITY};
      for (size_t at = 0; at < x_.size(); at += 7) x_[at] = special[at % 3];
    }
    x_data_ = floats(c.dtype, {c.m, c.k}, x_);
    params_ = random_params(c.m, seed, "parameters");
    for (const RowParams& each : params_.rows) scales_.push_back(each.scale);
    scale_data_ = floats(c.dtype, {c.m}, scales_);
  }

  std::vector<Given> given() const override {
    using Role = Given::Role;
    const uint32_t steps = half() ? STEPS_F16 : STEPS_F32;
    return {{"x", Role::input, x_data_},
            {"scale", Role::input, scale_data_},
            {"zero", Role::input, params_.zeros},
            {.name = "block", .role = Role::integers, .numbers = {1, -1}},
            {.name = "qmin", .role = Role::integer, .number = -128},
            {.name = "qmax", .role = Role::integer, .number = 127},
            {.name = "steps", .role = Role::integer, .number = steps},
            {.name = "round_last", .role = Role::boolean, .number = 0}};
  }

  DType out_dtype() const override { return DType::i8; }
  Shape out_shape() const override { return {c_.m, c_.k}; }

  std::vector<Expected> expect(std::span<const uint64_t> indices) const override {
    std::vector<Expected> result;
    const auto step = [&](float x) { return half() ? half_value(half_bits(x)) : x; };
    for (const uint64_t index : indices) {
      const auto row = static_cast<size_t>(index / static_cast<uint64_t>(c_.k));
      const float q = std::nearbyint(step(x_[index] * step(1 / scales_[row]))) + params_.rows[row].zero;
      result.push_back({.want = std::isnan(q) ? 0.0 : std::clamp(static_cast<double>(q), -128.0, 127.0)});
    }
    return result;
  }

  double bytes(int64_t m) const override {
    const auto rows = static_cast<double>(m);
    return rows * static_cast<double>(c_.k) * (device_bytes(c_.dtype) + 1) + rows * (device_bytes(c_.dtype) + 1);
  }
  double flops(int64_t m) const override { return 2.0 * static_cast<double>(m) * static_cast<double>(c_.k); }
  Arithmetic arithmetic() const override { return Arithmetic::f32; }

 private:
  bool half() const { return c_.dtype == DType::f16; }

  std::vector<float> x_, scales_;
  GivenParams params_;
  Data x_data_, scale_data_;
};

}  // namespace

std::unique_ptr<Problem> make_quantize(const Case& c, uint64_t seed) {
  return std::make_unique<Quantize>(c, seed);
}

std::string refuse_quantize(const Case& c) {
  if (c.bias || c.act != 0 || c.zeros != Zeros::none) return "it has m, k, dtype and values";
  if (c.weight_in_texture()) return "it has no weight: storage is buffer or texture3d";
  if (c.values != Values::random && c.values != Values::special) return "its values are random or special";
  return "";
}

}  // namespace pumice::engine::kernel_bench
