// SPDX-License-Identifier: Apache-2.0
// The parts of kernel_bench that need no device: cases as text, the case table, the summary of timings.
#include "tools/kernel_bench/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/error_of.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/call.h"
#include "tools/kernel_bench/stats.h"
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

TEST(Case, BytesMayBeUnsigned) {
  const Case c = parse("op=q8ta_linear,m=3,n=5,k=8,in=u8,out=u8")[0];
  EXPECT_EQ(c.in, DType::u8);
  EXPECT_EQ(parse(text(c))[0], c) << text(c);
  EXPECT_NE(text(c), text(parse("op=q8ta_linear,m=3,n=5,k=8,in=u8")[0]));
  EXPECT_THAT(test::error_of([] { parse("in=u16"); }).what(), HasSubstr("did you mean 'u8'"));
  const auto refused = [](const char* text) {
    const Case given = parse(text)[0];
    return bench_op(given.op).refuse(given);
  };
  for (const char* good :
       {"op=q8ta_linear,in=u8,out=u8,g=0", "op=q8ta_conv2d,in=u8,out=u8", "op=conv2d_q8ta_q8csw,in=u8"})
    EXPECT_EQ(refused(good), "") << good;
  for (const char* text : {"op=linear_dq8ca_q4gsw,in=u8", "op=linear_qta8a_qga4w_qta8o,out=u8", "op=conv2d,in=u8",
                           "op=conv2d_q8ta_q8csw,out=u8"})
    EXPECT_THAT(refused(text), HasSubstr("is not u8")) << text;
}

TEST(Case, ConvolutionsHaveKeysOfTheirOwn) {
  const std::vector<Case> cases =
      parse("k=5, b=2|3,op=q8ta_conv2d,c=8,g=4");  // k means the kernel size here: the operator is read first
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[1].m, 3);
  EXPECT_EQ(cases[1].terms(), 2 * 25);
  EXPECT_EQ(cases[1].out_size(56), 54);
  EXPECT_EQ(parse(text(cases[1]))[0], cases[1]) << text(cases[1]);
  EXPECT_THAT(test::error_of([] { parse("op=conv2d,m=1"); }).what(), HasSubstr("unknown key 'm'"));
  EXPECT_THAT(test::error_of([] { parse("op=linear,s=1"); }).what(), HasSubstr("unknown key 's'"));
  for (const char* text : {"c=5,g=2", "k=59", "k=70000", "b=1000000,c=60000", "values=huge", "zero=random"}) {
    const Case c = parse(std::string(text), usual("conv2d"))[0];
    EXPECT_NE(bench_op(c.op).refuse(c), "") << text;
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

// Every operator of the engine has cases, its row accepts each of them, and none is there twice. So this fails for a
// new operator without cases.
TEST(Table, EveryRowMakesSense) {
  for (const bool full : {false, true}) {
    for (const Purpose purpose : {Purpose::test, Purpose::bench}) {
      Options options;
      options.full = full;
      for (const BenchOp& bench_op : bench_ops()) {
        options.ops = {std::string(bench_op.op)};
        const std::vector<Case> cases = choose(options, purpose, true);
        EXPECT_FALSE(cases.empty()) << bench_op.op;
        std::vector<std::string> texts;
        for (const Case& c : cases) {
          EXPECT_EQ(c.op, bench_op.op);
          EXPECT_EQ(bench_op.refuse(c), "") << text(c);
          texts.push_back(text(c));
        }
        std::sort(texts.begin(), texts.end());
        EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end());
      }
    }
  }
}

// An operator that the partitioner may give textures has cases in textures.
TEST(Table, EveryStorageIsThere) {
  for (const BenchOp& each : bench_ops()) {
    const auto has = [&](std::string_view storage) {
      return std::any_of(each.row->variants.begin(), each.row->variants.end(), [&](const Axis& axis) {
        return std::find(axis.values.begin(), axis.values.end(), storage) != axis.values.end();
      });
    };
    if (!each.is_call() || !has("texture3d")) continue;
    Options options;
    options.ops = {std::string(each.op)};
    const std::vector<Case> cases = choose(options, Purpose::test, true);
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.in_textures(); })) << each.op;
  }
}

