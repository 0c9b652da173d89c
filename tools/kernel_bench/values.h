// SPDX-License-Identifier: Apache-2.0
// Numbers for tensors, the same on every machine for a seed.
#pragma once

#include <cstring>
#include <vector>

#include "ops/shared/shape.h"
#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

// splitmix64: good enough for tests, and any word can be made without those before it.
class Random {
 public:
  // `what`: the name of a tensor; each gets other numbers.
  Random(uint64_t seed, std::string_view what) : state_(seed) {
    for (const char letter : what) state_ = (state_ ^ static_cast<uint8_t>(letter)) * 0x100000001b3ull;
  }
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t count) { return next() % count; }
  // In [low, high), with 24 random bits.
  float uniform(float low, float high) { return low + (high - low) * (static_cast<float>(next() >> 40) * 0x1p-24f); }

 private:
  uint64_t state_;
};

// `values` as a tensor of f32 or f16. `values` are rounded to that dtype in place, so that they equal those in the
// file.
inline Data floats(DType dtype, Shape shape, std::vector<float>& values) {
  Data data{dtype, std::move(shape), Bytes(values.size() * device_bytes(dtype))};
  if (dtype == DType::f32) {
    if (!values.empty()) std::memcpy(data.bytes.data(), values.data(), data.bytes.size());
    return data;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = half_bits(values[i]);
    std::memcpy(&data.bytes[2 * i], &half, 2);
    values[i] = half_value(half);
  }
  return data;
}

}  // namespace pumice::engine::kernel_bench
