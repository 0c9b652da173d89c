// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
  EXPECT_EQ(pick(28672, 4096, DType::f16), "gemvf8x2") << "more than eight panels for each multiprocessor";
  EXPECT_EQ(pick(128256, 2048, DType::f32), "split_gemvf4x2") << "more than 16";
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
  EXPECT_FALSE(fuses_norm(row, shape, features));
  EXPECT_EQ(gated_kernel(row), &linear_kernel("gemvf8x2"));
  EXPECT_EQ(gated_kernel(linear_kernel("split_gemvf1")), nullptr);
  const auto workgroup = [&](int64_t n, int64_t k) {
    const RowWorkgroup w = gemv_row_workgroup(n, k, features);
    return std::pair{w.panels, w.slots};
  };
  EXPECT_EQ(workgroup(14336, 4096), (std::pair{7u, 4u}));
  EXPECT_EQ(workgroup(2048, 2048), (std::pair{1u, 16u})) << "a subgroup has two tiles at once";
  EXPECT_EQ(workgroup(28672, 4096), (std::pair{14u, 2u}));
  EXPECT_EQ(workgroup(1 << 20, 4096), (std::pair{16u, 2u}));
  EXPECT_EQ(workgroup(16, 64), (std::pair{1u, 1u}));
}

}  // namespace
}  // namespace pumice::engine
