// SPDX-License-Identifier: Apache-2.0
// The choice of a kernel is a pure function of sizes and features. These are its important cases.
#include <gtest/gtest.h>

#include "ops/linear/error_bound.h"
#include "ops/linear/gemv_lanes.h"
#include "ops/linear/kernels.h"
#include "ops/linear/pick.h"
#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

TEST(PickLinear, FewRowsAreAGemvThatHoldsThemAll) {
  for (const auto& [m, rows] : {std::pair{1, 1u}, {2, 2u}, {3, 4u}, {4, 4u}, {5, 8u}, {8, 8u}}) {
    EXPECT_EQ(pick_linear({m, 14336, 4096}, gpu()).rows, rows) << m;
    EXPECT_EQ(pick_linear({m, 14336, 4096}, baseline_features()).rows, rows) << m;
  }
}

TEST(PickLinear, GemvLanesGrowWithTheColumns) {
  for (const auto& [n, k, lanes] :
       {std::tuple{4096, 64, 32u}, {384, 384, 128u}, {14336, 4096, 256u}, {4096, 14336, 512u}})
    EXPECT_EQ(gemv_least_lanes(pick_linear({1, n, k}, gpu()), k, gpu()), lanes) << n << " " << k;
}

TEST(PickLinear, TwoStripsWhereInvocationsAreMany) {
  EXPECT_EQ(pick_linear({1, 14336, 4096}, gpu()).panels, 2u);
  EXPECT_EQ(pick_linear({1, 4096, 14336}, gpu()).panels, 2u);
  EXPECT_EQ(pick_linear({8, 14336, 4096}, gpu()).panels, 1u);
  EXPECT_EQ(pick_linear({1, 384, 384}, gpu()).panels, 1u);
}

TEST(PickLinear, ManyRowsAreTiled) {
  EXPECT_EQ(pick_linear({512, 14336, 4096}, gpu()).tile, (Tile{64, 128, 8, 8}));
  EXPECT_EQ(pick_linear({512, 14336, 4096}, baseline_features()).tile, (Tile{64, 128, 8, 8}));
}

TEST(PickLinear, SmallProductsDoNotStarveAGpu) {
  EXPECT_EQ(pick_linear({128, 384, 384}, gpu()).rows, 4u);  // 24 tiles at most: too few
  EXPECT_EQ(pick_linear({128, 1536, 384}, gpu()).rows, 4u);
  EXPECT_EQ(pick_linear({128, 384, 1536}, gpu()).rows, 4u);
}

TEST(PickLinear, ACpuReadsXOnceASubgroup) {
  for (const auto& [m, rows] : {std::pair{1, 1u}, {2, 2u}, {3, 4u}, {4, 4u}, {5, 8u}, {8, 8u}, {128, 8u}, {4096, 8u}}) {
    const LinearKernel& kernel = pick_linear({m, 1536, 384}, cpu());
    EXPECT_EQ(kernel.family, Family::gemv_rows) << m;
    EXPECT_EQ(kernel.rows, rows) << m;
  }
}

TEST(PickLinear, MatricesByRows) {
  const auto name = [](int64_t m, int64_t n, int64_t k) { return pick_linear(int4(m, n, k), matrices()).name; };
  EXPECT_EQ(name(2, 14336, 4096), "gemvf8x2");
  EXPECT_EQ(name(8, 4096, 14336), "gemvf8x2");
  EXPECT_EQ(name(1, 384, 384), "gemvf8");
  EXPECT_EQ(name(16, 14336, 4096), "gemvf16x2");
  EXPECT_EQ(name(128, 4096, 14336), "gemvf16x2");
  EXPECT_EQ(name(16, 4096, 4096), "gemvf8");
  EXPECT_EQ(name(128, 512, 2048), "gemvf16x2");  // of a weight in the cache
  EXPECT_EQ(name(49, 3072, 768), "gemvf16x2");
  EXPECT_EQ(name(128, 384, 384), "gemvf16");  // too few workgroups
  EXPECT_EQ(name(32, 1536, 384), "gemvf8");
  EXPECT_EQ(name(512, 512, 2048), "gemvf16x2");  // too few tiles
  EXPECT_EQ(name(128, 14336, 4096), "fragments64x128");
  EXPECT_EQ(name(512, 4096, 14336), "fragments64x128");
  EXPECT_EQ(name(512, 14336, 4096), "fragments64x256");
}

