// SPDX-License-Identifier: Apache-2.0
// Kernels where registers are few.
#include "ops/linear/registers.h"
#include "ops/linear/gemv_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "ops/conv/channels_last_kernels.h"
#include "ops/linear/experts.h"
#include "ops/linear/int8_kernels.h"
#include "ops/linear/kernels.h"
#include "ops/linear/pick.h"
#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

TEST(Registers, FewHoldFewSums) {
  const auto tile = [](const Features& features, uint32_t sums) { return pick_tile(1, 512, 14336, features, sums); };
  Features few = gpu();
  few.few_registers = true;
  Features wide = few;
  wide.subgroup_size = 128, wide.bits |= bit(Feature::storage8);
  EXPECT_EQ(tile(few, 1), (Tile{64, 64, 8, 4}));
  EXPECT_EQ(tile(few, 2), (Tile{32, 64, 4, 4}));
  EXPECT_EQ(tile(wide, 1), (Tile{64, 128, 8, 8}));
  EXPECT_EQ(tile(wide, 2), (Tile{64, 64, 8, 4}));
  EXPECT_EQ(tile(gpu(), 2), (Tile{64, 128, 8, 8}));
  const LinearKernel& kernel = linear_kernel("gemv1x2");
  EXPECT_EQ(gemv_lanes(kernel, 1, 1024, 4096, gpu()), 1024u);
  for (const Features& features : {few, wide})
    EXPECT_EQ(gemv_lanes(kernel, 1, 1024, 4096, features), 512u) << features.subgroup_size;
}

// Sums of whole numbers, and where groups are scaled, as many of floats; of matrices, the part of each lane.
TEST(Registers, FewHoldFewSumsOfIntegers) {
  const auto name = [](const Features& features, uint32_t group) {
    return pick_linear({512, 14336, 4096, group, WeightType::q4, DType::f32, false, true}, features).name;
  };
  Features dots = gpu();
  dots.bits = (dots.bits | bit(Feature::int_dot)) & ~(bit(Feature::coopmat) | bit(Feature::fragments));
  EXPECT_EQ(name(dots, 32), "dot_tile64x128");
  EXPECT_EQ(name(dots, 0), "dot_tile64x128");
  dots.few_registers = true;
  EXPECT_EQ(name(dots, 32), "dot_tile32x64");
  EXPECT_EQ(name(dots, 0), "dot_tile64x64");
  Features small = dots;
  small.bits |= bit(Feature::coopmat) | bit(Feature::memory_model) | bit(Feature::int8) | bit(Feature::float16);
  small.matrix_s8 = {MatrixShape{8, 8, 32}}, small.subgroup_size = small.min_subgroup_size = 8;
  EXPECT_EQ(name(small, 32), "int8g_16x32");
  EXPECT_EQ(name(small, 0), "int8_16x32");
  small.subgroup_size = small.min_subgroup_size = 16;
  EXPECT_EQ(name(small, 0), "int8_32x32");
  small.matrix_s8 = {MatrixShape{8, 16, 32}};  // Battlemage's
  EXPECT_EQ(name(small, 0), "int8_32x32");
  EXPECT_EQ(name(small, 32), "int8g_16x32n16");
  small.matrix_s8 = {MatrixShape{8, 8, 32}};
  small.subgroup_size = small.min_subgroup_size = 8;
  small.few_registers = false;
  EXPECT_EQ(name(small, 32), "int8g_64x128");
}

// Compilers would spill most of them for seconds, also when a program forces the kernel or `pumice tune` tries it.
TEST(Registers, NoKernelKeepsManyTimesTheSumsThatTheyHold) {
  Features intel = gpu();
  intel.bits |= bit(Feature::int_dot) | bit(Feature::coopmat) | bit(Feature::memory_model) | bit(Feature::int8) |
                bit(Feature::float16);
  intel.few_registers = true, intel.subgroup_size = intel.min_subgroup_size = 8;
  intel.matrix_s8 = {MatrixShape{8, 8, 32}}, intel.matrix_f16 = {MatrixShape{8, 8, 16}};
  Features roomy = intel;
  roomy.few_registers = false;
  const auto reason = [](const char* kernel, uint32_t group, const Features& features) {
    const LinearShape integers = {512, 14336, 4096, group, WeightType::q4, DType::f32, false, true};
    const LinearShape halves = {512, 14336, 4096, group, WeightType::q4, DType::f16, true};
    const LinearKernel& named = linear_kernel(kernel);
    return unsupported_reason(named, named.family == Family::matrix ? halves : integers, features);
  };
  EXPECT_EQ(reason("dot_tile64x128", 32, intel),
            "keeps 128 sums an invocation, where this GPU has registers for about 32");
  EXPECT_EQ(reason("dot_tile64x128", 0, intel), "");
  EXPECT_EQ(reason("dot_tile64x64", 32, intel), "");
  for (const auto& [kernel, group] :
       {std::pair{"int8g_64x128", 32u}, {"int8_128x128", 0u}, {"int8_64x64", 0u}, {"matrix64x64", 32u}}) {
    EXPECT_NE(reason(kernel, group, intel).find("sums an invocation"), std::string::npos) << kernel;
    EXPECT_EQ(reason(kernel, group, roomy), "") << kernel;
  }
  for (const auto& [kernel, group] : {std::pair{"int8g_32x32", 32u}, {"int8_32x32", 0u}, {"matrix32x32", 32u}})
    EXPECT_EQ(reason(kernel, group, intel), "") << kernel;
}

