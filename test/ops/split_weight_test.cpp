// SPDX-License-Identifier: Apache-2.0
// fp32 weights that are kept as two fp16 for each element: which kernels read them, and when they are picked.
#include <gtest/gtest.h>

#include "ops/linear/pick.h"
#include "ops/linear/split_x.h"
#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

// H200: the table in ops/linear/pick.cpp.
TEST(SplitWeight, ManyRows) {
  const auto pick = [](int64_t m, int64_t n, int64_t k) { return pick_linear(split_fp32(m, n, k), splitting()).name; };
  for (const int64_t m : {128, 256, 512, 2048}) EXPECT_EQ(pick(m, 14336, 4096), "split64x256") << m;
  EXPECT_EQ(pick(512, 4096, 4096), "split64x256");
  EXPECT_EQ(pick(2048, 2048, 2048), "split64x256");
  EXPECT_EQ(pick(4096, 1536, 384), "split64x256");
  EXPECT_EQ(pick(4096, 384, 1536), "split64x256");
  EXPECT_EQ(pick(512, 4096, 4072), "split64x256") << "x is split into whole tiles";
  EXPECT_EQ(pick(128, 4096, 4096), "split_gemvf16x2") << "few workgroups";
  EXPECT_EQ(pick(512, 384, 1536), "split_gemvf16x2");
}

TEST(SplitWeight, IsReadByTilesThatTakeOperandsAsTheyAre) {
  Features features = splitting();
  const LinearKernel& tiles = linear_kernel("split64x256");
  LinearShape shape = split_fp32(512, 14336, 4096);
  EXPECT_TRUE(reads_split_weight(tiles, WeightType::f32));
  EXPECT_FALSE(reads_split_weight(tiles, WeightType::q4));
  EXPECT_FALSE(reads_split_weight(linear_kernel("split_matrix128x128"), WeightType::f32));
  EXPECT_EQ(unsupported_reason(tiles, shape, features), "");
  shape.split_weight = false;
  EXPECT_EQ(unsupported_reason(tiles, shape, features),
            "takes fp32 weights only of an operator that keeps them as two fp16, too");
  EXPECT_EQ(pick_linear(shape, features).name, "split_matrix128x128");
  EXPECT_TRUE(may_split_weight(features, shape)) << "it asks about an operator that does";
  shape.weight = WeightType::q8;
  EXPECT_NE(unsupported_reason(tiles, shape, features), "");
  EXPECT_FALSE(may_split_weight(features, shape));
  shape.weight = WeightType::f32;
  features.bits &= ~bit(Feature::fragments);
  EXPECT_FALSE(may_split_weight(features, shape));
}

}  // namespace
}  // namespace pumice::engine
