// SPDX-License-Identifier: Apache-2.0
// Products that norm their rows themselves.
#include <gtest/gtest.h>

#include "ops/linear/kernels.h"
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

TEST(FusedNorm, LayerNormsOfFewRowsAreMadeByTheirReaders) {
  const Features features = matrices();
  const LinearKernel &passes = linear_kernel("gemvf16x2"), &split = linear_kernel("split_gemvf16x2"),
                     &tile = linear_kernel("matrix64x64");
  const auto shape = [](int64_t m, int64_t n, int64_t k, DType dtype = DType::f16) {
    return LinearShape{.m = m, .n = n, .k = k, .weight = WeightType::f16, .dtype = dtype};
  };
  EXPECT_TRUE(fuses_layer_norm(passes, shape(197, 1536, 384), 1, features));
  EXPECT_TRUE(fuses_layer_norm(passes, shape(197, 384, 384), 3, features));
  EXPECT_FALSE(fuses_layer_norm(passes, shape(197, 1536, 384), 2, features)) << "7 M elements";
  EXPECT_FALSE(fuses_layer_norm(passes, shape(197, 384, 392), 1, features)) << "no whole tiles";
  EXPECT_FALSE(fuses_layer_norm(passes, shape(1, 384, 384), 1, features)) << "no measured gain";
  EXPECT_FALSE(fuses_layer_norm(split, shape(197, 384, 384, DType::f32), 1, features));
  EXPECT_FALSE(fuses_layer_norm(tile, shape(197, 384, 384), 1, features));
}

}  // namespace
}  // namespace pumice::engine
