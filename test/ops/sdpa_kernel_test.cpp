// SPDX-License-Identifier: Apache-2.0
// How attention is divided into workgroups is a pure function of sizes and features.
#include "ops/shared/sdpa_kernel.h"

#include <gtest/gtest.h>

namespace pumice::engine {
namespace {

Features gpu() {
  Features features = baseline_features();
  features.bits = bit(Feature::float16) | bit(Feature::coopmat) | bit(Feature::memory_model);
  features.max_invocations = 1024;
  features.max_shared_bytes = 49152;
  features.subgroup_size = 32;
  features.matrix_f16 = {MatrixShape{16, 16, 16}, MatrixShape{16, 8, 16}};
  features.compute_units = 132;
  return features;
}

TEST(SdpaKernel, HalfPrecisionGoesToMatrices) {
  const auto matrices = sdpa_matrices({32 * 12, 128, 32, 32, DType::f16}, gpu());
  ASSERT_TRUE(matrices);
  EXPECT_EQ(matrices->rows(), 64u);
  EXPECT_EQ(matrices->keys, 64u);
  Features few = gpu();
  few.few_registers = true, few.subgroup_size = 16;
  EXPECT_FALSE(sdpa_matrices({384, 128, 32, 32, DType::f16}, few)) << "sums of 16 x (32 + 32) in 16 lanes";
  EXPECT_FALSE(sdpa_matrices({384, 128, 32, 32, DType::f32}, gpu()));
  EXPECT_FALSE(sdpa_matrices({384, 1, 32, 32, DType::f16}, gpu())) << "one row";
  EXPECT_FALSE(sdpa_matrices({384, 128, 512, 512, DType::f16}, gpu())) << "too many registers";
}

TEST(SdpaKernel, FewHeadsGetSmallWorkgroups) {
  EXPECT_EQ(sdpa_matrices({12, 128, 32, 32, DType::f16}, gpu())->subgroups, 1u);
  EXPECT_EQ(sdpa_matrices({64, 128, 32, 32, DType::f16}, gpu())->subgroups, 4u);
  EXPECT_EQ(sdpa_matrices({4096, 16, 32, 32, DType::f16}, gpu())->subgroups, 1u) << "four have rows for one";
}

TEST(SdpaKernel, FewerKeysWhereRegistersWouldSpill) {
  EXPECT_EQ(sdpa_matrices({12, 16, 64, 64, DType::f16}, gpu())->keys, 32u) << "one subgroup loads all of 64 keys";
  EXPECT_EQ(sdpa_matrices({384, 128, 64, 64, DType::f16}, gpu())->keys, 64u) << "four subgroups share them";
  EXPECT_EQ(sdpa_matrices({384, 128, 128, 128, DType::f16}, gpu())->keys, 32u);
  EXPECT_TRUE(sdpa_matrices({384, 128, 256, 256, DType::f16}, gpu())) << "where nothing has fewer";
  Features amd = gpu();
  amd.subgroup_size = 64;
  EXPECT_EQ(sdpa_matrices({12, 16, 128, 128, DType::f16}, amd)->keys, 32u) << "beside 64 registers of queries";
  EXPECT_EQ(sdpa_matrices({12, 16, 64, 64, DType::f16}, amd)->keys, 64u);
}

TEST(SdpaKernel, FewerKeysOnTheWayWhereRegistersAreFewest) {
  Features adreno = gpu();
  adreno.bits = bit(Feature::float16) | bit(Feature::storage16);
  adreno.few_registers = true, adreno.subgroup_size = adreno.max_subgroup_size = 128;
  adreno.max_shared_bytes = 32768;
  Features roomy = adreno;
  roomy.bits |= bit(Feature::storage8);
  for (const int64_t rows : {8, 16}) {
    EXPECT_EQ(sdpa_blocks({16, rows, 64, 64, DType::f32}, adreno).keys, 32u);
    EXPECT_EQ(sdpa_blocks({16, rows, 64, 64, DType::f32}, roomy).keys, 64u);
  }
  EXPECT_EQ(sdpa_blocks({16, 16, 32, 32, DType::f32}, adreno).keys, 64u);
  EXPECT_EQ(sdpa_blocks({16, 16, 128, 128, DType::f32}, adreno).keys, 16u);
}

TEST(SdpaKernel, SmallSubgroupsShareTheKeysThatOneWouldSpill) {
  Features intel = gpu();
  intel.few_registers = true, intel.subgroup_size = intel.min_subgroup_size = 16;
  intel.matrix_f16 = {MatrixShape{8, 16, 16}};
  const auto shared = sdpa_matrices({12, 16, 32, 32, DType::f16}, intel);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->subgroups, 2u) << "of too few workgroups, yet one would have 64 numbers in each lane";
  EXPECT_EQ(shared->keys, 32u);
  EXPECT_EQ(sdpa_matrices({384, 128, 32, 32, DType::f16}, intel)->subgroups, 4u);
  Features roomy = intel;
  roomy.few_registers = false;
  EXPECT_EQ(sdpa_matrices({12, 16, 32, 32, DType::f16}, roomy)->subgroups, 1u);
}

TEST(SdpaKernel, SmallSubgroupsHaveFewKeysOnTheWay) {
  Features intel = gpu();
  intel.few_registers = true, intel.subgroup_size = intel.min_subgroup_size = 16;
  EXPECT_EQ(sdpa_blocks({16, 16, 64, 64, DType::f16}, intel).keys, 32u);
  EXPECT_EQ(sdpa_blocks({16, 16, 64, 64, DType::f32}, intel).keys, 64u);
  EXPECT_EQ(sdpa_blocks({16, 16, 128, 128, DType::f32}, intel).keys, 32u);
  intel.subgroup_size = intel.min_subgroup_size = 8;
  EXPECT_EQ(sdpa_blocks({16, 16, 64, 64, DType::f16}, intel).keys, 64u);
  EXPECT_EQ(sdpa_blocks({16, 16, 128, 128, DType::f16}, intel).keys, 32u);
  EXPECT_EQ(sdpa_blocks({16, 16, 64, 64, DType::f16}, gpu()).keys, 64u);
  Features mali = intel;
  mali.subgroup_size = mali.max_subgroup_size = 16;
  for (const DType dtype : {DType::f32, DType::f16}) {
    EXPECT_EQ(sdpa_blocks({16, 16, 64, 64, dtype}, mali).keys, 16u);
    EXPECT_EQ(sdpa_blocks({16, 16, 32, 32, dtype}, mali).keys, 32u);
    EXPECT_EQ(sdpa_blocks({16, 16, 16, 16, dtype}, mali).keys, 16u);
    EXPECT_EQ(sdpa_blocks({16, 3, 16, 16, dtype}, mali).rows, 16u) << "of 4 and 8 rows two registers spill";
    EXPECT_EQ(sdpa_blocks({16, 3, 32, 32, dtype}, mali).rows, 4u);
    EXPECT_EQ(sdpa_blocks({16, 16, 64, 64, dtype}, mali).rows, 16u);
    EXPECT_EQ(sdpa_blocks({16, 16, 128, 128, dtype}, mali).rows, 8u);
  }
}

TEST(SdpaKernel, NeedsEveryFeatureAndAShapeThatDivides) {
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16}) {
    Features features = gpu();
    features.bits &= ~bit(feature);
    EXPECT_FALSE(sdpa_matrices({384, 128, 32, 32, DType::f16}, features));
  }
  Features features = gpu();
  features.cpu = true;
  EXPECT_FALSE(sdpa_matrices({384, 128, 32, 32, DType::f16}, features));
  features = gpu();
  features.matrix_f16 = {MatrixShape{16, 4, 16}, MatrixShape{8, 8, 8}};
  EXPECT_EQ(sdpa_matrices({384, 128, 32, 32, DType::f16}, features)->shape.n, 8u);
  features.matrix_f16 = {MatrixShape{64, 16, 16}};
  EXPECT_FALSE(sdpa_matrices({384, 128, 32, 32, DType::f16}, features)) << "more rows than a subgroup has lanes";
}

