// SPDX-License-Identifier: Apache-2.0
#include "runtime/nearest.h"
#include "test/runtime/gpu.h"

namespace pumice {
namespace {

using test::error_of;
using testing::HasSubstr;

Features rich() {
  Features features = baseline_features();
  features.bits = (uint64_t{1} << kNumFeatures) - 1;
  features.subgroup_size = 32;
  features.min_subgroup_size = 8;
  features.max_subgroup_size = 64;
  return features;
}

TEST(Features, BaselineHasNothingOptional) {
  const Features features = baseline_features();
  EXPECT_EQ(features.bits, 0u);
  EXPECT_EQ(features.max_invocations, 128u);
  EXPECT_EQ(features.max_shared_bytes, 16384u);
  EXPECT_EQ(features.max_push_bytes, 128u);
}

TEST(Features, TakesAwayAndGivesBack) {
  EXPECT_FALSE(pumice::apply(rich(), "-coopmat,-int_dot").has(Feature::coopmat));
  EXPECT_FALSE(pumice::apply(rich(), "-coopmat, -int_dot").has(Feature::int_dot));
  EXPECT_TRUE(pumice::apply(rich(), "-coopmat").has(Feature::float16));
  EXPECT_EQ(pumice::apply(rich(), "none").bits, 0u);
  EXPECT_EQ(pumice::apply(rich(), "none,+int8").bits, bit(Feature::int8));
  EXPECT_EQ(pumice::apply(baseline_features(), "none,+int8").bits, 0u) << "what the device lacks cannot be given";
  EXPECT_EQ(pumice::apply(rich(), "").bits, rich().bits);
}

TEST(Features, EveryNameIsKnown) {
  for (uint32_t i = 0; i < kNumFeatures; ++i) {
    const auto feature = static_cast<Feature>(i);
    EXPECT_FALSE(pumice::apply(rich(), std::string("-") + name(feature)).has(feature)) << name(feature);
  }
}

TEST(Features, UnknownNameGetsTheNearest) {
  const Error error = error_of([] { pumice::apply(rich(), "-copmat"); });
  EXPECT_EQ(error.code(), Code::InvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("unknown feature 'copmat': did you mean 'coopmat'?"));
  EXPECT_EQ(error_of([] { pumice::apply(rich(), "coopmat"); }).code(), Code::InvalidArgument);
  EXPECT_EQ(error_of([] { pumice::apply(rich(), "-"); }).code(), Code::InvalidArgument);
  EXPECT_THAT(error_of([] { pumice::apply(rich(), "-\x1b[31m"); }).what(), testing::Not(HasSubstr("\x1b")));
}

TEST(Features, SubgroupIsForcedWithinRange) {
  Features cpu = rich();
  cpu.cpu = true;
  EXPECT_FALSE(pumice::apply(cpu, "like_gpu").cpu);
  EXPECT_EQ(pumice::apply(rich(), "subgroup=8").subgroup_size, 8u);
  for (const char* bad : {"subgroup=4", "subgroup=128", "subgroup=12", "subgroup=", "subgroup=8x", "subgroup=-8"}) {
    EXPECT_EQ(error_of([&] { pumice::apply(rich(), bad); }).code(), Code::InvalidArgument) << bad;
  }
  EXPECT_EQ(error_of([] { pumice::apply(rich(), "-subgroup_size_control,subgroup=8"); }).code(), Code::InvalidArgument);
}

TEST(Features, RunsWhatItHas) {
  Shader shader = test::kAdd;
  EXPECT_TRUE(baseline_features().runs(shader));
  shader.features = bit(Feature::int8) | bit(Feature::coopmat);
  EXPECT_FALSE(pumice::apply(rich(), "-int8").runs(shader));
  EXPECT_TRUE(rich().runs(shader));
}

TEST(Nearest, EditDistance) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(nearest("flot16", std::vector<std::string_view>{"int8", "float16"}), "float16");
}

}  // namespace
}  // namespace pumice