TEST(PickLinear, MatricesOnlyWhereTheyAreRight) {
  LinearShape shape = int4(512, 14336, 4096);
  shape.scale_f16 = false;  // the product with an fp32 scale may overflow fp16
  EXPECT_EQ(pick_linear(shape, matrices()).family, Family::tiled);
  shape = int4(512, 14336, 4096);
  shape.dtype = DType::f32;
  EXPECT_EQ(pick_linear(shape, matrices()).family, Family::tiled);
  Features features = matrices();
  features.bits &= ~bit(Feature::fragments);
  EXPECT_EQ(pick_linear(int4(512, 14336, 4096), features).family, Family::matrix);
  features.bits &= ~bit(Feature::coopmat);
  EXPECT_EQ(pick_linear(int4(512, 14336, 4096), features).family, Family::tiled);
}

// Where the matrices of many rows beat arithmetic in fp32: the table in ops/linear/pick.cpp.
TEST(PickLinear, Fp32AsTwoHalves) {
  Features features = matrices();
  features.bits &= ~bit(Feature::subgroup_shuffle);  // without kernels that split x themselves
  const auto pick = [&](int64_t m, int64_t n, int64_t k) -> const LinearKernel& {
    LinearShape shape = int4(m, n, k);
    shape.dtype = DType::f32;
    shape.scale_f16 = false;
    shape.may_split = true;
    return pick_linear(shape, features);
  };
  EXPECT_EQ(pick(512, 14336, 4096).input, Input::floats) << "a device without the feature";
  features.bits |= bit(Feature::split);
  for (const int64_t m : {64, 128, 512, 2048}) EXPECT_EQ(pick(m, 14336, 4096).name, "split64x128") << m;
  EXPECT_EQ(pick(64, 4096, 4096).name, "split64x128");
  EXPECT_EQ(pick(512, 1536, 384).name, "split64x128");
  EXPECT_EQ(pick(1, 14336, 4096).family, Family::gemv);
  EXPECT_EQ(pick(32, 4096, 4096).family, Family::gemv);
  EXPECT_EQ(pick(128, 384, 1536).family, Family::gemv);
  features.bits |= bit(Feature::subgroup_shuffle);  // of kernels that split x themselves
  EXPECT_EQ(pick(128, 384, 1536).name, "split_gemvf16x2");
  EXPECT_EQ(pick(512, 384, 1536).name, "split_gemvf16x2");
  EXPECT_EQ(pick(128, 384, 384).name, "split_gemvf8");
  EXPECT_EQ(pick(8, 512, 2048).family, Family::gemv) << "the weight is read once";
  EXPECT_EQ(pick(16, 384, 384).family, Family::gemv);
  EXPECT_EQ(pick(512, 1536, 384).name, "split_gemvf16x2");
  EXPECT_EQ(pick(512, 14336, 4096).name, "split64x128");
  EXPECT_EQ(pick(128, 1536, 376).family, Family::gemv) << "no whole tiles";
  LinearShape shape = int4(512, 14336, 4096);
  const LinearKernel& own = linear_kernel("split_gemvf16x2");
  EXPECT_EQ(unsupported_reason(own, shape, features), "takes fp32");
  shape.dtype = DType::f32;
  EXPECT_EQ(unsupported_reason(own, shape, features), "") << "also of an operator without nodes that split";
  EXPECT_FALSE(fuses_norm(own, shape, features));
  EXPECT_EQ(gated_kernel(own), nullptr);
  shape.integers = true;
  EXPECT_EQ(unsupported_reason(own, shape, features), "takes no integers");
  shape = int4(512, 14336, 4096);
  const LinearKernel& split = linear_kernel("split64x128");
  shape.may_split = true;
  EXPECT_EQ(unsupported_reason(split, shape, features), "takes fp32");
  shape.dtype = DType::f32;
  EXPECT_EQ(unsupported_reason(split, shape, features), "");
  EXPECT_GT(linear_error(split, shape), linear_error(linear_kernel("gemv1"), shape));
  EXPECT_LT(linear_error(split, shape), linear_error(linear_kernel("matrix64x64"), shape));
  shape.group = 16;
  EXPECT_NE(unsupported_reason(split, shape, features), "");
  shape.group = 0;
  shape.weight = WeightType::q8;
  EXPECT_NE(unsupported_reason(split, shape, features), "");
}