// Likewise kernels of lanes where registers are fewest, by Mali's features and subgroups; what is picked there, and
// on other GPUs of few, is not among them.
TEST(Registers, TheFewestRefuseTheLargestTiles) {
  Features mali = gpu();
  mali.bits |= bit(Feature::int_dot);
  mali.few_registers = true, mali.subgroup_size = mali.min_subgroup_size = mali.max_subgroup_size = 16;
  Features intel = mali, adreno = mali;
  intel.max_subgroup_size = 32, adreno.subgroup_size = adreno.max_subgroup_size = 128;
  const auto linear = [](const char* kernel, const Features& features) {
    return unsupported_reason(linear_kernel(kernel), {512, 14336, 4096, 32, WeightType::q4, DType::f32}, features);
  };
  const auto conv = [](std::string_view kernel, const Features& features) {
    return unsupported_reason(*std::ranges::find(channels_last_kernels(), kernel, &ConvKernel::name), features);
  };
  const char* said = "keeps 64 sums an invocation, where this GPU has registers for about 16";
  for (const char* kernel : {"tile128x128", "tile64x128"}) EXPECT_EQ(linear(kernel, mali), said) << kernel;
  for (const char* kernel : {"tile64x64", "tile32x64", "tile2x4"}) EXPECT_EQ(linear(kernel, mali), "") << kernel;
  EXPECT_EQ(conv("conv_dot64x64", mali), said);
  for (const char* kernel : {"conv_dot32x32", "conv_dot2x4"}) EXPECT_EQ(conv(kernel, mali), "") << kernel;
  for (const Features& features : {intel, adreno}) {
    for (const char* kernel : {"tile128x128", "tile64x128"})
      EXPECT_EQ(linear(kernel, features), "") << kernel << features.subgroup_size;
    EXPECT_EQ(conv("conv_dot64x64", features), "") << features.subgroup_size;
  }
  mali.kernel = "tile128x128";
  EXPECT_THROW(choose_linear({512, 14336, 4096, 32, WeightType::q4, DType::f32}, mali), Error);
}

// Those of Adreno 630, by the features and subgroups of its profile.
TEST(Registers, TheFewestHoldTwoRowsOfAPass) {
  Features adreno = gpu();
  adreno.bits = bit(Feature::float16) | bit(Feature::storage16) | bit(Feature::storage8);
  adreno.cpu = false;
  adreno.subgroup_size = adreno.max_subgroup_size = 128, adreno.min_subgroup_size = 64;
  Features least = adreno;
  least.bits &= ~(bit(Feature::storage16) | bit(Feature::storage8));
  adreno.guess_registers();
  least.guess_registers();
  EXPECT_TRUE(adreno.few_registers && least.few_registers);
  const auto rows = [](const Features& features, int64_t m, DType dtype) {
    const LinearKernel& kernel = pick_linear({m, 384, 384, 32, WeightType::q4, dtype}, features);
    EXPECT_EQ(kernel.family, Family::gemv);
    EXPECT_TRUE(holds_pass(kernel.rows * kernel.panels, dtype, features)) << kernel.name;
    return kernel.rows;
  };
  for (const DType dtype : {DType::f32, DType::f16}) {
    const uint32_t most = dtype == DType::f16 ? 4 : 2;
    for (const int64_t m : {1, 2, 3, 8, 16}) {
      const uint32_t before = rows(adreno, m, dtype);
      EXPECT_EQ(rows(least, m, dtype), std::min(before, most)) << m;
    }
  }
  EXPECT_EQ(pick_linear({1, 14336, 4096, 32, WeightType::q4, DType::f32}, least).name, "gemv1x2");
  EXPECT_EQ(pick_linear({2, 14336, 4096, 32, WeightType::q4, DType::f32}, least).name, "gemv2");
  EXPECT_EQ(pick_linear({2, 14336, 4096, 32, WeightType::q4, DType::f32}, adreno).name, "gemv2x2");
  const LinearKernel& gemv1 = linear_kernel("gemv1");
  EXPECT_EQ(gemv_lanes(gemv1, 1, 1024, 4096, adreno), 512u);
  EXPECT_EQ(gemv_lanes(gemv1, 1, 1024, 4096, least), 256u);
  EXPECT_EQ(pick_tile(1, 512, 14336, adreno), (Tile{64, 128, 8, 8}));
  EXPECT_EQ(pick_tile(1, 512, 14336, least), (Tile{64, 64, 8, 4}));
}

