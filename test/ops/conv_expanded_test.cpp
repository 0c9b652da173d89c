// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/expanded_depthwise.h"

#include <gtest/gtest.h>

#include "test/ops/pick_cases.h"

namespace pumice::engine {
namespace {

// Of an H200, as far as it matters here.
Features fragments() {
  return gpu_with({Feature::coopmat, Feature::memory_model, Feature::float16, Feature::fragments});
}

// A window of 3 x 3, padded by one.
ExpandedShape image(int64_t size, int64_t channels, int64_t stride = 1, bool means = false) {
  const int64_t out = (size - 1) / stride + 1;
  return {1, size, size, out, out, channels, {3, 3}, {stride, stride}, means};
}

void expect(const ExpandedStrips& got, uint32_t rows, uint32_t strips, uint32_t lanes, uint32_t columns,
            uint32_t blocks) {
  EXPECT_EQ(got.rows, rows);
  EXPECT_EQ(got.strips, strips);
  EXPECT_EQ(got.lanes, lanes);
  EXPECT_EQ(got.columns, columns);
  EXPECT_EQ(got.blocks, blocks);
}

TEST(PickStrips, LayersOfMobileNet) {
  expect(pick_strips(image(112, 96, 2), fragments()), 4, 14, 512, 4, 8);
  expect(pick_strips(image(56, 144), fragments()), 7, 8, 512, 4, 4);
  expect(pick_strips(image(28, 192), fragments()), 5, 6, 512, 4, 2);
  expect(pick_strips(image(14, 384), fragments()), 6, 3, 512, 2, 1);
  expect(pick_strips(image(14, 576, 2), fragments()), 7, 1, 512, 1, 2);
  expect(pick_strips(image(7, 960), fragments()), 7, 1, 256, 2, 1);
}

TEST(PickStrips, MeansAreOfWholePlanes) {
  expect(pick_strips(image(14, 384, 1, true), fragments()), 14, 1, 512, 4, 2);
  EXPECT_EQ(pick_strips(image(28, 240, 2, true), fragments()).rows, 0u);
  EXPECT_EQ(pick_strips(image(28, 240, 2), fragments()).rows, 2u);
  EXPECT_EQ(pick_strips(image(7, 960, 1, true), fragments()).shared_bytes,
            pick_strips(image(7, 960), fragments()).shared_bytes + 4 * 256);
}

TEST(PickStrips, WhatWasMeasured) {
  ExpandedShape many = image(7, 960);
  many.batch = 4;
  EXPECT_EQ(pick_strips(many, fragments()).strips, 1u) << "240 workgroups";
  many.batch = 5;
  EXPECT_EQ(pick_strips(many, fragments()).rows, 0u);
  Features half = fragments();
  half.compute_units = 66;
  many.batch = 3;
  EXPECT_EQ(pick_strips(many, half).rows, 0u);
  EXPECT_GT(pick_strips(image(14, 384), half).rows, pick_strips(image(14, 384), fragments()).rows);
}

TEST(PickStrips, WhatAWorkgroupHolds) {
  EXPECT_EQ(pick_strips(image(1024, 16), fragments()).rows, 0u) << "a row is more than 64 blocks";
  Features small = fragments();
  small.max_shared_bytes = 16384;
  const ExpandedStrips strips = pick_strips(image(56, 144), small);
  EXPECT_GT(strips.rows, 0u);
  EXPECT_LE(strips.shared_bytes, 16384u);
  small.max_shared_bytes = 2048;
  EXPECT_EQ(pick_strips(image(56, 144), small).rows, 0u);
  ExpandedShape odd = image(57, 16);
  EXPECT_EQ(pick_strips(odd, fragments()).rows, 0u) << "strips are no whole vec4 groups";
}

TEST(PickStrips, OnlyWhereItCanRun) {
  const auto none = [](auto&& change) {
    Features features = fragments();
    change(features);
    return pick_strips(image(7, 960), features).rows == 0;
  };
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16, Feature::fragments})
    EXPECT_TRUE(none([&](Features& f) { f.bits &= ~bit(feature); })) << name(feature);
  EXPECT_TRUE(none([](Features& f) { f.cpu = true; }));
  EXPECT_TRUE(none([](Features& f) { f.kernel = "conv_depthwise"; })) << "that is to run";
  EXPECT_TRUE(none([](Features& f) { f.max_storage_buffers = 6; }));
  EXPECT_TRUE(none([](Features& f) { f.max_invocations = 256; }));
}

}  // namespace
}  // namespace pumice::engine
