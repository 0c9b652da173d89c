// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/channels_last_kernels.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/conv/depthwise_norm.h"
#include "ops/conv/kernels.h"
#include "ops/conv/split_tiles.h"

namespace pumice::engine {
namespace {

Features gpu() {
  Features features = baseline_features();
  features.max_invocations = 1024;
  features.max_shared_bytes = 49152;
  features.subgroup_size = 32;
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16, Feature::int8})
    features.bits |= bit(feature);
  features.matrix_f16[0] = {16, 16, 16};
  features.matrix_s8[0] = {16, 16, 32};
  return features;
}

TEST(PickConv, NothingWithoutMatrices) {
  Features features = gpu();
  features.bits = 0;
  EXPECT_EQ(pick_conv({256, 3136, 288}, features).kernel, nullptr);
  features = gpu();
  features.matrix_s8[0] = {};
  EXPECT_EQ(pick_conv({256, 3136, 288, DType::i8}, features).kernel, nullptr);
  features = gpu();
  features.cpu = true;
  EXPECT_EQ(pick_conv({256, 3136, 288}, features).kernel, nullptr);
}

TEST(PickConv, LargeTilesForManyOutputsSplitsForFew) {
  const ConvPick many = pick_conv({256, 100352, 288}, gpu());
  EXPECT_EQ(many.kernel->name, "conv128x128");
  EXPECT_EQ(many.splits, 1u);
  EXPECT_EQ(pick_conv({64, 100352, 72}, gpu()).kernel->name, "conv64x128");
  EXPECT_EQ(pick_conv({256, 100352, 144, DType::i8}, gpu()).kernel->name, "conv8_128x128");
  EXPECT_GT(pick_conv({512, 49, 576}, gpu()).splits, 4u);
  EXPECT_EQ(pick_conv({512, 49, 8}, gpu()).splits, 1u);
}

TEST(PickConv, TheLastOfFewSplitsOfSmallTilesAddsTheSums) {
  const ConvKernel small{"", DType::i8, {32, 32, 16, 16}}, large{"", DType::i8, {128, 128, 64, 32}};
  EXPECT_TRUE(last_adds({&small, 9}));
  EXPECT_FALSE(last_adds({&small, 16}));
  EXPECT_TRUE(last_adds({&small, 1}));
  EXPECT_FALSE(last_adds({&large, 2}));
}

// Of fp16 the smallest only where no other is held: in subgroups of 8 and few registers.
TEST(PickConv, OneMatrixInSubgroupsOfEight) {
  Features intel = gpu();
  intel.subgroup_size = intel.min_subgroup_size = 8;
  intel.matrix_f16[0] = {8, 8, 16}, intel.matrix_s8[0] = {8, 8, 32};
  for (const bool few : {false, true}) {
    intel.few_registers = few;
    for (const int64_t pixels : {49, 100352}) {
      const bool smallest = pick_conv({512, pixels, 576}, intel).kernel->name == std::string_view("conv16x32");
      EXPECT_EQ(smallest, few) << pixels;
      const ConvPick bytes = pick_conv({512, pixels, 288, DType::i8}, intel);
      EXPECT_TRUE(!few || bytes.kernel->name == std::string_view("conv8_16x32")) << pixels;
    }
  }
}

