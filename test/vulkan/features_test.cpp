// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"
#include "test/vulkan/gpu.h"
#include "vulkan/probe.h"

namespace pumice::engine {
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
  EXPECT_FALSE(pumice::engine::apply(rich(), "-coopmat,-int_dot").has(Feature::coopmat));
  EXPECT_FALSE(pumice::engine::apply(rich(), "-coopmat, -int_dot").has(Feature::int_dot));
  EXPECT_TRUE(pumice::engine::apply(rich(), "-coopmat").has(Feature::float16));
  EXPECT_EQ(pumice::engine::apply(rich(), "none").bits, 0u);
  EXPECT_EQ(pumice::engine::apply(rich(), "none,+int8").bits, bit(Feature::int8));
  EXPECT_EQ(pumice::engine::apply(baseline_features(), "none,+int8").bits, 0u)
      << "what the device lacks cannot be given";
  EXPECT_EQ(pumice::engine::apply(rich(), "").bits, rich().bits & ~kAskedFor);
}

TEST(Features, FloatAtomicsAreOffUnlessAskedFor) {
  for (const char* without :
       {"", "none", "like_gpu", "none,+int8", "+float_atomics,none", "+float_atomics,-float_atomics"})
    EXPECT_FALSE(pumice::engine::apply(rich(), without).has(Feature::float_atomics)) << without;
  for (const char* with : {"+float_atomics", "none,+float_atomics", "-coopmat, +float_atomics"})
    EXPECT_TRUE(pumice::engine::apply(rich(), with).has(Feature::float_atomics)) << with;
  EXPECT_FALSE(pumice::engine::apply(baseline_features(), "+float_atomics").has(Feature::float_atomics));
}

TEST(Features, EveryNameIsKnown) {
  for (uint32_t i = 0; i < kNumFeatures; ++i) {
    const auto feature = static_cast<Feature>(i);
    EXPECT_FALSE(pumice::engine::apply(rich(), std::string("-") + name(feature)).has(feature)) << name(feature);
  }
}

// A read beyond a binding gives zeros or something of the buffer, and ends nothing.
TEST(Features, RobustAccessIsOnUnlessSwitchedOff) {
  static VkBool32 enabled;
  const test::Hook hook([](Vk& vk) {
    static PFN_vkCreateDevice real;
    if (!vk.CreateDevice || vk.CreateDevice.pointer == real) return;
    static PFN_vkCreateDevice replaced = [](VkPhysicalDevice device, const VkDeviceCreateInfo* info,
                                            const VkAllocationCallbacks* callbacks, VkDevice* out) {
      enabled = static_cast<const VkPhysicalDeviceFeatures2*>(info->pNext)->features.robustBufferAccess;
      return real(device, info, callbacks, out);
    };
    if (vk.CreateDevice.pointer == replaced) return;
    real = vk.CreateDevice.pointer;
    vk.CreateDevice.pointer = replaced;
  });
  const auto device = test::open();
  EXPECT_EQ(enabled != 0, device->info().features.has(Feature::robust));
  for (const char* off : {"-robust", "none"}) {
    EXPECT_FALSE(test::open(off)->features().has(Feature::robust));
    EXPECT_EQ(enabled, 0u) << off;
  }
  if (!device->features().has(Feature::robust)) GTEST_SKIP() << "no robustBufferAccess";
  const Buffer out = device->memory().buffer(1 << 16, MemoryKind::device, "out");
  const Buffer in = device->memory().buffer(256, MemoryKind::device, "in");
  Commands commands(device);
  commands.begin();
  test::add(commands, *device, test::whole(out), test::whole(in), 1 << 14, 1);  // reads 64 KiB of 256 bytes
  commands.barrier();
  test::add(commands, *device, test::whole(in), test::whole(out), 1 << 14, 1);  // and writes them
  commands.end();
  device->run(commands);
}

TEST(Features, UnknownNameGetsTheNearest) {
  const Error error = error_of([] { pumice::engine::apply(rich(), "-copmat"); });
  EXPECT_EQ(error.code(), Code::InvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("unknown feature 'copmat': did you mean 'coopmat'?"));
  EXPECT_EQ(error_of([] { pumice::engine::apply(rich(), "coopmat"); }).code(), Code::InvalidArgument);
  EXPECT_EQ(error_of([] { pumice::engine::apply(rich(), "-"); }).code(), Code::InvalidArgument);
  EXPECT_THAT(error_of([] { pumice::engine::apply(rich(), "-\x1b[31m"); }).what(), testing::Not(HasSubstr("\x1b")));
}