Features fragments() {
  Features features = gpu();
  features.bits |= bit(Feature::fragments) | bit(Feature::subgroup_shuffle);
  return features;
}

TEST(SdpaKernel, ScoresStayInRegistersWhereTheirPlacesAreKnown) {
  EXPECT_FALSE(sdpa_fragments({32, 2048, 64, 64, DType::f16}, gpu()));
  const auto narrow = sdpa_fragments({32, 2048, 64, 64, DType::f16}, fragments());
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->rows(), 128u);
  EXPECT_EQ(narrow->keys, 32u);
  const auto wide = sdpa_fragments({32, 2048, 128, 128, DType::f16}, fragments());
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->rows(), 128u);
  EXPECT_EQ(wide->keys, 64u);
  EXPECT_FALSE(sdpa_fragments({32, 2048, 128, 160, DType::f16}, fragments())) << "too many registers";
  const auto few = sdpa_fragments({12, 256, 128, 128, DType::f16}, fragments());
  ASSERT_TRUE(few);
  EXPECT_EQ(few->rows(), 64u) << "workgroups for more of the device";
  EXPECT_EQ(few->keys, 32u);
  EXPECT_EQ(few->key_parts, 1u);
  const auto alone = sdpa_fragments({24, 197, 64, 64, DType::f16}, fragments());
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->keys, 64u) << "fewer steps, as there are registers";
  EXPECT_EQ(alone->key_parts, 1u);
  EXPECT_EQ(sdpa_fragments({384, 128, 64, 64, DType::f16}, fragments())->keys, 32u);
  EXPECT_EQ(sdpa_fragments({1000, 16, 64, 64, DType::f16}, fragments())->subgroups, 2u) << "one has no rows";
}