TEST(PickConv, DotProductsWhereThereAreNoMatrices) {
  Features features = gpu();
  features.bits |= bit(Feature::int_dot);
  EXPECT_FALSE(pick_conv({256, 100352, 144, DType::i8}, features).kernel->family == ConvFamily::dot);
  features.matrix_f16[0] = features.matrix_s8[0] = {};
  EXPECT_EQ(pick_conv({256, 100352, 144, DType::i8}, features).kernel->name, "conv_dot64x64");
  EXPECT_EQ(pick_conv({20, 300, 9, DType::i8}, features).kernel->name, "conv_dot32x32");
  EXPECT_GT(pick_conv({512, 49, 288, DType::i8}, features).splits, 1u);
  Features few = features;
  few.few_registers = true;
  EXPECT_EQ(pick_conv({256, 100352, 144, DType::i8}, few).kernel->name, "conv_dot32x32");
  few.subgroup_size = few.min_subgroup_size = few.max_subgroup_size = 16;  // Mali
  EXPECT_EQ(pick_conv({256, 100352, 144, DType::i8}, few).kernel->name, "conv_dot2x4");
  EXPECT_EQ(pick_conv({256, 100352, 288}, features).kernel, nullptr) << "of floats";
  features.kernel = "conv_dot32x32";
  EXPECT_EQ(pick_conv({256, 100352, 144, DType::i8}, features).kernel->name, "conv_dot32x32");
  features.bits &= ~bit(Feature::int_dot);
  EXPECT_THROW(pick_conv({256, 100352, 144, DType::i8}, features), Error);
}

// For every shape the picked kernel fits the device, and no split is empty.
TEST(PickConv, AlwaysRuns) {
  for (const MatrixShape& shape : {MatrixShape{16, 16, 16}, MatrixShape{8, 8, 16}, MatrixShape{8, 16, 16}}) {
    for (const uint32_t subgroup : {8u, 16u, 32u, 64u}) {
      Features features = gpu();
      if (subgroup == 16) features.bits |= bit(Feature::int_dot);
      features.max_shared_bytes = 32768;
      features.max_invocations = 256;
      features.subgroup_size = subgroup;
      features.matrix_f16[0] = features.matrix_s8[0] = shape;
      for (const int64_t channels : {1, 17, 64, 300}) {
        for (const int64_t pixels : {1, 49, 3000}) {
          for (const int64_t k_groups : {1, 9, 300, 5000}) {
            for (const DType x : {DType::f16, DType::i8}) {
              const ConvPick pick = pick_conv({channels, pixels, k_groups, x}, features);
              if (pick.kernel == nullptr) continue;
              EXPECT_EQ(pick.kernel->x, x);
              EXPECT_LE(conv_shared_bytes(*pick.kernel, features), features.max_shared_bytes);
              EXPECT_LE(conv_lanes(*pick.kernel, features), features.max_invocations);
              EXPECT_GE(pick.splits, 1u);
              EXPECT_LE(pick.splits, (k_groups + 3) / 4);
            }
          }
        }
      }
    }
  }
}

Features fragments() {
  Features features = gpu();
  for (const Feature feature : {Feature::fragments, Feature::subgroup_arithmetic, Feature::subgroup_shuffle})
    features.bits |= bit(feature);
  features.compute_units = 132;
  return features;
}

TEST(PickConv, FragmentsForFewPixels) {
  const Features features = fragments();
  const ConvPick few = pick_conv({256, 196, 128}, features);
  EXPECT_EQ(few.kernel->name, "conv_gemvf16");
  EXPECT_EQ(few.splits, 1u);
  EXPECT_EQ(fragment_lanes(*few.kernel, {256, 196, 128}, features) % 32, 0u);
  EXPECT_EQ(pick_conv({1024, 196, 32}, features).kernel->name, "conv_gemvf16x2");
  EXPECT_EQ(pick_conv({256, 100352, 288}, features).kernel->name, "conv128x128");
  EXPECT_EQ(pick_conv({256, 196, 128, DType::i8}, features).kernel->family, ConvFamily::matrix);
}

