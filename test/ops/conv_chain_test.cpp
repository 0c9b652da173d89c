// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/chain.h"

#include <gtest/gtest.h>

#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

// Of an H200, as far as it matters here.
Features fragments() {
  return gpu_with({Feature::coopmat, Feature::memory_model, Feature::int8, Feature::fragments_int8});
}

// Layers of ResNet-50: of 56 x 56 and 28 x 28 pixels.
const ChainShape kWide{{64, 256, 64}, 36, 3136}, kDeep{{128, 512, 128}, 72, 784};

TEST(PickChain, AllWorkgroupsAtOnce) {
  EXPECT_EQ(pick_chain(kWide, fragments()), 3u);
  EXPECT_EQ(pick_chain(kDeep, fragments()), 1u);
  EXPECT_EQ(pick_chain({{128, 512, 128}, 72, 1}, fragments()), 1u);
  EXPECT_EQ(pick_chain({{128, 512, 128}, 72, 1600}, fragments()), 2u);
  EXPECT_EQ(pick_chain({{64, 256, 64}, 36, 132 * 24 + 1}, fragments()), 0u) << "many pixels";
  EXPECT_EQ(pick_chain({{64, 256, 64}, 36, 0}, fragments()), 0u) << "none";
  Features half = fragments();
  half.compute_units = 66;
  EXPECT_EQ(pick_chain(kDeep, half), 2u);
  EXPECT_EQ(pick_chain(kWide, half), 0u);
}

TEST(PickChain, WeightsThatEveryWorkgroupCanRead) {
  EXPECT_EQ(pick_chain({{256, 1024, 256}, 144, 196}, fragments()), 0u);
  EXPECT_EQ(pick_chain({{64, 256, 72}, 36, 196}, fragments()), 0u) << "no panel";
  EXPECT_EQ(pick_chain({{272, 64, 64}, 32, 196}, fragments()), 1u) << "more panels than subgroups";
  EXPECT_EQ(pick_chain({{272, 64, 64}, 33, 196}, fragments()), 0u) << "more than registers hold";
}

TEST(PickChain, OnlyWhereItCanRun) {
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::int8, Feature::fragments_int8}) {
    Features features = fragments();
    features.bits &= ~bit(feature);
    EXPECT_EQ(pick_chain(kDeep, features), 0u) << name(feature);
  }
  const auto none = [](auto&& change) {
    Features features = fragments();
    change(features);
    return pick_chain(kDeep, features) == 0;
  };
  EXPECT_TRUE(none([](Features& f) { f.cpu = true; }));
  EXPECT_TRUE(none([](Features& f) { f.kernel = "conv8_gemvf8x2"; })) << "that is to run";
  EXPECT_TRUE(none([](Features& f) { f.max_storage_buffers = 15; }));
  EXPECT_TRUE(none([](Features& f) { f.max_invocations = 256; }));
  EXPECT_TRUE(none([](Features& f) { f.max_shared_bytes = 16384; }));
}

}  // namespace
}  // namespace pumice::engine
