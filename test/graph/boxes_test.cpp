// SPDX-License-Identifier: Apache-2.0
#include "graph/boxes.h"

#include <gtest/gtest.h>

#include <set>

namespace pumice::engine {
namespace {

Features small(uint64_t limit, uint64_t alignment) {
  Features features = baseline_features();
  features.max_storage_bytes = limit;
  features.storage_alignment = alignment;
  return features;
}

Touched rows_of(uint64_t unit, Dims stride, uint64_t total) {
  return {.unit = unit, .total = total, .stride = stride};
}

TEST(Boxes, CoverAllIndicesOnceFitAndAreAligned) {
  for (const int64_t heads : {1, 3, 8}) {
    for (const int64_t rows : {1, 63, 64, 65}) {
      for (const int64_t row : {64, 100, 128}) {
        const auto total = static_cast<uint64_t>(heads * rows * row);
        const std::array tensors{rows_of(row, {rows * row, row}, total), rows_of(64, {0, 64}, rows * 64)};
        for (const uint64_t alignment : {16, 64, 256}) {
          const Features features = small(4096, alignment);
          const std::vector<Box> all = boxes({heads, rows}, tensors, features);
          std::set<std::pair<int64_t, int64_t>> seen;
          size_t count = 0;
          for (const Box& box : all) {
            for (int64_t h = 0; h < box.count[0]; ++h) {
              for (int64_t r = 0; r < box.count[1]; ++r) {
                seen.insert({box.first[0] + h, box.first[1] + r});
                ++count;
              }
            }
            if (all.size() == 1) continue;
            for (size_t t = 0; t < tensors.size(); ++t) {
              const BindingRange range = ranges_of(tensors, box, features)[t];
              EXPECT_EQ(range.begin % alignment, 0u);
              EXPECT_LE(range.bytes != 0 ? range.bytes : tensors[t].total - range.begin, 4096u);
            }
          }
          EXPECT_EQ(count, static_cast<size_t>(heads * rows));
          EXPECT_EQ(seen.size(), count);
          // Heads and blocks of four rows then begin where bindings can.
          const bool must_cut = total > 4096 && row % 64 == 0 && rows * row % static_cast<int64_t>(alignment) == 0;
          EXPECT_TRUE(all.size() > 1 || !must_cut);
          EXPECT_TRUE(all.size() == 1 || total > 4096);
        }
      }
    }
  }
}

TEST(Boxes, OneOfAllWhereCuttingDoesNotHelp) {
  const std::array whole{rows_of(5000, {0}, 5000)};  // each index touches all of it
  EXPECT_EQ(boxes({100}, whole, small(4096, 16)).size(), 1u);
  const std::array odd{rows_of(4001, {4001}, 40010)};  // the second part would begin at no multiple of 16
  EXPECT_EQ(boxes({10}, odd, small(4096, 16)).size(), 1u);
  const std::array many{rows_of(16, {16}, uint64_t{16} << 20)};
  EXPECT_EQ(boxes({1 << 20}, many, small(16, 16)).size(), 1u);  // a million dispatches
}

TEST(Boxes, AKernelThatShiftsReadsFromTheMultipleBefore) {
  const Touched reversed{.unit = 4, .total = 8000, .stride = {-4}, .base = 7996, .shifts = true};
  const Features features = small(4096, 64);
  const std::vector<Box> all = boxes({2000}, std::array{reversed}, features);
  ASSERT_EQ(all.size(), 2u);
  const BindingRange first = ranges_of(std::array{reversed}, all[0], features)[0];
  const int64_t lowest = 7996 - 4 * (all[0].count[0] - 1);
  EXPECT_EQ(first.begin % 64, 0u);
  EXPECT_LE(static_cast<int64_t>(first.begin), lowest);
  EXPECT_GT(static_cast<int64_t>(first.begin) + 64, lowest);
  EXPECT_EQ(first.bytes, 0u);  // up to the end
}

}  // namespace
}  // namespace pumice::engine