// Once the weight is packed, only kernels that read it so are left.
TEST(PickConv, GoesByThePackedWeight) {
  using Packing = ConvShape::Packing;
  Features features = fragments();
  EXPECT_EQ(pick_conv({256, 196, 128, DType::f16, Packing::chunks}, features).kernel->family, ConvFamily::matrix);
  EXPECT_EQ(pick_conv({256, 100352, 288, DType::f16, Packing::fragments}, features).kernel->name, "conv_gemvf16x2");
  features.kernel = "conv128x128";
  EXPECT_EQ(pick_conv({256, 196, 128}, features).kernel->name, "conv128x128");
  EXPECT_EQ(pick_conv({256, 196, 128, DType::f16, Packing::fragments}, features).kernel->name, "conv_gemvf16");
  features.kernel = "conv_gemvf8";
  EXPECT_EQ(pick_conv({256, 196, 128}, features).kernel->name, "conv_gemvf8");
  EXPECT_EQ(pick_conv({256, 196, 128, DType::f16, Packing::chunks}, features).kernel->family, ConvFamily::matrix);
}

TEST(PickConv, SubgroupsOfFragmentsShareTheirTilesEvenly) {
  const Features features = fragments();
  const ConvShape shape{256, 196, 288};  // 36 tiles in 104 workgroups
  EXPECT_EQ(fragment_lanes(*pick_conv(shape, features).kernel, shape, features), 32u * 18);
  const ConvShape narrow{256, 196, 9};
  EXPECT_EQ(fragment_lanes(*pick_conv(shape, features).kernel, narrow, features), 32u * 2);
}

TEST(ConvFacts, TapsOfARowAreOneWhereAPixelWouldBeMostlyPadding) {
  ConvFacts facts{.x = DType::f16, .channels = 64, .in_channels = 3, .patches = {.kernel = {7, 7}}};
  EXPECT_EQ(facts.row_taps(), 7);
  EXPECT_EQ(facts.shape().k_groups, 7 * 3) << "of 21 columns";
  facts.x = DType::u8;
  EXPECT_EQ(facts.shape().k_groups, 7 * 2);
  facts.in_channels = 8;
  EXPECT_EQ(facts.row_taps(), 7);
  facts.in_channels = 9;
  EXPECT_EQ(facts.row_taps(), 1) << "of 16 bytes";
  facts.in_channels = 3;
  facts.patches.kernel = {3, 1};
  EXPECT_EQ(facts.row_taps(), 1) << "there is one";
  facts.patches.kernel = {1, 3};
  EXPECT_EQ(facts.row_taps(), 3);
  facts.groups = 3;
  EXPECT_EQ(facts.row_taps(), 1);
  facts.groups = 1;
  facts.patches.transposed = true;
  EXPECT_EQ(facts.row_taps(), 1);
}

TEST(PickConv, FragmentsOfBytes) {
  Features features = fragments();
  const auto pick = [&](int64_t channels, int64_t pixels, int64_t k_groups) {
    return pick_conv({channels, pixels, k_groups, DType::i8}, features).kernel->name;
  };
  EXPECT_EQ(pick(256, 196, 64), "conv8_32x32") << "fragments of fp16 are others";
  features.bits |= bit(Feature::fragments_int8);
  EXPECT_EQ(pick(256, 196, 64), "conv8_gemvf16x2");
  EXPECT_EQ(pick(512, 49, 288), "conv8_gemvf8x2");
  EXPECT_EQ(pick(1000, 1, 128), "conv8_gemvf8");
  EXPECT_EQ(pick(1024, 196, 16), "conv8_32x32") << "few columns";
  EXPECT_EQ(pick(256, 100352, 144), "conv8_128x128") << "many pixels";
  using Packing = ConvShape::Packing;
  EXPECT_EQ(pick_conv({256, 100352, 144, DType::i8, Packing::fragments}, features).kernel->name, "conv8_gemvf16x2");
  EXPECT_EQ(pick_conv({256, 196, 64, DType::i8, Packing::chunks}, features).kernel->family, ConvFamily::matrix);
  features.bits &= ~bit(Feature::int8);
  EXPECT_EQ(pick_conv({256, 196, 64, DType::i8}, features).kernel, nullptr);
}