// Of few rows both parts are columns of one matrix.
TEST(PickLinear, FewRowsOfFp32AsTwoHalves) {
  Features features = matrices();
  features.bits |= bit(Feature::split);
  LinearShape shape = int4(1, 14336, 4096);
  shape.dtype = DType::f32;
  const auto pick = [&](int64_t m, int64_t n, int64_t k) {
    shape.m = m, shape.n = n, shape.k = k;
    return std::string(pick_linear(shape, features).name);
  };
  for (const int64_t m : {2, 4}) EXPECT_EQ(pick(m, 14336, 4096), "split_gemvf4x2") << m;
  EXPECT_EQ(pick(1, 4096, 14336), "split_gemvf4x2");
  EXPECT_EQ(pick(2, 2048, 2048), "split_gemvf4") << "few workgroups";
  EXPECT_EQ(pick(8, 2048, 2048), "split_gemvf4x2") << "two passes";
  EXPECT_EQ(pick(5, 14336, 4096), "split_gemvf8x4");
  EXPECT_EQ(pick(9, 14336, 4096), "split_gemvf16x4");
  EXPECT_EQ(pick(16, 4096, 4096), "split_gemvf16x2");
  EXPECT_EQ(pick(1, 2048, 512), "gemv1") << "a small weight";
  EXPECT_EQ(pick(1, 14336, 4072), "gemv1x2") << "no whole tiles";
  shape.weight = WeightType::q8;
  EXPECT_EQ(pick(4, 14336, 4096), "split_gemvf4x2");
  EXPECT_EQ(pick(8, 14336, 4096), "gemv8") << "not measured";
  shape.weight = WeightType::q4, shape.fused = true;
  EXPECT_EQ(pick(1, 14336, 4096), "gemv1x2") << "which norms and gates";
  shape.fused = false;
  features.bits &= ~bit(Feature::split);
  EXPECT_EQ(pick(1, 14336, 4096), "gemv1x2");
  const LinearKernel& pairs = linear_kernel("split_gemvf4x2");
  EXPECT_FALSE(fuses_norm(pairs, shape, features));
  EXPECT_EQ(gated_kernel(pairs), nullptr);
  EXPECT_EQ(gemv_lanes(pairs, 1, 14336, 4096, matrices()), 256u);
  EXPECT_EQ(gemv_lanes(pairs, 1, 64, 16384, matrices()), 1024u) << "32 KiB of shared memory";
}

TEST(PickLinear, Fp32AsTwoHalvesByAnyMatrices) {
  Features features = dots(matrices());
  features.bits &= ~bit(Feature::subgroup_shuffle);  // without kernels that split x themselves
  const auto pick = [&](WeightType weight, int64_t m, int64_t n, int64_t k) {
    LinearShape shape = int4(m, n, k);
    shape.dtype = DType::f32;
    shape.group = 0;
    shape.weight = weight;
    shape.may_split = true;
    return std::string(pick_linear(shape, features).name);
  };
  EXPECT_EQ(pick(WeightType::f32, 512, 14336, 4096), "tile64x128") << "a device without the feature";
  features.bits |= bit(Feature::split);
  EXPECT_EQ(pick(WeightType::q8, 512, 14336, 4096), "split_matrix64x128");
  EXPECT_EQ(pick(WeightType::q8, 64, 4096, 4096), "split_matrix64x64");
  EXPECT_EQ(pick(WeightType::q8, 32, 4096, 4096), "gemv8");
  EXPECT_EQ(pick(WeightType::f32, 512, 14336, 4096), "split_matrix128x128");
  EXPECT_EQ(pick(WeightType::f32, 128, 4096, 4096), "split_matrix64x64");
  EXPECT_EQ(pick(WeightType::f32, 128, 1536, 384), "gemv4x2");
  EXPECT_EQ(pick(WeightType::f32, 1, 14336, 4096), "gemv1x2");
  features.bits &= ~bit(Feature::fragments);
  EXPECT_EQ(pick(WeightType::f32, 512, 14336, 4096), "tile64x128") << "a device that was not measured";
  // Tails of tiles have other kernels only where x is one for both.
  EXPECT_EQ(pick_matrix_tail(linear_kernel("split_matrix64x128"), int4(65, 14336, 4096), features), nullptr);
}

