// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/split.h"

#include <gtest/gtest.h>

namespace pumice::engine {
namespace {

TEST(SplitRows, BlocksCoverAllRowsFitAndAreAligned) {
  for (const uint64_t alignment : {16, 64, 256}) {
    for (const uint64_t limit : {1000, 4096, 65536, 1 << 20}) {
      Features features = baseline_features();
      features.storage_alignment = alignment;
      features.max_storage_bytes = limit;
      for (const uint32_t rows : {0, 1, 15, 16, 17, 255, 256, 257, 4097}) {
        for (const uint64_t row : {1, 3, 62, 300, 4096}) {
          const auto blocks = split_rows(rows, {row, row / 2}, features);
          const uint64_t unit = std::max<uint64_t>(alignment, 16);
          uint64_t next = 0;
          for (const RowRange& block : blocks) {
            EXPECT_EQ(block.first, next);
            EXPECT_EQ(block.first % unit, 0u);
            const BindingRange part = binding_range(block, rows, row);
            EXPECT_EQ(part.begin % alignment, 0u);
            EXPECT_TRUE(blocks.size() == 1 || block.count * row <= limit);
            next += block.count;
          }
          EXPECT_EQ(next, rows);
          EXPECT_EQ(blocks.size() == 1, rows * row <= limit || unit * row > limit || rows <= unit);
        }
      }
    }
  }
}

TEST(SplitRows, SmallerPiecesWhereThereIsAChoice) {
  EXPECT_EQ(split_rows(4096, {1024}, baseline_features(), 1 << 20).size(), 4u);
  EXPECT_EQ(split_rows(4096, {1024}, baseline_features(), 1).size(), 16u);  // of 256 rows, which are aligned
}

}  // namespace
}  // namespace pumice::engine
