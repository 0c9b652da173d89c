// SPDX-License-Identifier: Apache-2.0
// Devices and shapes for the tests of the choice of a kernel.
#pragma once

#include <initializer_list>

#include "ops/linear/kernels.h"

namespace pumice::engine {

inline Features gpu() {
  Features features = baseline_features();
  features.max_invocations = 1024;
  features.max_shared_bytes = 49152;
  features.compute_units = 132;
  return features;
}

// Whose subgroups are of 32, with those features, too.
inline Features gpu_with(std::initializer_list<Feature> has) {
  Features features = gpu();
  features.max_storage_buffers = 1 << 20;
  features.subgroup_size = 32;
  for (const Feature feature : has) features.bits |= bit(feature);
  return features;
}

inline Features cpu() {
  Features features = gpu();
  features.max_shared_bytes = 32768;
  features.cpu = true;
  features.compute_units = 2;
  return features;
}

// A GPU with cooperative matrices whose elements are in the expected registers.
inline Features matrices() {
  Features features = gpu();
  features.bits = bit(Feature::float16) | bit(Feature::coopmat) | bit(Feature::memory_model) | bit(Feature::fragments) |
                  bit(Feature::subgroup_arithmetic) | bit(Feature::subgroup_shuffle);
  features.max_storage_buffers = 64;
  features.subgroup_size = 32;
  features.matrix_f16 = {MatrixShape{16, 16, 16}, MatrixShape{16, 8, 16}};
  return features;
}

// The same, with kernels that make two fp16 of each fp32, also those that do so themselves.
inline Features splitting() {
  Features features = matrices();
  for (const Feature feature : {Feature::split, Feature::subgroup_shuffle}) features.bits |= bit(feature);
  return features;
}

// Weights that are kept as two fp16, too.
inline LinearShape split_fp32(int64_t m, int64_t n, int64_t k) {
  return {.m = m, .n = n, .k = k, .may_split = true, .split_weight = true};
}

inline LinearShape int4(int64_t m, int64_t n, int64_t k) {
  return {m, n, k, 32, WeightType::q4, DType::f16, true};
}

inline LinearShape integers(int64_t m, uint32_t group, WeightType weight = WeightType::q4, int64_t k = 4096,
                            int64_t n = 14336) {
  return {.m = m,
          .n = n,
          .k = k,
          .group = group,
          .weight = weight,
          .dtype = DType::f16,
          .scale_f16 = true,
          .integers = true};
}

inline Features dots(Features features) {
  features.bits |= bit(Feature::int_dot) | bit(Feature::subgroup_arithmetic);
  return features;
}

}  // namespace pumice::engine