// Of fp32 weights they read a copy, which not every operator has: the table in ops/linear/pick.cpp.
TEST(PickLinear, Fp32WeightsAsTwoHalvesByKernelsThatSplitX) {
  const Features features = splitting();
  LinearShape shape{.m = 197, .n = 384, .k = 1536, .may_split = true, .split_weight = true};
  EXPECT_EQ(pick_linear(shape, features).name, "split_gemvf8x2");
  shape.k = 384;
  EXPECT_EQ(pick_linear(shape, features).name, "split_gemvf8");
  shape.m = 128, shape.n = shape.k = 768;
  EXPECT_EQ(pick_linear(shape, features).name, "split_gemvf8x2");
  shape.m = 8;
  EXPECT_EQ(pick_linear(shape, features).family, Family::gemv) << "the weight is read once";
  shape.m = 128, shape.split_weight = false;
  EXPECT_NE(pick_linear(shape, features).input, Input::splits);
  EXPECT_EQ(unsupported_reason(linear_kernel("split_gemvf8"), shape, features),
            "takes fp32 weights only of an operator that keeps them as two fp16, too");
  for (const char* name : {"split_gemvf4", "split_gemvf8x4", "split_gemvf16x4"})
    EXPECT_EQ(unsupported_reason(linear_kernel(name), shape, features), "takes quantized weights") << name;
}

TEST(LinearError, OfSplitWeights) {
  LinearShape shape = int4(512, 14336, 4096);
  shape.dtype = DType::f32;
  const LinearKernel& kernel = linear_kernel("split_matrix64x64");
  const double integers = linear_error(kernel, shape);
  EXPECT_EQ(split_error(kernel, shape), 0x1p-50);
  shape.weight = WeightType::f32;
  EXPECT_EQ(split_error(kernel, shape), 0x1p-49);
  EXPECT_GT(linear_error(kernel, shape), integers);
  EXPECT_EQ(split_error(linear_kernel("gemv1"), shape), 0);
}

// A product of integers whose scale of the output takes fp32 sums: none of its nodes makes two fp16 of an fp32.
TEST(PickLinear, OperatorsWithoutNodesForASplitXTakeNoKernelThatReadsIt) {
  Features features = matrices();
  features.bits &= ~bit(Feature::subgroup_shuffle);  // without kernels that split x themselves
  features.bits |= bit(Feature::split);
  LinearShape shape = int4(512, 14336, 4096);
  shape.dtype = DType::f32;
  EXPECT_EQ(pick_linear(shape, features).input, Input::floats);
  EXPECT_FALSE(may_read(Input::split, shape, features));
  EXPECT_EQ(unsupported_reason(linear_kernel("split64x128"), shape, features), "takes no integers");
  shape.may_split = true;
  EXPECT_TRUE(may_read(Input::split, shape, features));
}

TEST(PickLinear, FewRowsBeyondTilesAreNoTile) {
  const auto tail = [](const char* name, int64_t m) {
    const LinearKernel* kernel = pick_matrix_tail(linear_kernel(name), int4(m, 14336, 4096), matrices());
    return kernel == nullptr ? "none" : kernel->name;
  };
  EXPECT_EQ(tail("matrix128x128", 513), "gemvf1");
  EXPECT_EQ(tail("matrix128x128", 520), "gemvf8x2");
  for (const int64_t m : {1, 127, 128, 512, 521}) EXPECT_EQ(tail("matrix128x128", m), "none") << m;
  EXPECT_EQ(tail("fragments64x256", 513), "none");
}