// Adreno 660 has no 8-bit storage, and fewer registers than Adreno 630; also where a driver accelerates packed dot
// products, which Mesa's does not.
TEST(Registers, WideSubgroupsDivideThem) {
  Features adreno = gpu();
  adreno.bits = bit(Feature::float16) | bit(Feature::storage16) | bit(Feature::int_dot);
  adreno.cpu = false;
  adreno.subgroup_size = adreno.max_subgroup_size = 128, adreno.min_subgroup_size = 64;
  adreno.guess_registers();
  EXPECT_TRUE(adreno.few_registers && has_fewest_registers(adreno));
  EXPECT_EQ(pick_tile(1, 512, 14336, adreno), (Tile{64, 64, 8, 4}));
  EXPECT_TRUE(holds_pass(2, DType::f16, adreno));
  EXPECT_FALSE(holds_pass(4, DType::f16, adreno));
  EXPECT_EQ(most_pass_lanes(adreno), 256u);
  Features amd = adreno;
  amd.subgroup_size = amd.max_subgroup_size = 64, amd.min_subgroup_size = 32;
  amd.guess_registers();
  EXPECT_FALSE(amd.few_registers || has_fewest_registers(amd));
}

// Skylake, by the features and subgroups of its profile.
TEST(Registers, SmallSubgroupsHoldOnePanelOfInt8Rows) {
  Features skylake = gpu();
  skylake.bits = bit(Feature::float16) | bit(Feature::storage16) | bit(Feature::storage8);
  skylake.cpu = false;
  skylake.subgroup_size = skylake.min_subgroup_size = 8, skylake.max_subgroup_size = 32;
  skylake.max_invocations = 256, skylake.compute_units = 0;
  skylake.guess_registers();
  EXPECT_TRUE(skylake.few_registers);
  const auto picked = [&](WeightType weight, DType dtype, const Features& features) {
    const LinearKernel& kernel = pick_linear({16, 1536, 1024, 32, weight, dtype}, features);
    EXPECT_EQ(kernel.family, Family::gemv);
    return kernel.panels;
  };
  EXPECT_EQ(picked(WeightType::q8, DType::f32, skylake), 1u);
  EXPECT_EQ(picked(WeightType::q4, DType::f32, skylake), 2u);
  EXPECT_EQ(picked(WeightType::q8, DType::f16, skylake), 2u);
  Features apple = skylake;
  apple.subgroup_size = apple.min_subgroup_size = 32;
  apple.guess_registers();
  EXPECT_EQ(picked(WeightType::q8, DType::f32, apple), 2u);
}

