// SPDX-License-Identifier: Apache-2.0
// The choice of a kernel for x in 8 bits.
#include <gtest/gtest.h>

#include "ops/linear/int8_kernels.h"
#include "ops/linear/kernels.h"
#include "ops/linear/pick.h"
#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

TEST(PickIntegers, FloatsWhereNothingElseIsThere) {
  for (const int64_t m : {1, 4, 64, 512}) {
    EXPECT_EQ(pick_linear(integers(m, 32), gpu()).input, Input::floats) << m;
    EXPECT_EQ(pick_linear(integers(m, 0, WeightType::q8), baseline_features()).input, Input::floats) << m;
  }
}

TEST(PickIntegers, DotsWithoutMatrices) {
  EXPECT_EQ(pick_linear(integers(1, 32), dots(gpu())).name, "dot1x7");
  EXPECT_EQ(pick_linear(integers(1, 128), dots(gpu())).name, "dot1x4");
  EXPECT_EQ(pick_linear(integers(1, 32, WeightType::q4, 4096, 16384), dots(gpu())).name, "dot1x4") << "two of seven";
  EXPECT_EQ(pick_linear(integers(1, 0, WeightType::q8, 4096, 8192), dots(gpu())).name, "dot1x4");
  EXPECT_EQ(dot_gemv_lanes(linear_kernel("dot1x4"), integers(1, 32), dots(gpu())), 512u);
  EXPECT_EQ(pick_linear(integers(1, 0, WeightType::q8), dots(gpu())).name, "dot1");
  EXPECT_EQ(pick_linear(integers(1, 32, WeightType::q4, 4096, 4096), dots(gpu())).name, "dot1");
  EXPECT_EQ(pick_linear(integers(1, 0, WeightType::q8, 11008, 4096), dots(gpu())).name, "dot1x2");
  EXPECT_EQ(pick_linear(integers(4, 32), dots(gpu())).input, Input::floats);
  EXPECT_EQ(pick_linear(integers(512, 32), dots(gpu())).name, "dot_tile64x128");
  EXPECT_EQ(pick_linear(integers(512, 20), dots(gpu())).input, Input::floats);
  for (const int64_t m : {1, 8, 128}) EXPECT_EQ(pick_linear(integers(m, 32), dots(cpu())).input, Input::floats) << m;
}

TEST(PickIntegers, MatricesOfBytesForOneScaleARow) {
  Features features = dots(gpu());
  features.bits |= bit(Feature::coopmat) | bit(Feature::memory_model) | bit(Feature::int8);
  features.subgroup_size = 32;
  features.matrix_s8 = {{{16, 16, 32}}};
  EXPECT_EQ(pick_linear(integers(512, 0, WeightType::q8), features).name, "int8_128x128");
  EXPECT_EQ(pick_linear(integers(512, 0, WeightType::q4), features).name, "int8_128x128d2");
  EXPECT_EQ(pick_linear(integers(100, 0, WeightType::q8, 4096, 4096), features).name, "int8_64x64");
  EXPECT_EQ(pick_linear(integers(512, 128), features).name, "int8g_64x128");
  EXPECT_EQ(pick_linear(integers(512, 20), features).input, Input::floats);
  EXPECT_EQ(pick_linear(integers(1, 0), features).name, "dot1x4");
  features.matrix_s8 = {{{16, 16, 24}}};
  EXPECT_NE(pick_linear(integers(512, 0), features).family, Family::matrix_int8);
}

// For x of fp32, too: these kernels read its quantized values as whole numbers in fp16.
TEST(PickIntegers, FragmentsForFewRows) {
  Features features = dots(matrices());
  features.bits |= bit(Feature::int8);
  features.matrix_s8 = {{{16, 16, 32}}};
  for (const DType dtype : {DType::f16, DType::f32}) {
    const auto pick = [&](int64_t m, int64_t n, uint32_t group = 0) {
      LinearShape shape = integers(m, group, WeightType::q8, 4096, n);
      shape.dtype = dtype;
      const LinearKernel& kernel = pick_linear(shape, features);
      if (kernel.family == Family::gemv_fragments) {
        EXPECT_EQ(form_of(kernel, shape), dtype == DType::f16 ? Input::floats : Input::halves);
      }
      return kernel.name;
    };
    EXPECT_EQ(pick(2, 14336), "gemvf8x2");
    EXPECT_EQ(pick(16, 14336), "gemvf16x2");
    EXPECT_EQ(pick(16, 14336, 32), "gemvf16x2");
    EXPECT_EQ(pick(64, 8192), "gemvf16x2");
    EXPECT_EQ(pick(64, 14336), "int8_64x64");
    EXPECT_EQ(pick(4, 512), "dot1");
    EXPECT_EQ(pick(4, 4096), "dot1x2");
    EXPECT_EQ(pick(5, 4096), "gemvf8");
    EXPECT_EQ(pick(16, 512, 32), "dot1x2");
    EXPECT_EQ(pick(64, 512), "dotw4");
    EXPECT_EQ(pick(512, 512), "gemvf16x2");  // too few tiles
  }
  EXPECT_EQ(pick_linear(integers(128, 0, WeightType::q8, 14336, 4096), features).name, "gemvf16x2");
  EXPECT_EQ(pick_linear(integers(16, 0, WeightType::q8), dots(gpu())).name, "dotw4");
  LinearShape floats = int4(16, 14336, 4096);
  floats.dtype = DType::f32;
  EXPECT_NE(unsupported_reason(linear_kernel("gemvf16x2"), floats, features), "");
}

TEST(PickIntegers, SumsThatPass32BitsAreFloats) {
  EXPECT_NE(unsupported_reason(linear_kernel("dot1"), integers(1, 0, WeightType::q8, 40000), dots(gpu())), "");
  EXPECT_EQ(pick_linear(integers(512, 0, WeightType::q8, 40000), dots(gpu())).input, Input::floats);
  EXPECT_EQ(unsupported_reason(linear_kernel("dot_tile64x64"), integers(512, 32, WeightType::q4, 40000), dots(gpu())),
            "");
}

TEST(PickIntegers, FloatsAreNotForThem) {
  for (const LinearKernel& kernel : linear_kernels()) {
    if (kernel.input == Input::floats || kernel.input == Input::split) continue;
    EXPECT_NE(unsupported_reason(kernel, {1, 64, 64, 32, WeightType::q4}, dots(gpu())), "") << kernel.name;
  }
}

}  // namespace
}  // namespace pumice::engine
