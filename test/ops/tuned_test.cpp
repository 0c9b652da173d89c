// SPDX-License-Identifier: Apache-2.0
// What was tuned is taken where it can run; everywhere else the table chooses.
#include "ops/linear/tuned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/linear/pick.h"
#include "test/ops/pick_cases.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/contest.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/table.h"

namespace pumice::engine {
namespace {

Features tuned(Features features, const LinearShape& shape, const char* kernel,
               uint64_t version = linear_kernels_version()) {
  TunedKernels kernels(version);
  kernels.set(product_text(shape), shape.m, kernel);
  features.tuned = std::make_shared<TunedKernels>(kernels);
  return features;
}

TEST(Tuned, IsTakenBeforeTheTable) {
  const LinearShape shape = int4(12, 1000, 4096);
  ASSERT_NE(pick_linear(shape, gpu()).name, "tile64x64");
  const Features features = tuned(gpu(), shape, "tile64x64");
  EXPECT_EQ(choose_linear(shape, features).name, "tile64x64");
  EXPECT_TRUE(is_tuned(shape, features));
  EXPECT_EQ(choose_linear(int4(16, 1000, 4096), features).name, "tile64x64") << "of the same power of two";
  for (const LinearShape& other : {int4(17, 1000, 4096), int4(12, 1001, 4096), int4(12, 1000, 4160)}) {
    EXPECT_EQ(&choose_linear(other, features), &pick_linear(other, gpu()));
    EXPECT_FALSE(is_tuned(other, features));
  }
}

TEST(Tuned, AForcedKernelWins) {
  const LinearShape shape = int4(12, 1000, 4096);
  Features features = tuned(gpu(), shape, "tile64x64");
  features.kernel = "gemv4";
  EXPECT_EQ(choose_linear(shape, features).name, "gemv4");
  EXPECT_FALSE(is_tuned(shape, features));
  features.kernel = "conv_tiled";  // forces nothing here
  EXPECT_EQ(choose_linear(shape, features).name, "tile64x64");
}

TEST(Tuned, WhatCannotRunOrIsUnknownLeavesTheChoiceToTheTable) {
  const LinearShape shape = int4(12, 1000, 4096);
  const LinearKernel* table = &pick_linear(shape, gpu());
  for (const char* kernel : {"matrix64x64", "int8_64x64", "gemv9", "conv_tiled", ""})
    EXPECT_EQ(&choose_linear(shape, tuned(gpu(), shape, kernel)), table) << kernel;
  EXPECT_EQ(&choose_linear(shape, tuned(gpu(), shape, "tile64x64", linear_kernels_version() + 1)), table);
}

// On devices without the places of fragments graphs have no nodes for a split x: the output would not be written.
TEST(Tuned, ASplitXIsTakenOnlyWhereGraphsHaveItsNodes) {
  LinearShape shape = int4(512, 14336, 4096);
  shape.dtype = DType::f32;
  shape.scale_f16 = false;
  shape.may_split = true;
  Features features = matrices();
  features.bits |= bit(Feature::split);
  EXPECT_EQ(choose_linear(shape, tuned(features, shape, "split_matrix64x64")).name, "split_matrix64x64");
  features.bits &= ~bit(Feature::fragments);
  const LinearKernel& kernel = linear_kernel("split_matrix64x64");
  ASSERT_EQ(unsupported_reason(kernel, shape, features), "");
  EXPECT_EQ(choose_linear(shape, tuned(features, shape, "split_matrix64x64")).input, Input::floats);
}

// A product's text is a case of the kernel bench that measures the same product.
TEST(Tuned, ATextIsACaseOfTheSameProduct) {
  using namespace kernel_bench;  // NOLINT: of this test
  size_t products = 0;
  for (const BenchOp& op : bench_ops()) {
    if (!op.is_linear()) continue;
    Options options;
    options.ops = {std::string(op.op)};
    for (const Case& c : choose(options, Purpose::test, true)) {
      const std::string text = product_text(op.linear(c));
      ASSERT_NE(text, "") << title(c);
      const Case back = parse(text + ",m=" + std::to_string(c.m)).at(0);
      EXPECT_EQ(product_text(bench_op(back.op).linear(back)), text);
      EXPECT_EQ(back.m, c.m);
      EXPECT_EQ(back.storage, c.storage);
      EXPECT_EQ(back.dtype, c.dtype);
      ++products;
    }
  }
  EXPECT_GT(products, 500u);
  LinearShape mixed = int4(1, 64, 64);
  mixed.weight = WeightType::f16;
  mixed.dtype = DType::f32;
  EXPECT_EQ(product_text(mixed), "") << "no case has that weight";
}

// Slower kernels are not left out of what the pick is compared with: only those that cannot run are.
TEST(Regret, CountsEveryKernelThatCanRun) {
  using namespace kernel_bench;  // NOLINT: of this test
  Options options;
  options.regret = true;
  for (const std::string_view name : {"linear_q4gsw", "linear_dq8ca_q8csw"}) {
    const BenchOp& op = bench_op(name);
    const Case c = parse("m=5,n=64,k=96", usual(name)).at(0);
    for (const Features& features : {cpu(), dots(cpu()), matrices()}) {
      const ChosenKernels chosen = choose_kernels(op, c, options, features);
      const std::vector<std::string>& timed = chosen.files.at(std::string(name));
      for (const LinearKernel& kernel : linear_kernels()) {
        const bool runs = pumice::engine::unsupported_reason(kernel, op.linear(c), features).empty();
        EXPECT_EQ(std::ranges::count(timed, kernel.name), runs) << kernel.name;
      }
    }
  }
}

TEST(Regret, NoCaseOfTheUnseenGridIsAmongTheFitted) {
  using namespace kernel_bench;  // NOLINT: of this test
  for (const bool cpu : {false, true}) {
    std::set<std::string> fitted;
    Options options;
    options.ops = {"linear_q4gsw"};
    for (const char* grid : {"fitted", "unseen"}) {
      options.grid = grid;
      const std::vector<Case> cases = choose(options, Purpose::bench, cpu);
      EXPECT_GE(cases.size(), 12u) << grid;
      for (const Case& c : cases)
        if (grid == std::string("fitted"))
          fitted.insert(format("%lld %lld", static_cast<long long>(c.n), static_cast<long long>(c.k)));
        else
          EXPECT_FALSE(fitted.contains(format("%lld %lld", static_cast<long long>(c.n), static_cast<long long>(c.k))));
    }
  }
}

TEST(Contest, AKernelIsFasterByMoreThanTheSpread) {
  using kernel_bench::Contender;
  const Contender slow{"slow", nullptr, {10, 9.5, 10.5}};
  EXPECT_TRUE(is_faster({"a", nullptr, {9, 8.9, 9.1}}, slow));
  EXPECT_FALSE(is_faster({"a", nullptr, {9.6, 9.5, 9.7}}, slow)) << "within the slow one's spread";
  EXPECT_FALSE(is_faster({"a", nullptr, {9, 8, 11}}, slow)) << "within its own";
  EXPECT_FALSE(is_faster(slow, slow));
  const Contender all[] = {slow, {"b", nullptr, {7, 6, 20}}, {"c", nullptr, {8, 8, 8}}};
  EXPECT_EQ(fastest(all).kernel, "b");
}

}  // namespace
}  // namespace pumice::engine
