// SPDX-License-Identifier: Apache-2.0
// Barriers: what encode places and what find_hazard checks, compared with each other and with known cases.
#include "graph/hazard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace pumice::engine {
namespace {

using testing::HasSubstr;

Step kernel(std::vector<Range> writes, std::vector<Range> reads) {
  return {.kind = StepKind::dispatch, .node = 0, .writes = std::move(writes), .reads = std::move(reads)};
}
Step host(Range write) {
  return {.kind = StepKind::host, .writes = {write}};
}
Range arena(uint64_t begin, uint64_t end, uint32_t content) {
  return {kArena, begin, end, content};
}

std::vector<bool> barriers(std::vector<Step> steps) {
  place_barriers(steps);
  EXPECT_EQ(find_hazard(steps), "");
  std::vector<bool> result;
  for (const Step& step : steps) result.push_back(step.barrier);
  return result;
}

TEST(Hazard, ReadAfterWrite) {
  EXPECT_EQ(barriers({host(arena(0, 16, 1)), kernel({arena(16, 32, 2)}, {arena(0, 16, 1)}),
                      kernel({arena(32, 48, 3)}, {arena(16, 32, 2)})}),
            (std::vector{false, false, true}));
}

TEST(Hazard, WriteAfterReadOfReusedMemory) {
  EXPECT_EQ(
      barriers({host(arena(0, 16, 1)), kernel({arena(16, 32, 2)}, {arena(0, 16, 1)}), kernel({arena(0, 16, 3)}, {})}),
      (std::vector{false, false, true}));
}

TEST(Hazard, WriteAfterWrite) {
  EXPECT_EQ(barriers({kernel({arena(0, 16, 1)}, {}), kernel({arena(8, 24, 2)}, {})}), (std::vector{false, true}));
}

TEST(Hazard, IndependentKernelsShareAnInterval) {
  const Range x = arena(0, 16, 1);
  EXPECT_EQ(
      barriers({host(x), kernel({arena(16, 32, 2)}, {x}), kernel({arena(32, 48, 3)}, {x}),
                kernel({arena(48, 64, 4)}, {x}), kernel({arena(64, 80, 5)}, {arena(16, 32, 2), arena(48, 64, 4)})}),
      (std::vector{false, false, false, false, true}));
}

TEST(Hazard, WeightsAndStatusNeedNone) {
  const Range weight{kFixed, 0, 64, 9}, status{kStatus, 0, 16, 8};
  EXPECT_EQ(barriers({kernel({arena(0, 16, 1), status}, {weight}),
                      kernel({arena(16, 32, 2), status}, {weight}),
                      {.kind = StepKind::copy, .writes = {{kDownload, 0, 16, 8}}, .reads = {status}}}),
            (std::vector{false, false, true}));
}

TEST(Hazard, OverwrittenValueIsFound) {
  std::vector<Step> steps{host(arena(0, 16, 1)), kernel({arena(0, 16, 2)}, {}),
                          kernel({arena(16, 32, 3)}, {arena(0, 16, 1)})};
  place_barriers(steps);
  EXPECT_THAT(find_hazard(steps), HasSubstr("step 2"));
}

TEST(Hazard, UnwrittenValueIsFound) {
  std::vector<Step> steps{kernel({arena(16, 32, 3)}, {arena(0, 16, 1)})};
  EXPECT_THAT(find_hazard(steps), HasSubstr("no step wrote"));
}

// Random programs over a few places in memory; a value is read only before it is overwritten. Every barrier is needed.
TEST(Hazard, RandomProgramsNeedEveryBarrier) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<Step> steps;
    uint32_t content[6];
    for (uint32_t cell = 0; cell < 6; ++cell)
      steps.push_back(host(arena(cell * 16, cell * 16 + 16, content[cell] = cell)));
    for (uint32_t n = 0; n < 40; ++n) {
      const uint32_t from = random() % 6, to = random() % 6;
      steps.push_back(
          kernel({arena(to * 16, to * 16 + 16, 100 + n)}, {arena(from * 16, from * 16 + 16, content[from])}));
      content[to] = 100 + n;
    }
    place_barriers(steps);
    ASSERT_EQ(find_hazard(steps), "");
    for (Step& step : steps) {
      if (!step.barrier) continue;
      step.barrier = false;
      ASSERT_THAT(find_hazard(steps), HasSubstr("without a barrier"));
      step.barrier = true;
    }
  }
}

}  // namespace
}  // namespace pumice::engine