TEST(SdpaKernel, SubgroupsDivideKeysWhereWorkgroupsWouldBeFew) {
  const auto parts = [](const SdpaShape& shape, const Features& features) {
    const auto found = sdpa_fragments(shape, features);
    return found ? found->key_parts : 0;
  };
  const SdpaShape vit{6, 197, 64, 64, DType::f16, false, 197};
  const auto found = sdpa_fragments(vit, fragments());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key_parts, 8u);
  EXPECT_EQ(found->subgroups, 8u);
  EXPECT_EQ(found->rows(), 16u);
  EXPECT_EQ(found->keys, 16u);
  EXPECT_EQ(found->shared, 8 * 16 * 17u) << "the sums of 16 rows, their maximum and total, of each subgroup";
  SdpaShape other = vit;
  other.keys = 4096;
  EXPECT_EQ(sdpa_fragments(other, fragments())->keys, 32u);
  EXPECT_EQ(parts({12, 197, 64, 64, DType::f16}, fragments()), 4u);
  EXPECT_EQ(parts({24, 197, 64, 64, DType::f16}, fragments()), 1u);
  EXPECT_EQ(parts({6, 1, 64, 64, DType::f16, false, 197}, fragments()), 8u);
  EXPECT_FALSE(sdpa_fragments({1000, 1, 64, 64, DType::f16}, fragments())) << "one row of 16, and nothing to divide";
  EXPECT_EQ(parts({48, 128, 32, 32, DType::f16}, fragments()), 4u);
  EXPECT_EQ(parts({8, 256, 128, 128, DType::f16}, fragments()), 4u);
  EXPECT_EQ(parts({6, 197, 64, 16, DType::f16}, fragments()), 1u) << "two matrices are stored at once";
  EXPECT_EQ(parts({6, 197, 64, 64, DType::f16, true}, fragments()), 1u) << "caches of bytes: not measured";
  Features features = fragments();
  features.compute_units = 16;
  EXPECT_EQ(parts(vit, features), 1u) << "enough for a small device";
  features = fragments();
  features.max_shared_bytes = 32768;
  EXPECT_EQ(parts(vit, features), 4u) << "sums of eight do not fit";
  features.max_invocations = 64;
  EXPECT_EQ(parts(vit, features), 1u);
}

