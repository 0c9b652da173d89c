// SPDX-License-Identifier: Apache-2.0
// Products that norm their rows themselves.
#include <gtest/gtest.h>

#include "ops/linear/kernels.h"
#include "ops/linear/packed_weight.h"
#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

TEST(FusedNorm, ARowIsNormedWhereItFits) {
  const LinearKernel &gemv = linear_kernel("gemv1"), &rows = linear_kernel("gemvr1"),
                     &tile = linear_kernel("tile64x64");
  EXPECT_TRUE(fuses_norm(gemv, {1, 4096, 4096}, gpu()));
  EXPECT_FALSE(fuses_norm(gemv, {2, 4096, 4096}, gpu()));
  EXPECT_FALSE(fuses_norm(gemv, {1, 4096, 16384}, gpu())) << "64 KiB of shared memory";
  EXPECT_FALSE(fuses_norm(rows, {1, 4096, 4096}, gpu()));
  EXPECT_TRUE(fuses_norm(rows, {1, 512, 256}, cpu()));
  EXPECT_FALSE(fuses_norm(rows, {1, 1536, 512}, cpu())) << "96 workgroups";
  EXPECT_FALSE(fuses_norm(linear_kernel("gemvr2"), {2, 64, 64}, cpu()));
  EXPECT_FALSE(fuses_norm(tile, {1, 4096, 4096}, gpu()));
}

LinearShape layer(int64_t m, int64_t n, int64_t k, WeightType weight = WeightType::f16, DType dtype = DType::f16) {
  return {.m = m, .n = n, .k = k, .group = quantized(weight) ? 32u : 0, .weight = weight, .dtype = dtype};
}

TEST(FusedNorm, LayerNormsOfFewRowsAreMadeByTheirReaders) {
  const Features features = matrices();
  const LinearKernel &passes = linear_kernel("gemvf16x2"), &split = linear_kernel("split_gemvf16x2"),
                     &tile = linear_kernel("matrix64x64");
  const auto fuses = [&](const LinearKernel& kernel, const LinearShape& shape, MomentsOf from, uint32_t readers) {
    return fuses_layer_norm(kernel, shape, from, readers, features);
  };
  constexpr MomentsOf kFound = MomentsOf::found, kLeft = MomentsOf::left;
  EXPECT_TRUE(fuses(passes, layer(197, 1536, 384), kFound, 1));
  EXPECT_TRUE(fuses(passes, layer(197, 384, 384), kFound, 3));
  EXPECT_FALSE(fuses(passes, layer(197, 1536, 384), kFound, 2)) << "7 M elements";
  EXPECT_TRUE(fuses(passes, layer(197, 1536, 384), kLeft, 2));
  EXPECT_FALSE(fuses(passes, layer(197, 1536, 384), kLeft, 9));
  EXPECT_FALSE(fuses(passes, layer(197, 384, 392), kLeft, 1)) << "no whole tiles";
  EXPECT_FALSE(fuses(passes, layer(197, 384, 1088), kLeft, 1)) << "more than lanes load at once";
  EXPECT_TRUE(fuses(passes, layer(1, 384, 384), kLeft, 1));
  EXPECT_FALSE(fuses(split, layer(1, 384, 384, WeightType::q4, DType::f32), kLeft, 1)) << "not proved";
  EXPECT_TRUE(fuses(split, layer(197, 384, 384, WeightType::q4, DType::f32), kLeft, 1));
  EXPECT_FALSE(fuses(split, layer(197, 384, 384, WeightType::q4, DType::f32), kFound, 1));
  LinearShape floats = layer(197, 384, 384, WeightType::f32, DType::f32);
  EXPECT_FALSE(fuses(split, floats, kLeft, 1)) << "no copy of the weight in two parts";
  floats.split_weight = true;
  EXPECT_TRUE(fuses(split, floats, kLeft, 1));
  EXPECT_FALSE(fuses(tile, layer(197, 384, 384), kLeft, 1));
}

TEST(FusedNorm, ALayerNormOfOneRowIsMadeByItsReadersWithoutMatrices) {
  const LinearKernel& gemv = linear_kernel("gemv1");
  EXPECT_TRUE(centers_row(gemv, layer(1, 1536, 384, WeightType::f32, DType::f32), gpu()));
  EXPECT_FALSE(centers_row(gemv, layer(2, 1536, 384, WeightType::f32, DType::f32), gpu()));
  EXPECT_FALSE(centers_row(gemv, layer(1, 1536, 1032, WeightType::f32, DType::f32), gpu()));
  EXPECT_FALSE(centers_row(gemv, layer(1, 1536, 385, WeightType::f32, DType::f32), gpu())) << "x is padded";
  EXPECT_FALSE(centers_row(linear_kernel("gemvr1"), layer(1, 64, 64), cpu()));
}

TEST(FusedNorm, ResidualsAreNormedWhereTheirMomentsWereLeft) {
  const Features features = matrices();
  const LinearKernel& passes = linear_kernel("gemvf16x2");
  EXPECT_TRUE(fuses_residual_norm(passes, layer(128, 384, 1536), MomentsOf::left, 2, features));
  EXPECT_FALSE(fuses_residual_norm(passes, layer(128, 384, 1536), MomentsOf::found, 2, features));
  EXPECT_FALSE(fuses_residual_norm(passes, layer(128, 392, 1536), MomentsOf::left, 2, features));
  EXPECT_FALSE(fuses_residual_norm(passes, layer(128, 1088, 1536), MomentsOf::left, 2, features));
}

TEST(FusedNorm, MomentsAreLeftOfWholeGroupsOfColumns) {
  Features features = matrices();
  const LinearKernel& passes = linear_kernel("gemvf16x2");
  EXPECT_TRUE(leaves_moments(passes, layer(128, 384, 1536), features));
  EXPECT_FALSE(leaves_moments(passes, layer(128, 392, 1536), features));
  EXPECT_TRUE(leaves_moments(passes, layer(1, 384, 1536), features));
  EXPECT_FALSE(leaves_moments(linear_kernel("gemv8"), layer(8, 384, 1536), features));
  features.max_storage_buffers = 12;
  EXPECT_FALSE(leaves_moments(passes, layer(128, 384, 1536), features)) << "the shader binds 13";
}

}  // namespace
}  // namespace pumice::engine
