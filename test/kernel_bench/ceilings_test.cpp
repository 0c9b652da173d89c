// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/ceilings.h"

#include <gtest/gtest.h>

namespace pumice::engine::kernel_bench {
namespace {

std::vector<double> rates(const Ceilings& ceilings) {
  std::vector<double> all;
  for (size_t i = 0; i < std::size(kArithmetics); ++i) all.push_back(ceilings.rate(static_cast<Arithmetic>(i)));
  return all;
}

// In the order of kArithmetics: f32, by 2, by 3, f16, i8.
TEST(Ceilings, ARateIsThatOfTheFastestUnitsThatGiveTheSame) {
  const Ceilings fast({{"f32", 2}, {"f16", 4}, {"dot", 8}, {"f16 matrix", 21}, {"s8 matrix", 40}, {"read", 10}});
  EXPECT_EQ(rates(fast), (std::vector<double>{2, 10.5, 7, 21, 40}));
  const Ceilings slow_matrices({{"f32", 9}, {"f16", 4}, {"dot", 8}, {"f16 matrix", 12}, {"s8 matrix", 1}});
  EXPECT_EQ(rates(slow_matrices), (std::vector<double>{9, 9, 9, 12, 12}));
  EXPECT_EQ(rates(Ceilings({{"f32", 2}, {"f16", 4}, {"dot", 8}})), (std::vector<double>{2, 2, 2, 4, 8}));
}

TEST(Ceilings, TheRoofIsTheLargerOfMovingAndComputing) {
  const Ceilings ceilings({{"f32", 2e6}, {"f16", 4e6}, {"read", 1e6}});
  bool memory = false;
  EXPECT_EQ(ceilings.roof_us(100, 100, Arithmetic::f32, memory), 100);
  EXPECT_TRUE(memory);
  EXPECT_EQ(ceilings.roof_us(10, 100, Arithmetic::f32, memory), 50);
  EXPECT_FALSE(memory);
  EXPECT_EQ(ceilings.roof_us(10, 100, Arithmetic::f16, memory), 25);
}

}  // namespace
}  // namespace pumice::engine::kernel_bench
