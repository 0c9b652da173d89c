// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "ops/linear/gemv_lanes.h"
#include "ops/linear/kernels.h"
#include "ops/linear/pick.h"
#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

// One row by workgroups of which each multiprocessor has one, where the weight is neither small nor larger than that.
TEST(PickLinear, OneRow) {
  Features features = matrices();
  features.bits |= bit(Feature::split);
  const auto pick = [&](int64_t n, int64_t k, DType dtype, WeightType weight = WeightType::q4) {
    LinearShape shape = int4(1, n, k);
    shape.dtype = dtype, shape.weight = weight;
    return std::string(pick_linear(shape, features).name);
  };
  for (const auto& [n, k] : {std::pair{14336, 4096}, {4096, 4096}, {2048, 2048}, {16384, 2048}}) {
    EXPECT_EQ(pick(n, k, DType::f32), "split_gemvf1") << n;
    EXPECT_EQ(pick(n, k, DType::f16), "gemvf1") << n;
  }
  EXPECT_EQ(pick(28672, 4096, DType::f32), "split_gemvf1");
  EXPECT_EQ(pick(28672, 4096, DType::f16), "gemvf1");
  EXPECT_EQ(pick(128256, 2048, DType::f32), "split_gemvf1") << "nearly two panels for each subgroup";
  EXPECT_EQ(pick(128256, 2048, DType::f16), "gemvf1");
  EXPECT_EQ(pick(151936, 4096, DType::f16), "gemvf8x2") << "two and a bit";
  EXPECT_EQ(pick(28672, 4096, DType::f32, WeightType::q8), "split_gemvf4x2")
      << "more than eight of each multiprocessor";
  EXPECT_EQ(pick(4096, 8192, DType::f16), "gemvf8x2");
  EXPECT_EQ(pick(14336, 4096, DType::f16, WeightType::q8), "gemvf8x2");
  EXPECT_EQ(pick(14336, 4096, DType::f32, WeightType::q8), "split_gemvf1");
  EXPECT_EQ(pick(512, 512, DType::f16), "gemvf8") << "a small weight";
  const LinearKernel& row = linear_kernel("gemvf1");
  LinearShape shape = int4(1, 14336, 4072);
  EXPECT_EQ(unsupported_reason(row, shape, features), "takes whole tiles of 64 columns");
  shape.k = 64 * 1024;
  EXPECT_EQ(unsupported_reason(row, shape, features), "needs 134656 bytes of shared memory, the device has 49152");
  shape.k = 4096, shape.weight = WeightType::f16;
  EXPECT_EQ(unsupported_reason(row, shape, features), "takes quantized weights");
  shape.weight = WeightType::q4, shape.integers = true;
  EXPECT_EQ(unsupported_reason(row, shape, features), "takes no integers");
  EXPECT_EQ(gated_kernel(linear_kernel("split_gemvf1")), nullptr);
}

// Products with a norm or a gate, in fp16.
TEST(PickLinear, OneRowThatNormsAndGates) {
  Features features = matrices();
  features.bits |= bit(Feature::split);
  const LinearKernel& row = linear_kernel("gemvf1");
  LinearShape shape = int4(1, 28672, 4096);
  shape.dtype = DType::f16, shape.fused = true;
  EXPECT_EQ(pick_linear(shape, features).name, "gemvf1");
  EXPECT_TRUE(fuses_norm(row, shape, features));
  EXPECT_EQ(gated_kernel(row), &row);
  shape.n = 128256;
  EXPECT_EQ(pick_linear(shape, features).name, "gemvf8x2") << "a gate needs both panels at once";
  shape.m = 2;
  EXPECT_FALSE(fuses_norm(row, shape, features));
  shape.m = 1, shape.k = 24576;
  EXPECT_FALSE(fuses_norm(row, shape, features)) << "48 KiB of shared memory for x alone";
  EXPECT_FALSE(fuses_norm(linear_kernel("split_gemvf1"), int4(1, 28672, 4096), features));
}

TEST(PickLinear, WorkgroupOfOneRow) {
  const auto workgroup = [](const char* kernel, int64_t n, int64_t k, bool gated = false,
                            WeightType weight = WeightType::q4) {
    const RowWorkgroup w = gemv_row_workgroup(linear_kernel(kernel), n, k, weight, gated, matrices());
    return std::array{w.panels, w.slots, w.depth, w.workgroups};
  };
  using Row = std::array<uint32_t, 4>;
  EXPECT_EQ(workgroup("split_gemvf1", 14336, 4096), (Row{7, 4, 1, 128}));
  EXPECT_EQ(workgroup("gemvf1", 14336, 4096), (Row{7, 4, 2, 128}));
  EXPECT_EQ(workgroup("gemvf1", 14336, 4096, false, WeightType::q8), (Row{7, 4, 1, 128}));
  EXPECT_EQ(workgroup("gemvf1", 14336, 4096, true), (Row{8, 4, 2, 112})) << "gates and what they multiply";
  EXPECT_EQ(workgroup("gemvf1", 14336, 4160), (Row{7, 4, 1, 128})) << "65 tiles";
  EXPECT_EQ(workgroup("gemvf1", 2048, 2048), (Row{1, 16, 1, 128})) << "a subgroup has two tiles at once";
  EXPECT_EQ(workgroup("gemvf1", 28672, 4096), (Row{14, 2, 2, 128}));
  EXPECT_EQ(workgroup("gemvf1", 128256, 2048), (Row{32, 1, 2, 132})) << "a subgroup has several row panels";
  EXPECT_EQ(workgroup("gemvf1", 128256, 2048, true), (Row{16, 2, 2, 501}));
  EXPECT_EQ(workgroup("gemvf1", 16, 64), (Row{1, 1, 1, 1}));
  EXPECT_EQ(workgroup("gemvf1", 32, 64, true), (Row{2, 1, 1, 1}));
}

}  // namespace
}  // namespace pumice::engine