TEST(Call, ComesBackFromItsText) {
  const std::vector<Case> cases = parse("op=softmax T=f16 x=T[3,37] dim=-1|1");
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[1].call, "x=T[3,37] dim=1");
  EXPECT_EQ(cases[1].dtype, DType::f16);
  EXPECT_EQ(parse(text(cases[1]))[0], cases[1]) << text(cases[1]);
  EXPECT_EQ(parse("op=softmax x=T[3,37] dim=-1").size(), 2u) << "f32 and f16";
}

TEST(Call, AllKindsOfArguments) {
  const auto call = [](const char* text) {
    const Case c = parse(text).at(0);
    return parse_call(*bench_op(c.op).row, c.call, c.dtype);
  };
  const Call cat = call("op=cat T=f16 inputs=T[2,3]+T[4,3] dim=0 -> T[6,3]");
  ASSERT_EQ(cat.arguments[0].tensors.size(), 2u);
  EXPECT_EQ(cat.arguments[0].tensors[1].shape, (Shape{4, 3}));
  EXPECT_EQ(cat.outputs[0].dtype, DType::f16);
  const Call where = call("op=where condition=bool[5] a=f32[5]{-0.5..0.5} b=2 -> f32[5]");
  EXPECT_EQ(where.arguments[1].tensors[0].high, 0.5);
  EXPECT_TRUE(where.arguments[2].tensors.empty());
  EXPECT_EQ(where.arguments[2].number, 2);
  const Call lookup = call("op=lookup x=i8[5] table=const:i8[256]");
  EXPECT_TRUE(lookup.arguments[1].tensors[0].is_constant);
  EXPECT_EQ(lookup.outputs[0].shape, (Shape{5})) << "as the first tensor";
}

TEST(Call, MistakesAreNamed) {
  const auto wrong = [](const char* text) { return test::error_of([&] { parse(text); }); };
  EXPECT_THAT(wrong("op=softmax x=T[3,37] dm=1").what(), HasSubstr("did you mean 'dim'"));
  EXPECT_THAT(wrong("op=softmax x=T[3,37]").what(), HasSubstr("dim is missing"));
  EXPECT_THAT(wrong("op=softmax x=T[3,37] dim=1 dim=0").what(), HasSubstr("given twice"));
  EXPECT_THAT(wrong("op=softmax x=T[3,37] dim=1.5").what(), HasSubstr("whole number"));
  EXPECT_THAT(wrong("op=softmax x=f33[3] dim=1").what(), HasSubstr("did you mean f32"));
  EXPECT_THAT(wrong("op=softmax x=i4[3] dim=1").what(), HasSubstr("only constants"));
  EXPECT_THAT(wrong("op=softmax x=T[3,a] dim=1").what(), HasSubstr("whole numbers"));
  EXPECT_THAT(wrong("op=softmax x=T[3]{1} dim=1").what(), HasSubstr("range"));
  EXPECT_THAT(wrong("op=softmax x=3 dim=1").what(), HasSubstr("the argument is a Tensor"));
  EXPECT_THAT(wrong("op=softmax x=T[3] dim=1 -> T[3] T[3]").what(), HasSubstr("outputs, 1"));
  EXPECT_THAT(wrong("op=softmax m=1,n=3").what(), HasSubstr("did you mean"));
  EXPECT_THAT(wrong("op=full value=1 shape=[3]").what(), HasSubstr("outputs"));
}

TEST(Table, OptionsNarrowIt) {
  Options options;
  options.ops = {"linear_q4gsw"};
  options.dtype = "f16";
  for (const Case& c : choose(options, Purpose::test, true)) EXPECT_EQ(c.dtype, DType::f16);
  options.storage = "textures";
  for (const Case& c : choose(options, Purpose::test, true)) EXPECT_EQ(c.storage, "textures");
  options.ops = {"conv2d"};
  EXPECT_TRUE(choose(options, Purpose::test, true).empty()) << "its weight is in a buffer";
  options.ops = {"softmax"};
  EXPECT_TRUE(choose(options, Purpose::test, true).empty()) << "it has no textures";
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