// A workgroup fits the device, and no subgroup is without a tile.
TEST(PickConv, SlotsOfFragments) {
  Features features = fragments();
  features.bits |= bit(Feature::fragments_int8);
  for (const uint32_t invocations : {128u, 1024u}) {
    features.max_invocations = invocations;
    for (const ConvKernel& kernel : channels_last_kernels()) {
      if (kernel.family != ConvFamily::fragments) continue;
      for (const int64_t pixels : {1, 49, 3000, 100352}) {
        for (const int64_t k_groups : {1, 36, 144, 5000}) {
          const ConvShape shape{300, pixels, k_groups, kernel.x};
          const uint32_t lanes = fragment_lanes(kernel, shape, features);
          EXPECT_TRUE(lanes >= 32 && lanes <= invocations && lanes % 32 == 0) << kernel.name << " " << lanes;
          if (is_split_tile(kernel)) continue;
          EXPECT_LE(lanes / 32 * kernel.tile.bm * kernel.tile.bn * 5, features.max_shared_bytes) << kernel.name;
          EXPECT_TRUE(kernel.x != DType::i8 || lanes / 32 <= (k_groups + 7) / 8) << kernel.name;
        }
      }
    }
  }
}

TEST(PickConv, Fp32AsTwoHalves) {
  Features features = fragments();
  EXPECT_EQ(pick_conv({256, 196, 128, DType::f32}, features).kernel, nullptr) << "the switch is off";
  features.bits |= bit(Feature::split);
  for (const int64_t pixels : {1, 196, 392})
    EXPECT_EQ(pick_conv({256, pixels, 128, DType::f32}, features).kernel->name, "split_conv_gemvf8x2") << pixels;
  EXPECT_EQ(pick_conv({256, 100352, 128, DType::f32}, features).kernel->name, "split_conv64x32");
  features.bits &= ~bit(Feature::subgroup_shuffle);
  EXPECT_EQ(pick_conv({256, 196, 128, DType::f32}, features).kernel, nullptr);
}

// Groups of 32 columns that slots share are whole, and the workgroup fits the device.
TEST(PickConv, TilesOfManyPixels) {
  Features features = fragments();
  features.bits |= bit(Feature::split);
  const auto pick = [&](int64_t channels, int64_t pixels, int64_t k_groups) {
    return pick_conv({channels, pixels, k_groups, DType::f32}, features).kernel->name;
  };
  EXPECT_EQ(pick(128, 784, 144), "split_conv_gemvf8x2") << "50 workgroups";
  EXPECT_EQ(pick(256, 196, 288), "split_conv_gemvf8x2") << "28 workgroups";
  EXPECT_EQ(pick(64, 3136, 72), "split_conv_gemvf8x2") << "98 workgroups";
  EXPECT_EQ(pick(256, 3136, 8), "split_conv64x32") << "many workgroups of two chunks";
  EXPECT_EQ(pick(64, 12544, 21), "split_conv64x32");
  EXPECT_EQ(pick(64, 100352, 72), "split_conv64x32");
  EXPECT_EQ(pick(512, 392, 576), "split_conv64x32");
  EXPECT_EQ(pick(128, 25088, 144), "split_conv128x32");
  EXPECT_EQ(pick(80, 100352, 72), "split_conv_gemvf8x2") << "a tile mostly empty";
  for (const ConvKernel& kernel : channels_last_kernels()) {
    if (!is_split_tile(kernel)) continue;
    EXPECT_EQ(unsupported_reason(kernel, features), "");
    for (const int64_t pixels : {1, 392, 100352}) {
      for (const int64_t k_groups : {1, 21, 72, 198, 576}) {
        const uint32_t lanes = split_tile_lanes(kernel, {512, pixels, k_groups, DType::f32}, features);
        const uint32_t slots = lanes / 32 / kernel.tile.subtiles();
        EXPECT_LE(lanes, features.max_invocations);
        EXPECT_EQ((k_groups + 3) / 4 % slots, 0) << kernel.name << " " << k_groups;
        EXPECT_TRUE(slots == 1 || pixels < 100352) << kernel.name;
      }
    }
  }
  features.kernel = "split_conv128x32";
  EXPECT_EQ(pick(64, 196, 72), "split_conv128x32");
  features.max_shared_bytes = 16384;
  EXPECT_THROW(pick(64, 196, 72), Error);
}