// One row and many, on devices with and without each feature: the pick can run, and quantized rows use dot products.
TEST(PickLinear, TexturesGetKernelsThatTakeThem) {
  Features phone = gpu();
  phone.bits = bit(Feature::int_dot) | bit(Feature::subgroup_arithmetic);
  Features matrices = phone;
  matrices.bits = (uint64_t{1} << kNumFeatures) - 1;
  matrices.subgroup_size = 32;
  matrices.matrix_f16 = {MatrixShape{16, 16, 16}, MatrixShape{16, 8, 16}};
  matrices.matrix_s8 = {MatrixShape{16, 16, 32}};
  for (const Features& features : {gpu(), cpu(), baseline_features(), phone, matrices}) {
    for (const bool integers : {false, true}) {
      for (const auto& [x, weight] : {std::pair{true, true}, {true, false}, {false, true}}) {
        for (const int64_t m : {1, 5, 16, 33, 512}) {
          const LinearShape shape{.m = m,
                                  .n = 4096,
                                  .k = 4096,
                                  .group = 128,
                                  .weight = WeightType::q4,
                                  .dtype = DType::f16,
                                  .scale_f16 = true,
                                  .integers = integers,
                                  .textures = x,
                                  .weight_texture = weight};
          const LinearKernel& kernel = pick_linear(shape, features);
          EXPECT_EQ(unsupported_reason(kernel, shape, features), "") << kernel.name;
          const bool dots = integers && !features.cpu && features.has(Feature::int_dot) && (m == 1 || m > 16);
          EXPECT_EQ(kernel.input == Input::words, dots) << m << " " << kernel.name;
        }
      }
    }
  }
}

TEST(PickLinear, FewRowPanelsGetMoreSubgroups) {
  for (const auto& [n, k, lanes] :
       {std::tuple{3072, 2048, 512u}, {2048, 8192, 1024u}, {6144, 4096, 512u}, {28672, 4096, 256u}}) {
    const LinearKernel& kernel = pick_linear(int4(2, n, k), matrices());
    ASSERT_EQ(kernel.family, Family::gemv_fragments);
    EXPECT_EQ(gemv_lanes(kernel, 1, n, k, dots(matrices())), lanes) << n << " " << k;
  }
}

TEST(PickLinear, AGateNeedsTwoRowPanelsOrWideSubtiles) {
  EXPECT_EQ(gated_kernel(linear_kernel("gemv1")), &linear_kernel("gemv1x2"));
  EXPECT_EQ(gated_kernel(linear_kernel("gemvf8x2")), &linear_kernel("gemvf8x2"));
  EXPECT_EQ(gated_kernel(linear_kernel("gemv8")), nullptr);
  EXPECT_EQ(gated_kernel(linear_kernel("gemvr1")), &linear_kernel("gemvr1x2"));
  EXPECT_EQ(gated_kernel(linear_kernel("matrix64x64")), &linear_kernel("matrix64x64"));
  EXPECT_EQ(gated_kernel(linear_kernel("matrix32x32")), nullptr);
  EXPECT_EQ(gated_kernel(linear_kernel("tile64x64")), nullptr);
}