// Mali, by the features and subgroups of its profile: subgroups of 16 alone, with packed dot products.
TEST(Registers, SubgroupsOfSixteenAloneHoldTheFewestSums) {
  Features mali = gpu();
  mali.bits = bit(Feature::float16) | bit(Feature::storage16) | bit(Feature::storage8) | bit(Feature::int_dot);
  mali.cpu = false;
  mali.subgroup_size = mali.min_subgroup_size = mali.max_subgroup_size = 16;
  mali.guess_registers();
  EXPECT_TRUE(mali.few_registers && has_fewest_registers(mali));
  EXPECT_EQ(pick_tile(1, 512, 14336, mali), (Tile{32, 64, 4, 4}));
  EXPECT_EQ(pick_tile(1, 512, 14336, mali, 1, true), (Tile{32, 64, 2, 4}));
  for (const DType dtype : {DType::f32, DType::f16}) {
    EXPECT_TRUE(holds_pass(2, dtype, mali));
    EXPECT_FALSE(holds_pass(4, dtype, mali));
  }
  const auto picks = [](Features features) {
    const LinearShape shape = {512, 14336, 4096, 32, WeightType::q4, DType::f32};
    LinearShape plain = shape, bytes = shape;
    plain.weight = WeightType::f32, plain.group = 0;
    bytes.integers = true;
    std::vector<std::string_view> names;
    for (const LinearShape& each : {shape, plain, bytes}) names.push_back(pick_linear(each, features).name);
    names.push_back(pick_conv({256, 100352, 144, DType::i8}, features).kernel->name);
    return names;
  };
  EXPECT_EQ(picks(mali), (std::vector<std::string_view>{"tile2x4", "tile32x64", "dot_tile2x4", "conv_dot2x4"}));
  EXPECT_EQ(dot_gemv_depth(mali), 1u);
  EXPECT_FALSE(holds_key_and_value(32, 1, mali));
  EXPECT_EQ(most_listed_rows(DType::f16, mali), 1u);
  Features small = mali;  // whose workgroups do not have 256 invocations
  small.max_invocations = 128;
  EXPECT_EQ(picks(small), (std::vector<std::string_view>{"tile32x64", "tile32x64", "dot_tile32x64", "conv_dot2x4"}));
  Features intel = mali;  // which has subgroups of 32, too
  intel.max_subgroup_size = 32;
  EXPECT_EQ(pick_tile(1, 512, 14336, intel), (Tile{64, 64, 8, 4}));
  EXPECT_EQ(pick_tile(1, 512, 14336, intel, 1, true), (Tile{64, 64, 8, 4}));
  EXPECT_EQ(picks(intel), (std::vector<std::string_view>{"tile64x64", "tile64x64", "dot_tile32x64", "conv_dot32x32"}));
  EXPECT_EQ(dot_gemv_depth(intel), 4u);
  EXPECT_EQ(most_listed_rows(DType::f16, intel), 4u);
  EXPECT_TRUE(holds_key_and_value(160, 1, intel));
  EXPECT_FALSE(holds_key_and_value(160, 2, intel));
}

// Beside 8 rows of fp16 two tiles ahead are too many for a subgroup of 16.
TEST(Registers, FewPrefetchOneTileForManyRows) {
  Features intel = gpu();
  intel.few_registers = true, intel.subgroup_size = 16;
  EXPECT_EQ(gemv_depth(linear_kernel("gemv8"), false, intel), 1u);
  EXPECT_EQ(gemv_depth(linear_kernel("gemv4"), false, intel), 2u);
  intel.subgroup_size = 8;
  EXPECT_EQ(gemv_depth(linear_kernel("gemv8"), false, intel), 2u);
  EXPECT_EQ(gemv_depth(linear_kernel("gemv8"), false, gpu()), 2u);
  EXPECT_EQ(gemv_depth(linear_kernel("gemv1"), true, gpu()), 2u);
  Features mali = gpu();
  mali.few_registers = true, mali.subgroup_size = mali.max_subgroup_size = 16;
  EXPECT_EQ(gemv_depth(linear_kernel("gemv2"), false, mali), 1u);
  EXPECT_EQ(gemv_depth(linear_kernel("gemv1"), true, mali), 1u);  // whole tiles
  EXPECT_EQ(gemv_depth(linear_kernel("gemv1"), false, mali), 2u);
}

// One matrix a subgroup: of 8 lanes, a register of Intel's is one number of each.
TEST(Registers, SubgroupsOfEightHoldOneMatrix) {
  Features intel = gpu();
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::int8, Feature::float16})
    intel.bits |= bit(feature);
  intel.bits &= ~bit(Feature::fragments);
  intel.matrix_s8 = {MatrixShape{8, 8, 32}}, intel.matrix_f16 = {MatrixShape{8, 8, 16}};
  intel.few_registers = true, intel.subgroup_size = intel.min_subgroup_size = 8;
  const LinearShape halves = {512, 14336, 4096, 32, WeightType::q4, DType::f16, true};
  EXPECT_EQ(pick_linear(halves, intel).name, "matrix16x32");
  EXPECT_TRUE(holds_matrices({16, 32, 8, 8}, intel));
  EXPECT_FALSE(holds_matrices({32, 32, 8, 16}, intel));
  intel.subgroup_size = intel.min_subgroup_size = 16;
  EXPECT_EQ(pick_linear(halves, intel).name, "matrix32x32");
  intel.few_registers = false;
  EXPECT_EQ(pick_linear(halves, intel).name, "matrix64x64");
}

}  // namespace
}  // namespace pumice::engine
