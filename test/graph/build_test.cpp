// SPDX-License-Identifier: Apache-2.0
// Building a graph, shape inference, results in the memory of inputs, state; without a device.
#include <random>

#include "test/graph/fake.h"

namespace pumice::engine::test {
namespace {

using testing::HasSubstr;

const std::vector<SymInt> kDims{fixed(4), fixed(8)};

TEST(Build, ErrorsCarryTheCall) {
  Fake fake;
  const uint32_t x = fake.value(ValueKind::input, kDims), y = fake.value(ValueKind::output, kDims);
  fake.call(kBad, {x}, y);
  const Error error = error_of([&] { fake.build(); });
  EXPECT_EQ(error.code(), Code::BadGraph);
  EXPECT_EQ(error.path(), "methods[0].ops[0] (fake3)");
  EXPECT_STREQ(error.what(), "fake: dimension 3 is odd");
}

TEST(Build, AnOperatorMustWriteItsOutputs) {
  Fake fake;
  const uint32_t x = fake.value(ValueKind::input, kDims), y = fake.value(ValueKind::output, kDims);
  fake.call(kSilent, {x}, y);
  EXPECT_EQ(error_of([&] { fake.build(); }).code(), Code::Internal);
}

TEST(Infer, DeclaredShapeMustBeTheOperators) {  // G11
  Fake fake;
  const uint32_t x = fake.value(ValueKind::input, kDims), y = fake.value(ValueKind::output, {fixed(4), fixed(9)});
  fake.call(kCopy, {x}, y);
  const auto graph = fake.build();
  const Error error = error_of([&] { infer(*graph, {}); });
  EXPECT_EQ(error.code(), Code::BadShape);
  EXPECT_EQ(error.path(), "methods[0].ops[0] (fake0)");
  EXPECT_THAT(error.what(), HasSubstr("the operator gives [4, 8], the file says [4, 9]"));
}

TEST(Infer, OnlyWhatAChangeReachesRunsAgain) {
  Fake fake;
  fake.method().symbols = {{"s", 1, 64, 4}};
  fake.method().exprs = {{ExprOp::symbol, 0, 0}};
  const uint32_t moving = fake.value(ValueKind::input, {expr(0)}), still = fake.value(ValueKind::input, kDims);
  fake.call(kCopy, {moving}, fake.value(ValueKind::output, {expr(0)}));
  fake.call(kCopy, {still}, fake.value(ValueKind::output, kDims));
  const auto graph = fake.build();
  const int64_t four[] = {4}, nine[] = {9};
  EXPECT_EQ(infer(*graph, four), 2u);
  EXPECT_EQ(infer(*graph, four), 0u);
  EXPECT_EQ(infer(*graph, nine), 1u);
  EXPECT_EQ(graph->impl().tensors[2].shape, Shape{9});
  EXPECT_EQ(infer(*graph, four), 1u);
}

TEST(Infer, RecoversAfterAnError) {
  Fake fake;
  fake.method().symbols = {{"s", 1, 64, 4}};
  fake.method().exprs = {{ExprOp::symbol, 0, 0}, {ExprOp::constant, 8, 0}, {ExprOp::min, 0, 1}};
  const uint32_t x = fake.value(ValueKind::input, {expr(0)}), y = fake.value(ValueKind::output, {expr(2)});
  fake.call(kCopy, {x}, y);
  const auto graph = fake.build();
  const int64_t four[] = {4}, nine[] = {9};
  EXPECT_EQ(infer(*graph, four), 1u);
  EXPECT_EQ(error_of([&] { infer(*graph, nine); }).code(), Code::BadShape);
  EXPECT_EQ(infer(*graph, four), 1u);
  EXPECT_EQ(graph->impl().tensors[y].shape, Shape{4});
}

uint32_t memory_root(const Graph& graph, uint32_t tensor) {
  return graph.impl().memory_root(tensor);
}

TEST(InPlace, TakesOverAValueWithNoLaterUse) {
  Fake fake;
  const uint32_t x = fake.value(ValueKind::input, kDims), y = fake.value(ValueKind::input, kDims);
  const uint32_t a = fake.value(ValueKind::scratch, kDims), b = fake.value(ValueKind::output, kDims);
  fake.call(kCopy, {x}, a);
  fake.call(kInPlace, {a, y}, b);
  const auto graph = fake.build();
  steps_of(*graph);
  EXPECT_EQ(memory_root(*graph, b), a);
}

TEST(InPlace, NotWhenTheValueIsUsedAgain) {
  Fake fake;
  const uint32_t x = fake.value(ValueKind::input, kDims), y = fake.value(ValueKind::input, kDims);
  const uint32_t a = fake.value(ValueKind::scratch, kDims), b = fake.value(ValueKind::output, kDims);
  const uint32_t c = fake.value(ValueKind::output, kDims);
  fake.call(kCopy, {x}, a);
  fake.call(kInPlace, {a, y}, b);
  fake.call(kCopy, {a}, c);
  const auto graph = fake.build();
  steps_of(*graph);
  EXPECT_EQ(memory_root(*graph, b), b);
}

TEST(InPlace, NotOnWhatTheSameKernelReadsAnotherWay) {
  Fake fake;
  const uint32_t x = fake.value(ValueKind::input, kDims), a = fake.value(ValueKind::scratch, kDims);
  const uint32_t flat = fake.value(ValueKind::scratch, {fixed(32)}), b = fake.value(ValueKind::output, kDims);
  fake.call(kCopy, {x}, a);
  fake.call(kView, {a}, flat);
  fake.call(kInPlace, {a, flat}, b);
  const auto graph = fake.build();
  steps_of(*graph);
  EXPECT_EQ(memory_root(*graph, flat), a);
  EXPECT_EQ(memory_root(*graph, b), b);
}

// A program with a state: it reads the old value and sets a new one.
struct Stateful : Fake {
  uint32_t x, old;
  Stateful() {
    program.states = {{"cache", -1}};
    x = value(ValueKind::input, kDims);
    old = value(ValueKind::state, kDims, 0);
  }
};

TEST(State, IsUpdatedInPlace) {
  Stateful fake;
  const uint32_t next = fake.value(ValueKind::scratch, kDims), out = fake.value(ValueKind::output, kDims);
  fake.call(kInPlace, {fake.old, fake.x}, next);
  fake.call(kCopy, {next}, out);
  fake.method().updates = {{fake.old, next}};
  const auto graph = fake.build();
  EXPECT_EQ(steps_of(*graph, true).size(), 3u);  // the input, two kernels, no copy
  EXPECT_EQ(memory_root(*graph, next), fake.old);
}

TEST(State, IsCopiedWhenTheOldValueIsReadLater) {
  Stateful fake;
  const uint32_t next = fake.value(ValueKind::scratch, kDims), both = fake.value(ValueKind::output, kDims);
  fake.call(kInPlace, {fake.old, fake.x}, next);
  fake.call(kInPlace, {next, fake.old}, both);
  fake.method().updates = {{fake.old, next}};
  const auto graph = fake.build();
  const auto all = steps_of(*graph, true);
  EXPECT_EQ(memory_root(*graph, next), next);
  EXPECT_EQ(all.back().kind, StepKind::copy);
  EXPECT_EQ(all.back().writes[0].space, kFirstState);
  EXPECT_TRUE(all.back().barrier);
}

TEST(State, OldValueAsAnOutputIsKept) {
  Stateful fake;
  const uint32_t next = fake.value(ValueKind::scratch, kDims);
  fake.call(kInPlace, {fake.old, fake.x}, next);
  fake.method().updates = {{fake.old, next}};
  fake.method().outputs = {fake.old, next};
  const auto graph = fake.build();
  steps_of(*graph);
  EXPECT_NE(graph->impl().outputs[0], fake.old);
  EXPECT_EQ(memory_root(*graph, graph->impl().outputs[0]), graph->impl().outputs[0]);
}

TEST(State, TwoStatesChangePlaces) {
  Stateful fake;
  fake.program.states.push_back({"other", -1});
  const uint32_t other = fake.value(ValueKind::state, kDims, 1);
  fake.method().updates = {{fake.old, other}, {other, fake.old}};
  const auto graph = fake.build();
  const auto all = steps_of(*graph, true);
  ASSERT_EQ(all.size(), 5u);  // one for the input; two copies from the states, two copies to them
  EXPECT_EQ(all[4].writes[0].space, kFirstState + 1);
  EXPECT_EQ(all[4].reads[0].space, kArena);
}

// A program whose second input has another value in the next run of a call.
struct Carried : Fake {
  uint32_t x, y;
  Carried() : x(value(ValueKind::input, kDims)), y(value(ValueKind::input, kDims)) {}
};

TEST(InputUpdate, IsInPlace) {
  Carried fake;
  const uint32_t next = fake.value(ValueKind::scratch, kDims), out = fake.value(ValueKind::output, kDims);
  fake.call(kInPlace, {fake.y, fake.x}, next);
  fake.call(kCopy, {next}, out);
  fake.method().updates = {{fake.y, next}};
  const auto graph = fake.build();
  EXPECT_EQ(memory_root(*graph, next), fake.y);
  EXPECT_EQ(updated_inputs(graph->impl()), std::vector<uint32_t>{fake.y});
}

TEST(InputUpdate, OnlyTheNewValueIsInPlace) {
  Carried fake;
  const uint32_t other = fake.value(ValueKind::output, kDims), next = fake.value(ValueKind::scratch, kDims);
  fake.call(kCopy, {fake.x}, next);
  fake.call(kInPlace, {fake.y, next}, other);
  fake.method().updates = {{fake.y, next}};
  const auto graph = fake.build();
  const auto all = steps_of(*graph, true);
  EXPECT_EQ(memory_root(*graph, other), other) << "the memory of y is written at the end, and by nothing else";
  EXPECT_EQ(all.back().kind, StepKind::copy);
}

TEST(InputUpdate, TwoInputsChangePlaces) {
  Carried fake;
  fake.method().updates = {{fake.x, fake.y}, {fake.y, fake.x}};
  const auto all = steps_of(*fake.build(), true);
  EXPECT_EQ(all.size(), 6u);  // two for the inputs; two copies from them, two copies to them
}

TEST(State, UpdatesAreChecked) {
  Stateful fake;
  fake.method().updates = {{fake.old, fake.value(ValueKind::input, {fixed(4)})}};
  EXPECT_EQ(error_of([&] { fake.build(); }).code(), Code::BadShape);
  fake.method().updates = {{fake.old, fake.value(ValueKind::input, kDims, -1, DType::i32)}};
  EXPECT_EQ(error_of([&] { fake.build(); }).code(), Code::BadDtype);
  fake.method().exprs = {{ExprOp::constant, 4, 0}};
  fake.method().values[fake.old].dims[0] = expr(0);
  EXPECT_EQ(error_of([&] { fake.build(); }).code(), Code::BadShape);
}

TEST(Levels, IndependentCallsShareAnInterval) {
  Fake fake;
  const uint32_t x = fake.value(ValueKind::input, kDims);
  for (int branch = 0; branch < 3; ++branch) {  // three branches, one after the other in the file
    const uint32_t a = fake.value(ValueKind::scratch, kDims), b = fake.value(ValueKind::output, kDims);
    fake.call(kCopy, {x}, a);
    fake.call(kCopy, {a}, b);
  }
  const auto graph = fake.build();
  int barriers = 0;
  for (const Step& step : steps_of(*graph, true)) barriers += step.barrier;
  EXPECT_EQ(barriers, 1);
}

// In random programs of copies, views and kernels in place, every value is kept until its last use.
TEST(Levels, RandomProgramsKeepTheirValues) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    Stateful fake;
    std::vector<uint32_t> flat, known{fake.x, fake.old};
    for (int n = 0; n < 30; ++n) {
      const uint32_t a = known[random() % known.size()], b = known[random() % known.size()];
      const bool viewed = random() % 5 == 0;
      const uint32_t out = fake.value(random() % 6 == 0 ? ValueKind::output : ValueKind::scratch,
                                      viewed ? std::vector{fixed(32)} : fake.method().values[a].dims);
      fake.call(viewed ? kView : random() % 2 ? kInPlace : kCopy, viewed ? std::vector{a} : std::vector{a, b}, out);
      known.push_back(out);
    }
    for (size_t i = 2; i < known.size(); ++i) {
      if (fake.method().values[known[i]].dims.size() == 2) fake.method().updates = {{fake.old, known[i]}};
    }
    const auto graph = fake.build();
    steps_of(*graph, round % 2 == 0);
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace pumice::engine::test