// Every picked kernel, forced or not, fits the device: sizes around every threshold, on the poorest device and on
// others.
TEST(PickLinear, EverythingPickedFits) {
  for (const Features& features : {baseline_features(), gpu(), cpu(), matrices()}) {
    for (const int64_t m : {1, 2, 3, 7, 8, 9, 16, 17, 33, 64, 65, 127, 128, 129, 1000, 100000}) {
      for (const int64_t n : {1, 15, 16, 17, 384, 1536, 4096, 151936}) {
        for (const int64_t k : {1, 63, 64, 65, 384, 4096, 16384}) {
          const LinearShape shape = k % 32 == 0 ? int4(m, n, k) : LinearShape{m, n, k};
          const LinearKernel& kernel = pick_linear(shape, features);
          EXPECT_EQ(unsupported_reason(kernel, shape, features), "") << kernel.name;
          EXPECT_LE(pick_tile(1, m, n, features).subtiles(), features.max_invocations);
          if (kernel.family == Family::gemv) {
            const uint32_t lanes = gemv_lanes(kernel, m, n, k, features);
            EXPECT_EQ(lanes % 32, 0u);
            EXPECT_GE(lanes, 32u);
            EXPECT_LE(lanes, features.max_invocations);
            EXPECT_LE(kernel.rows * kernel.panels * lanes * 8 + 16, features.max_shared_bytes);
          }
        }
      }
    }
  }
}

// The kernels that are recommended for a device and a number of rows include the pick. On a CPU driver they are those
// that took at most twice the time of the best one.
TEST(PickLinear, IsMeantForTheCase) {
  for (const Features& features : {baseline_features(), dots(gpu()), dots(cpu()), matrices()}) {
    for (const int64_t m : {1, 2, 3, 4, 5, 8, 17, 128, 512}) {
      for (const LinearShape& shape : {int4(m, 4096, 4096), integers(m, 32), integers(m, 0, WeightType::q8)}) {
        for (const bool textures : {false, true}) {
          LinearShape live = shape;
          live.textures = textures;
          const LinearKernel& kernel = pick_linear(live, features);
          EXPECT_EQ(not_recommended_reason(kernel, live, features), "") << kernel.name << " " << m;
        }
      }
    }
  }
}

TEST(PickLinear, KernelsMeantForACpu) {
  const auto meant = [](int64_t m) {
    std::string all;
    for (const LinearKernel& kernel : linear_kernels()) {
      if (not_recommended_reason(kernel, integers(m, 32), dots(cpu())).empty()) all += std::string(kernel.name) + " ";
    }
    return all;
  };
  EXPECT_EQ(meant(1), "gemvr1 gemvr1x2 ");
  EXPECT_EQ(meant(2), "gemvr1 gemvr2 gemvr1x2 ");
  EXPECT_EQ(meant(4), "gemvr2 gemvr4 ");
  for (const int64_t m : {5, 8, 128}) EXPECT_EQ(meant(m), "gemvr4 gemvr8 ") << m;
  EXPECT_EQ(not_recommended_reason(linear_kernel("gemv1"), integers(1, 32), dots(cpu())), "is made for GPUs");
  EXPECT_EQ(not_recommended_reason(linear_kernel("gemvr1"), integers(1, 32), dots(gpu())), "is made for CPU drivers");
}

TEST(Kernels, TilesDivideIntoRowPanelsAndVec4Groups) {
  for (const LinearKernel& kernel : linear_kernels()) {
    if (kernel.family != Family::tiled) continue;
    EXPECT_EQ(kernel.tile.bn % 16, 0u) << kernel.name;
    EXPECT_EQ(kernel.tile.tn % 4, 0u) << kernel.name;
  }
}

TEST(Choose, TakesANameAndRefusesOthers) {
  const LinearShape shape{1, 64, 64};
  const auto forced = [](Features features, const char* kernel) {
    features.kernel = kernel;
    return features;
  };
  EXPECT_EQ(choose_linear(shape, gpu()).name, pick_linear(shape, gpu()).name);
  EXPECT_EQ(choose_linear(shape, forced(gpu(), "gemv8")).rows, 8u);
  EXPECT_EQ(choose_linear(shape, forced(gpu(), "tile32x64")).tile.bm, 32u);
  EXPECT_THROW(choose_linear(shape, forced(baseline_features(), "tile128x128")), Error);
  EXPECT_THROW(choose_linear(shape, forced(gpu(), "gemv3")), Error);
  EXPECT_EQ(apply(gpu(), "none, kernel=gemv8").kernel, "gemv8");
}

}  // namespace
}  // namespace pumice::engine
