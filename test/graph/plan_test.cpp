// SPDX-License-Identifier: Apache-2.0
// The memory plan: random lifetimes, and a naive check of every pair of intervals for what plan.h promises.
#include "graph/plan.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace pumice::engine {
namespace {

using Intervals = std::vector<Interval>;

// Two values that live at the same time must not share a byte.
std::string overlap(const Intervals& intervals, const Plan& plan) {
  for (size_t a = 0; a < intervals.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool in_time = intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
      const bool in_space = plan.offsets[a] < plan.offsets[b] + intervals[b].bytes &&
                            plan.offsets[b] < plan.offsets[a] + intervals[a].bytes;
      if (in_time && in_space) return format("%zu and %zu", a, b);
    }
  }
  return "";
}

uint64_t most_alive(const Intervals& intervals) {
  uint64_t most = 0;
  for (const Interval& at : intervals) {
    uint64_t alive = 0;
    for (const Interval& i : intervals) alive += i.first <= at.first && at.first <= i.last ? i.bytes : 0;
    most = std::max(most, alive);
  }
  return most;
}

void expect_valid(const Intervals& intervals) {
  const Plan result = plan(intervals);
  ASSERT_EQ(result.offsets.size(), intervals.size());
  EXPECT_EQ(overlap(intervals, result), "");
  uint64_t end = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_EQ(result.offsets[i] % intervals[i].alignment, 0u);
    end = std::max(end, result.offsets[i] + intervals[i].bytes);
  }
  EXPECT_LE(end, result.total);
  EXPECT_LE(result.total, result.naive);
  EXPECT_GE(result.total, result.lower_bound);
  EXPECT_GE(result.lower_bound, most_alive(intervals));
}

Intervals random_intervals(std::mt19937& random, size_t count, uint32_t steps, uint32_t longest) {
  Intervals intervals;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t first = random() % steps;
    const uint64_t bytes = random() % 8 == 0 ? 0 : uint64_t{1} << random() % 20 | random() % 1000;
    intervals.push_back({first, first + static_cast<uint32_t>(random() % longest), bytes, uint64_t{1} << random() % 9});
  }
  return intervals;
}

TEST(Plan, RandomLifetimes) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round)
    expect_valid(random_intervals(random, random() % 80, 1 + random() % 60, 1 + random() % 30));
}

TEST(Plan, LongListsAreSwept) {
  std::mt19937 random(2);
  expect_valid(random_intervals(random, 3000, 2000, 20));
}

TEST(Plan, StaysNearTheLowerBound) {
  std::mt19937 random(3);
  double sum = 0;
  for (int round = 0; round < 50; ++round) {
    const Plan result = plan(random_intervals(random, 200, 100, 8));
    sum += static_cast<double>(result.total) / static_cast<double>(result.lower_bound);
  }
  EXPECT_LT(sum / 50, 1.15);
}

// A chain of operators needs only two buffers.
TEST(Plan, ChainTakesTwoBuffers) {
  Intervals intervals;
  for (uint32_t i = 0; i < 100; ++i) intervals.push_back({i, i + 1, 1000, 256});
  const Plan result = plan(intervals);
  EXPECT_EQ(result.total, 2048u);
  EXPECT_EQ(result.naive, 102400u);
}

TEST(Plan, Empty) {
  EXPECT_EQ(plan({}).total, 0u);
  EXPECT_EQ(plan(Intervals{{0, 0, 0, 1}}).total, 0u);
}

Code code_of(const Intervals& intervals) {
  try {
    plan(intervals);
  } catch (const Error& error) {
    return error.code();
  }
  return Code::Ok;
}

TEST(Plan, RefusesWhatCannotBe) {
  EXPECT_EQ(code_of({{0, 1, ~uint64_t{0}, 16}}), Code::LimitExceeded);
  EXPECT_EQ(code_of({{0, 1, uint64_t{1} << 62, 16}, {0, 1, uint64_t{1} << 62, 16}}), Code::LimitExceeded);
  EXPECT_EQ(code_of({{0, 1, uint64_t{1} << 62, 16}, {2, 3, uint64_t{1} << 61, 16}}), Code::Ok);
  EXPECT_EQ(code_of({{2, 1, 16, 16}}), Code::BadGraph);
  EXPECT_EQ(code_of({{0, 1, 16, 0}}), Code::BadGraph);
  EXPECT_EQ(code_of({{0, 1, 16, 48}}), Code::BadGraph);
}

}  // namespace
}  // namespace pumice::engine