TEST(PickConv, TakesANameAndRefusesOthers) {
  Features features = gpu();
  features.kernel = "conv64x64";
  EXPECT_EQ(pick_conv({256, 100352, 288}, features).kernel->name, "conv64x64");
  EXPECT_EQ(pick_conv({256, 100352, 144, DType::i8}, features).kernel->name, "conv8_128x128");
  features.kernel = "conv_tiled";
  EXPECT_EQ(pick_conv({256, 100352, 288}, features).kernel, nullptr);
  features.kernel = "conv_tiled2x4";
  EXPECT_EQ(pick_conv({256, 100352, 288}, features).kernel, nullptr);
  for (const SmallConvTile& each : small_conv_tiles()) EXPECT_TRUE(is_conv_kernel(each.kernel));
  features.kernel = "conv8_16x32";
  EXPECT_THROW(pick_conv({256, 100352, 144, DType::i8}, features), Error);
  EXPECT_TRUE(is_conv_kernel("conv8_16x32"));
  EXPECT_TRUE(is_conv_kernel("conv_dot32x32"));
  EXPECT_FALSE(is_conv_kernel("gemv1"));
}

TEST(ConvTiles, AreSmallWhereRegistersAreFewest) {
  Features features = gpu();
  const auto kernel = [&](DType x, int64_t window) {
    ConvFacts facts;
    facts.x = x, facts.channels = facts.in_channels = 64;
    facts.patches.kernel = {window, window};
    const SmallConvTile* tile = small_conv_tile(facts, features);
    return tile == nullptr ? "conv_tiled" : tile->kernel;
  };
  EXPECT_EQ(kernel(DType::f32, 3), "conv_tiled");
  features.few_registers = true;
  features.subgroup_size = features.min_subgroup_size = features.max_subgroup_size = 16;
  EXPECT_EQ(kernel(DType::f32, 3), "conv_tiled2x4");
  EXPECT_EQ(kernel(DType::f32, 7), "conv_tiled1x4");
  EXPECT_EQ(kernel(DType::f16, 7), "conv_tiled2x4");
  EXPECT_EQ(kernel(DType::u8, 3), "conv_tiled1x4");
  features.kernel = "conv_tiled";
  EXPECT_EQ(kernel(DType::f32, 3), "conv_tiled");
  features.kernel = "conv_tiled1x4";
  EXPECT_EQ(kernel(DType::f32, 3), "conv_tiled1x4");
  features.kernel = "";
  features.max_invocations = 128;
  EXPECT_EQ(kernel(DType::f32, 3), "conv_tiled");
  for (const SmallConvTile& each : small_conv_tiles()) EXPECT_EQ(each.tile.subtiles(), 256u) << each.kernel;
}

TEST(DepthwiseNorm, FitsSharedMemory) {
  Patches patches{};
  patches.kernel[0] = patches.kernel[1] = 7;
  Features features = gpu();
  for (const uint32_t bytes : {16384u, 32768u, 49152u}) {
    features.max_shared_bytes = bytes;
    for (const uint32_t vec4s : {1u, 15u, 16u, 17u, 96u, 192u, 383u, 384u, 768u}) {
      for (const uint32_t columns : {1u, 2u, 4u}) {
        const DepthwiseNormWork work = depthwise_norm_work(patches, vec4s, vec4s, columns, features);
        EXPECT_LE(work.shared_bytes(vec4s, columns), bytes) << vec4s << " x " << columns;
        EXPECT_EQ(work.strips % vec4s, 0u);
      }
    }
  }
  features.max_shared_bytes = 49152;
  EXPECT_GT(depthwise_norm_work(patches, 192, 192, 1, features).parts, 1u);
}

}  // namespace
}  // namespace pumice::engine
