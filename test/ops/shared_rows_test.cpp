// SPDX-License-Identifier: Apache-2.0
// Kernels whose workgroups share rows of x among columns of row panels: when they are picked, and what they need.
#include <gtest/gtest.h>

#include "ops/linear/gemv_lanes.h"
#include "ops/linear/pick.h"
#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

// H200: the table in ops/linear/shared_rows.cpp.
TEST(SharedRows, OnceForEachMultiprocessor) {
  Features features = splitting();
  for (const bool norm : {false, true}) {
    const auto pick = [&](int64_t m, int64_t n, int64_t k) {
      LinearShape shape = split_fp32(m, n, k);
      shape.layer_norm = norm;
      return pick_linear(shape, features).name;
    };
    EXPECT_EQ(pick(197, 1536, 384), "split_gemvf16x12");
    EXPECT_EQ(pick(197, 1152, 384), "split_gemvf16x8");
    EXPECT_EQ(pick(197, 384, 384), "split_gemvf8") << "few workgroups";
    EXPECT_EQ(pick(512, 1536, 384), norm ? "split_gemvf8x2" : "split_gemvf16x2") << "more than run at once";
    EXPECT_EQ(pick(128, 1536, 768), "split_gemvf16x2") << "rows that do not fit";
  }
  LinearShape int4 = split_fp32(128, 1536, 384);
  int4.weight = WeightType::q4, int4.group = 32, int4.split_weight = false;
  EXPECT_EQ(pick_linear(int4, features).name, "split_gemvf16x6");
  int4.n = 1152;
  EXPECT_EQ(pick_linear(int4, features).name, "split_gemvf16x6");
  features.compute_units = 20;
  EXPECT_NE(pick_linear(int4, features).columns, 3u) << "96 workgroups for 20 multiprocessors";
}

// ViT-small in fp16.
TEST(SharedRows, OfHalvesWhereALayerNormMakesThem) {
  LinearShape shape{.m = 197, .n = 1536, .k = 384, .weight = WeightType::f16, .dtype = DType::f16, .layer_norm = true};
  EXPECT_EQ(pick_linear(shape, matrices()).name, "gemvf16x12");
  shape.n = 1152;
  EXPECT_EQ(pick_linear(shape, matrices()).name, "gemvf16x8");
  shape.weight = WeightType::q4, shape.group = 32;
  EXPECT_EQ(pick_linear(shape, matrices()).name, "gemvf8x2");
  shape.weight = WeightType::f16, shape.layer_norm = false;
  EXPECT_EQ(pick_linear(shape, matrices()).name, "gemvf16x2");
}

TEST(SharedRows, NeedsInvocationsAndSharedMemory) {
  Features features = splitting();
  const LinearKernel& kernel = linear_kernel("split_gemvf16x8");
  EXPECT_EQ(kernel.own_panels(), 2u);
  EXPECT_EQ(gemv_lanes(kernel, 197, 1152, 384, features), 384u);
  EXPECT_EQ(gemv_lanes(kernel, 197, 1152, 128, features), 128u) << "a subgroup for two tiles";
  EXPECT_EQ(unsupported_reason(kernel, split_fp32(197, 1152, 384), features), "");
  EXPECT_EQ(unsupported_reason(kernel, split_fp32(197, 1152, 768), features),
            "needs 384 invocations and 50320 bytes of shared memory, the device has 1024 and 49152");
  features.max_invocations = 256;
  EXPECT_EQ(unsupported_reason(kernel, split_fp32(197, 1152, 384), features),
            "needs 384 invocations and 31504 bytes of shared memory, the device has 256 and 49152");
  LinearShape shape{.m = 17, .n = 64, .k = 320, .weight = WeightType::q4, .dtype = DType::f16, .integers = true};
  EXPECT_EQ(unsupported_reason(linear_kernel("gemvf16x6"), shape, matrices()), "takes no integers");
  shape.integers = false, shape.k = 72, shape.group = 32;
  EXPECT_EQ(unsupported_reason(linear_kernel("gemvf16x6"), shape, matrices()), "takes whole tiles of 64 columns");
}

}  // namespace
}  // namespace pumice::engine
