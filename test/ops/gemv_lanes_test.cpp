// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/linear/gemv_lanes.h"
#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

TEST(GemvLanes, RowsOfFewTilesHaveThemAllAhead) {
  const auto ahead = [](const char* name, LinearShape s, const Features& features) {
    return gemv_whole_ahead(linear_kernel(name), s, features);
  };
  const LinearShape small{.m = 1, .n = 384, .k = 1536};
  EXPECT_TRUE(ahead("gemv1", small, gpu()));
  EXPECT_TRUE(ahead("gemv1", {.m = 1, .n = 1536, .k = 384, .weight = WeightType::f16}, gpu()));
  EXPECT_FALSE(ahead("gemv1", {.m = 1, .n = 14336, .k = 4096}, gpu()));
  EXPECT_FALSE(ahead("gemv1", {.m = 1, .n = 384, .k = 1536, .weight = WeightType::q4}, gpu()));
  EXPECT_FALSE(ahead("gemv2", {.m = 2, .n = 384, .k = 1536}, gpu()));
  EXPECT_FALSE(ahead("gemv1x2", small, gpu()));
  EXPECT_FALSE(ahead("gemv1", small, cpu()));
}

TEST(GemvLanes, TilesAheadFitTheRegistersThatManyLanesShare) {
  Features adreno = gpu_with({Feature::storage8, Feature::storage16});
  adreno.few_registers = true;
  adreno.subgroup_size = 128;
  adreno.max_subgroup_size = 128;
  const auto ahead = [&](int64_t k, WeightType weight, uint32_t lanes) {
    const LinearKernel kernel = linear_kernel("gemv1");
    EXPECT_EQ(gemv_lanes(kernel, 1, 1000, k, adreno), lanes);
    return gemv_whole_ahead(kernel, {.m = 1, .n = 1000, .k = k, .weight = weight}, adreno);
  };
  EXPECT_FALSE(ahead(2048, WeightType::f32, 512));
  EXPECT_TRUE(ahead(1024, WeightType::f32, 256));
  EXPECT_TRUE(ahead(2048, WeightType::f16, 512));
}

}  // namespace
}  // namespace pumice::engine
