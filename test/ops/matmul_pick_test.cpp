// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/shared/matmul_matrices.h"

namespace pumice::engine {
namespace {

Features gpu() {
  Features features = baseline_features();
  features.max_invocations = 1024;
  features.max_shared_bytes = 49152;
  features.compute_units = 132;
  features.subgroup_size = 32;
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16, Feature::split})
    features.bits |= bit(feature);
  features.matrix_f16[0] = {16, 16, 16};
  return features;
}

MatrixProduct product(int64_t m, int64_t n, int64_t k, DType dtype, int64_t batches = 1) {
  return {.a = {m, k, 1}, .b = {n, 1, n}, .k = k, .size = {1, 1, 1, batches}, .dtype = dtype};
}

std::string_view picked(const MatrixProduct& p, const Features& features) {
  const LinearKernel* kernel = pick_matmul_matrices(p, features);
  return kernel == nullptr ? "" : kernel->name;
}

TEST(PickMatmul, LargeProductsTakeMatrices) {
  EXPECT_EQ(picked(product(4096, 4096, 512, DType::f16), gpu()), "matrix128x128");
  EXPECT_EQ(picked(product(512, 512, 512, DType::f16), gpu()), "matrix64x64");  // too few workgroups of larger tiles
  EXPECT_EQ(picked(product(15, 4096, 4096, DType::f16), gpu()), "");
  EXPECT_EQ(picked(product(64, 64, 64, DType::f16, 512), gpu()), "matrix64x64");  // half of 128 x 128 would be empty
  // Half empty: what 32 x 32 loads does not divide among subgroups of 32.
  EXPECT_EQ(picked(product(32, 1024, 1024, DType::f16), gpu()), "matrix64x64");
}

TEST(PickMatmul, SmallProductsTakeWhatWasFaster) {
  Features features = gpu();
  features.bits |= bit(Feature::fragments);
  const auto by_matrices = [&](MatrixProduct p) { return !picked(p, features).empty(); };
  for (const DType dtype : {DType::f16, DType::f32}) {
    EXPECT_FALSE(by_matrices(product(64, 64, 64, dtype)));
    EXPECT_EQ(by_matrices(product(128, 128, 128, dtype)), dtype == DType::f16);
    EXPECT_TRUE(by_matrices(product(192, 192, 192, dtype)));
    EXPECT_TRUE(by_matrices(product(512, 512, 512, dtype)));
    EXPECT_TRUE(by_matrices(product(197, 197, 64, dtype, 24)));
    EXPECT_FALSE(by_matrices(product(197, 197, 64, dtype, 6)));
    EXPECT_FALSE(by_matrices(product(128, 128, 32, dtype, 12)));
    EXPECT_FALSE(by_matrices(product(64, 64, 64, dtype, 64)));
  }
  // With fewer compute units work takes longer than waits.
  EXPECT_FALSE(by_matrices(product(64, 64, 64, DType::f16, 48)));
  features.compute_units = 20;
  EXPECT_TRUE(by_matrices(product(64, 64, 64, DType::f16, 48)));
}

TEST(PickMatmul, Fp32IsSplitWhereConversionsAreKnownToBeExact) {
  Features features = gpu();
  EXPECT_EQ(picked(product(4096, 4096, 512, DType::f32), features), "");
  features.bits |= bit(Feature::fragments);
  EXPECT_EQ(picked(product(4096, 4096, 512, DType::f32), features), "split_matrix128x128");
  features.bits &= ~bit(Feature::split);
  EXPECT_EQ(picked(product(4096, 4096, 512, DType::f32), features), "");
}

TEST(PickMatmul, CpuDriversTakeMatricesOnlyWhereForced) {
  Features features = gpu();
  features.cpu = true;
  EXPECT_EQ(picked(product(4096, 4096, 512, DType::f16), features), "");
  features.kernel = "matrix64x64";
  EXPECT_EQ(picked(product(5, 7, 9, DType::f16), features), "matrix64x64");
  EXPECT_EQ(picked(product(5, 7, 9, DType::f32), features), "");
}

}  // namespace
}  // namespace pumice::engine
