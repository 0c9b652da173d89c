// SPDX-License-Identifier: Apache-2.0
// Which pipelines a graph will need, before a device runs it.
#include "graph/pipelines.h"

#include "test/graph/fake.h"

namespace pumice::engine::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The pipelines of a copy of a tensor whose sizes are these symbols, by their local sizes, which are its elements.
std::vector<uint32_t> local_sizes(const std::vector<Symbol>& symbols) {
  Fake fake;
  fake.local_size = [](int64_t numel) { return static_cast<uint32_t>(numel); };
  std::vector<SymInt> dims{fixed(1)};
  for (const Symbol& symbol : symbols) {
    const auto number = static_cast<int64_t>(fake.method().symbols.size());
    fake.method().symbols.push_back(symbol);
    fake.method().exprs.push_back({ExprOp::symbol, number, 0});
    dims.push_back(expr(number));
  }
  const uint32_t x = fake.value(ValueKind::input, dims), y = fake.value(ValueKind::output, dims);
  fake.call(kCopy, {x}, y);
  std::vector<uint32_t> sizes;
  for (const PipelineKey& key : bound_pipelines(*fake.build(), Deadline())) sizes.push_back(key.spec[0]);
  return sizes;
}

TEST(BoundPipelines, AreThoseAtTheEndsAndAtTheHintThenAtPowersOfTwo) {
  EXPECT_THAT(local_sizes({{"s", 1, 64, 4}}), ElementsAre(64, 1, 4, 32, 16, 8, 4, 2));
  EXPECT_THAT(local_sizes({{"s", 4, 9, 5}}), ElementsAre(9, 4, 5, 8));
  EXPECT_THAT(local_sizes({{"s", 1, 1, 1}}), ElementsAre(1, 1, 1));
}

TEST(BoundPipelines, SizesOfSeveralSymbolsMeet) {
  // Powers of two of one of them, with the other at its least and at its largest.
  EXPECT_THAT(local_sizes({{"s", 1, 10, 2}, {"t", 3, 9, 7}}),
              ElementsAre(90, 9, 18, 30, 3, 6, 70, 7, 14, 24, 72, 12, 36, 6, 18, 8, 80, 4, 40));
  const Symbol symbol{"s", 1, 2, 1};
  EXPECT_EQ(local_sizes({symbol, symbol, symbol}).size(), 27u);
}

TEST(BoundPipelines, ManySymbolsGoTogether) {
  const Symbol symbol{"s", 1, 3, 2};
  EXPECT_THAT(local_sizes({symbol, symbol, symbol, symbol}), ElementsAre(81, 1, 16, 2, 54, 2, 54, 2, 54, 2, 54));
}

TEST(BoundPipelines, SizesThatNoRunHasAreLeftOut) {
  const std::vector<uint32_t> sizes = local_sizes({{"s", 1, int64_t{1} << 40, 4}});
  ASSERT_GT(sizes.size(), 2u);
  EXPECT_EQ(sizes[0], 1u);  // not the largest
  EXPECT_EQ(sizes[1], 4u);
  EXPECT_LT(sizes.size(), 39u);  // powers of two, likewise
}

TEST(BoundPipelines, FixedSizesHaveNoOthers) {
  EXPECT_THAT(local_sizes({}), IsEmpty());
}

TEST(BoundPipelines, PowersOfTwoEndWithTheDeadline) {
  Fake fake;
  fake.method().symbols.push_back({"s", 1, 64, 4});
  fake.method().exprs.push_back({ExprOp::symbol, 0, 0});
  const uint32_t x = fake.value(ValueKind::input, {expr(0)}), y = fake.value(ValueKind::output, {expr(0)});
  fake.call(kCopy, {x}, y);
  int asked = 0;
  const Deadline deadline(1e9, [&asked] {
    if (++asked > 4) fail(Code::Timeout, Stage::plan, "test", "the time is over");
  });
  EXPECT_EQ(bound_pipelines(*fake.build(), deadline).size(), 4u);
  asked = 2;
  EXPECT_THROW(bound_pipelines(*fake.build(), deadline), Error);
}

}  // namespace
}  // namespace pumice::engine::test