TEST(SdpaKernel, Fp32AsTwoHalves) {
  Features features = fragments();
  EXPECT_FALSE(sdpa_fragments({384, 128, 32, 32, DType::f32}, features)) << "a device without the feature";
  features.bits |= bit(Feature::split);
  const auto many = sdpa_fragments({384, 128, 32, 32, DType::f32}, features);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->rows(), 128u);
  EXPECT_EQ(many->shared, 128 * 5u)
      << "both parts of keys and values, and as much of the sums; queries go to registers";
  const auto alone = sdpa_fragments({32, 128, 32, 32, DType::f32}, features);
  EXPECT_EQ(alone->rows(), 16u);
  EXPECT_EQ(alone->key_parts, 4u);
  EXPECT_EQ(sdpa_fragments({12, 128, 32, 32, DType::f32}, features)->key_parts, 8u);
  const auto middle = sdpa_fragments({48, 128, 32, 32, DType::f32}, features);
  EXPECT_EQ(middle->rows(), 64u);
  EXPECT_EQ(middle->keys, 32u);
  EXPECT_FALSE(sdpa_fragments({8, 128, 128, 160, DType::f32}, features)) << "too many registers";
  EXPECT_FALSE(sdpa_fragments({12, 128, 32, 32, DType::f32, true}, features)) << "caches of bytes";
  EXPECT_FALSE(sdpa_matrices({384, 128, 32, 32, DType::f32}, features));
}

TEST(SdpaKernel, LargeHeadsAsTwoHalves) {
  Features features = fragments();
  features.bits |= bit(Feature::split);
  const auto prompt = sdpa_fragments({32, 512, 128, 128, DType::f32}, features);
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->rows(), 128u);
  EXPECT_EQ(prompt->keys, 32u);
  EXPECT_EQ(prompt->key_parts, 1u);
  EXPECT_EQ(prompt->shared, 2 * 32 * 34u) << "both parts of keys and values; queries go to registers";
  const auto vit = sdpa_fragments({64, 257, 80, 80, DType::f32}, features);
  ASSERT_TRUE(vit);
  EXPECT_EQ(vit->rows(), 128u);
  EXPECT_EQ(vit->shared, 2 * 32 * 22u);
  const auto few = sdpa_fragments({16, 257, 80, 80, DType::f32}, features);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->rows(), 64u) << "workgroups for more of the device";
  EXPECT_EQ(few->key_parts, 1u);
  EXPECT_EQ(sdpa_fragments({32, 9, 128, 128, DType::f32}, features)->rows(), 64u) << "less would hold more keys each";
  features.max_shared_bytes = 32768;
  EXPECT_FALSE(sdpa_fragments({64, 257, 128, 128, DType::f32}, features)) << "32 keys and values do not fit";
  EXPECT_TRUE(sdpa_fragments({64, 257, 80, 80, DType::f32}, features));
}

// Every choice fits the device, on the baseline and on others.
TEST(SdpaKernel, Fits) {
  Features splitting = fragments();
  splitting.bits |= bit(Feature::split);
  for (const Features& features : {baseline_features(), gpu(), fragments(), splitting}) {
    for (const int64_t rows : {1, 7, 8, 17, 128, 5000}) {
      for (const int64_t e : {1, 8, 31, 64, 128, 160, 256}) {
        for (const int64_t ev : {1, 40, 128, 256}) {
          for (const int64_t heads : {1, 12, 1000}) {
            const SdpaShape shape{heads, rows, e, ev, features.has(Feature::split) ? DType::f32 : DType::f16};
            EXPECT_GE(sdpa_blocks(shape, features).rows, 1u);
            if (const auto registers = sdpa_fragments(shape, features)) {
              EXPECT_LE(registers->subgroups * 32, features.max_invocations);
              EXPECT_LE(16 * registers->shared, features.max_shared_bytes);
            }
            const auto matrices = sdpa_matrices(shape, features);
            if (!matrices) continue;
            EXPECT_LE(matrices->subgroups * features.subgroup_size, features.max_invocations);
            EXPECT_LE(16 * (matrices->staged + matrices->rows() * (matrices->keys / 4 + 1)), features.max_shared_bytes);
            EXPECT_LE(matrices->shape.n * 2, matrices->keys);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace pumice::engine