TEST(Features, SubgroupIsForcedWithinRange) {
  Features cpu = rich();
  cpu.cpu = true;
  EXPECT_FALSE(pumice::engine::apply(cpu, "like_gpu").cpu);
  EXPECT_EQ(pumice::engine::apply(rich(), "subgroup=8").subgroup_size, 8u);
  for (const char* bad : {"subgroup=4", "subgroup=128", "subgroup=12", "subgroup=", "subgroup=8x", "subgroup=-8"}) {
    EXPECT_EQ(error_of([&] { pumice::engine::apply(rich(), bad); }).code(), Code::InvalidArgument) << bad;
  }
  EXPECT_EQ(error_of([] { pumice::engine::apply(rich(), "-subgroup_size_control,subgroup=8"); }).code(),
            Code::InvalidArgument);
}

TEST(Features, LimitsOnlyBecomeTighter) {
  const Features poor = pumice::engine::apply(rich(), "max_storage=1m,max_groups=7,alignment=256,max_allocation=3k");
  EXPECT_EQ(poor.max_storage_bytes, 1u << 20);
  EXPECT_EQ(poor.max_groups[0], 7u);
  EXPECT_EQ(poor.max_groups[2], 7u);
  EXPECT_EQ(poor.storage_alignment, 256u);
  EXPECT_EQ(poor.max_allocation_bytes, 3072u);
  EXPECT_EQ(poor.bits, rich().bits & ~kAskedFor);
  for (const char* bad : {"max_storage=1t", "max_storage=", "max_storage", "max_storage=8", "max_storage=-1",
                          "max_storage=99999999999g", "max_storage=2g", "max_invocations=64", "max_shared=8k",
                          "max_groups=0", "alignment=48", "alignment=1", "alignment=512"}) {
    const Error error = error_of([&] { pumice::engine::apply(rich(), bad); });
    EXPECT_EQ(error.code(), Code::InvalidArgument) << bad;
    EXPECT_THAT(error.what(), HasSubstr(bad));
  }
  EXPECT_THAT(error_of([] { pumice::engine::apply(rich(), "max_storrage=1m"); }).what(), HasSubstr("'max_storage='"));
}

TEST(Features, MicrosecondsOfASubmit) {
  EXPECT_EQ(apply(Features{}, "").submit_us, 0u);
  EXPECT_EQ(apply(Features{}, "staged,submit_us=250").submit_us, 250u);
  for (const char* wrong : {"submit_us=", "submit_us=0", "submit_us=-1", "submit_us=2m", "submit_us=x"})
    EXPECT_EQ(error_of([&] { apply(Features{}, wrong); }).code(), Code::InvalidArgument) << wrong;
}

TEST(Features, RunsWhatItHas) {
  Shader shader = test::kAdd;
  EXPECT_TRUE(baseline_features().runs(shader));
  shader.features = bit(Feature::int8) | bit(Feature::coopmat);
  EXPECT_FALSE(pumice::engine::apply(rich(), "-int8").runs(shader));
  EXPECT_TRUE(rich().runs(shader));
}

// A device with matrices, but without a feature that the probe's shader needs.
TEST(Features, FragmentsNeedEverythingTheProbeNeeds) {
  Features features = baseline_features();
  features.subgroup_size = 32;
  features.matrix_f16 = {MatrixShape{16, 16, 16}, MatrixShape{16, 8, 16}};
  features.bits = bit(Feature::float16) | bit(Feature::coopmat) | bit(Feature::memory_model);
  ASSERT_TRUE(may_have_fragments(features, Feature::fragments));
  for (const Feature feature : {Feature::float16, Feature::coopmat, Feature::memory_model}) {
    Features poorer = features;
    poorer.bits &= ~bit(feature);
    EXPECT_FALSE(may_have_fragments(poorer, Feature::fragments)) << name(feature);
  }
  EXPECT_FALSE(may_have_fragments(features, Feature::fragments_int8));
  features.matrix_s8 = {MatrixShape{16, 16, 32}, MatrixShape{16, 8, 32}};
  EXPECT_FALSE(may_have_fragments(features, Feature::fragments_int8)) << "no int8";
  features.bits |= bit(Feature::int8);
  EXPECT_TRUE(may_have_fragments(features, Feature::fragments_int8));
  features.subgroup_size = 64;
  EXPECT_FALSE(may_have_fragments(features, Feature::fragments_int8));
}

TEST(Nearest, EditDistance) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(nearest("flot16", std::vector<std::string_view>{"int8", "float16"}), "float16");
}

}  // namespace
}  // namespace pumice::engine
