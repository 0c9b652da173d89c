// SPDX-License-Identifier: Apache-2.0
// The parts of kernel_bench that need no device: cases as text, the case table, the summary of timings.
#include "tools/kernel_bench/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/error_of.h"
#include "tools/kernel_bench/stats.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/table.h"

namespace pumice::engine::kernel_bench {
namespace {

using testing::HasSubstr;

TEST(Case, ComesBackFromItsText) {
  const Case c{.op = "linear_q8gsw",
               .m = 17,
               .n = 4097,
               .k = 384,
               .group = 64,
               .dtype = DType::f16,
               .scale = DType::f32,
               .storage = "texture2d",
               .bias = true,
               .zeros = Zeros::random,
               .act = 3,
               .values = Values::special};
  const std::vector<Case> back = parse(text(c));
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0], c) << text(back[0]);
  EXPECT_EQ(parse(text(Case{}))[0], Case{});
}

TEST(Case, ConvolutionsHaveKeysOfTheirOwn) {
  const std::vector<Case> cases = parse("k=5, b=2|3,op=q8ta_conv2d,c=8,g=4");  // the operator says what k is
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[1].m, 3);
  EXPECT_EQ(cases[1].terms(), 2 * 25);
  EXPECT_EQ(cases[1].out_size(56), 54);
  EXPECT_EQ(parse(text(cases[1]))[0], cases[1]) << text(cases[1]);
  EXPECT_THAT(test::error_of([] { parse("op=conv2d,m=1"); }).what(), HasSubstr("unknown key 'm'"));
  EXPECT_THAT(test::error_of([] { parse("op=linear,s=1"); }).what(), HasSubstr("unknown key 's'"));
  for (const char* text : {"c=5,g=2", "k=59", "k=70000", "b=1000000,c=60000", "values=huge", "zero=random"}) {
    const Case c = parse(std::string(text), usual("conv2d"))[0];
    EXPECT_NE(subject(c.op).refuse(c), "") << text;
  }
}

TEST(Case, AlternativesMakeEveryCombination) {
  const std::vector<Case> cases = parse("m=1|16|128, n=7 ,dtype=f32|f16");
  ASSERT_EQ(cases.size(), 6u);
  for (const Case& c : cases) EXPECT_EQ(c.n, 7);
  EXPECT_EQ(cases[0].m, 1);
  EXPECT_EQ(cases[5].m, 128);
  EXPECT_NE(cases[4].dtype, cases[5].dtype);
}

TEST(Case, ScaleFollowsTheTypeUnlessSaid) {
  EXPECT_EQ(parse("dtype=f16")[0].scale, DType::f16);
  EXPECT_EQ(parse("dtype=f16,scale=f32")[0].scale, DType::f32);
}

TEST(Case, MistakesAreNamed) {
  const auto wrong = [](const char* text) { return test::error_of([&] { parse(text); }); };
  EXPECT_THAT(wrong("dtyp=f32").what(), HasSubstr("did you mean 'dtype'"));
  EXPECT_THAT(wrong("m=0").what(), HasSubstr("from 1"));
  EXPECT_THAT(wrong("m=x").what(), HasSubstr("whole number"));
  EXPECT_THAT(wrong("m=99999999999").what(), HasSubstr("2^30"));
  EXPECT_THAT(wrong("m").what(), HasSubstr("no '='"));
  EXPECT_THAT(wrong("dtype=f64").what(), HasSubstr("f32"));
  EXPECT_THAT(wrong("values=rnadom").what(), HasSubstr("did you mean 'random'"));
  EXPECT_THAT(wrong("op=linear_q4").what(), HasSubstr("linear_q4gsw"));
  EXPECT_THAT(wrong("m=1|2|3|4|5|6|7|8,n=1|2|3|4|5|6|7|8,k=1|2|3|4|5|6|7|8,g=1|2|3|4|5|6|7|8|9").what(),
              HasSubstr("4096"));
}

// No row of the table is one that its operator refuses, and every operator has rows, each once.
TEST(Table, EveryRowMakesSense) {
  for (const bool full : {false, true}) {
    for (const Purpose purpose : {Purpose::test, Purpose::bench}) {
      Options options;
      options.full = full;
      for (const Subject& subject : subjects()) {
        options.ops = {std::string(subject.op)};
        const std::vector<Case> cases = choose(options, purpose, true);
        EXPECT_FALSE(cases.empty()) << subject.op;
        std::vector<std::string> texts;
        for (const Case& c : cases) {
          EXPECT_EQ(c.op, subject.op);
          EXPECT_EQ(subject.refuse(c), "") << text(c);
          texts.push_back(text(c));
        }
        std::sort(texts.begin(), texts.end());
        EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end());
      }
    }
  }
}

TEST(Table, OptionsNarrowIt) {
  Options options;
  options.ops = {"linear_q4gsw"};
  options.dtype = "f16";
  for (const Case& c : choose(options, Purpose::test, true)) EXPECT_EQ(c.dtype, DType::f16);
  options.storage = "textures";
  for (const Case& c : choose(options, Purpose::test, true)) EXPECT_EQ(c.storage, "textures");
  options.ops = {"quantize"};
  EXPECT_TRUE(choose(options, Purpose::test, true).empty()) << "it has no weight";
  options.ops = {"linear_q4gsw"};
  options.storage = "";
  options.dtype = "f17";
  EXPECT_THROW(choose(options, Purpose::test, true), Error);
  options.dtype = "";
  options.cases = {"m=3,n=20,k=30,g=7"};
  EXPECT_THAT(test::error_of([&] { choose(options, Purpose::test, true); }).what(), HasSubstr("g must divide k"));
}

TEST(Stats, PercentilesLieBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(percentile({5}, 0.9), 5);
  EXPECT_DOUBLE_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 2, 3}, 0.5), 2.5);
  const Spread s = spread({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_DOUBLE_EQ(s.p10, 1);
  EXPECT_DOUBLE_EQ(s.median, 5);
  EXPECT_DOUBLE_EQ(s.p90, 9);
}

}  // namespace
}  // namespace pumice::engine::kernel_bench
