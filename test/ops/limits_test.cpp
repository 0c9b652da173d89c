// SPDX-License-Identifier: Apache-2.0
// Sizes next to what kernels count in 32 bits, and numbers from a file beyond any tensor: launches before any device.
#include "graph/infer.h"
#include "test/graph/make.h"
#include "tools/kernel_bench/operators.h"

namespace pumice::engine::test {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

Arg ints(std::vector<int64_t> list) {
  return {ArgKind::ints, 0, 0, std::move(list)};
}

// The dispatches of one operator call on inputs of these shapes.
std::vector<Dispatch> dispatches(const char* name, std::vector<Arg> args, const std::vector<Shape>& inputs,
                                 const Shape& out, DType dtype = DType::f32) {
  const auto dims = [](const Shape& shape) {
    std::vector<SymInt> result;
    for (const int64_t size : shape) result.push_back(fixed(size));
    return result;
  };
  Program program;
  Method& method = program.methods.emplace_back();
  std::vector<Arg> all;
  for (const Shape& shape : inputs) {
    all.push_back(tensor(static_cast<uint32_t>(method.values.size())));
    method.inputs.push_back(static_cast<uint32_t>(method.values.size()));
    method.values.push_back({ValueKind::input, dtype, dims(shape), -1, ""});
  }
  all.insert(all.end(), args.begin(), args.end());
  method.outputs = {static_cast<uint32_t>(method.values.size())};
  method.values.push_back({ValueKind::output, dtype, dims(out), -1, ""});
  const auto signatures = kernel_bench::signatures();
  uint32_t op = 0;
  while (signatures[op].name != name) ++op;
  method.ops.push_back({op, std::move(all), method.outputs, ""});
  const auto graph = build(program, 0, baseline_features(), kernel_bench::builder(), std::make_shared<ConstantFacts>());
  infer(*graph, hints(method));
  std::vector<Dispatch> result;
  for (const Node& node : graph->impl().nodes)
    result.insert(result.end(), node.dispatches.begin(), node.dispatches.end());
  return result;
}

uint64_t invocations(const Dispatch& dispatch) {
  return uint64_t{dispatch.groups[0]} * dispatch.groups[1] * dispatch.groups[2] * dispatch.spec[0];
}

TEST(Limits, FullWritesAllOfATensorWhoseBytesNeedMoreThan32Bits) {
  const Features features = baseline_features();
  for (const int64_t size : {int64_t{1} << 30, (int64_t{1} << 30) + 9, (int64_t{1} << 31) - 1}) {
    for (const DType dtype : {DType::f32, DType::i64, DType::f16, DType::i8}) {
      const auto found = dispatches("full", {real(3), ints({size})}, {}, {size}, dtype);
      ASSERT_EQ(found.size(), 1u) << size << name(dtype);
      EXPECT_GE(invocations(found[0]) * 16, static_cast<uint64_t>(size) * device_bytes(dtype));
      EXPECT_LE(found[0].groups[0], features.max_groups[0]);
      EXPECT_LE(found[0].groups[1], features.max_groups[1]);
    }
  }
}

TEST(Limits, NumbersOfAFileBeyondAnyTensorAreRefusedOrTakenAsTheEnd) {
  EXPECT_EQ(dispatches("slice", {integer(0), integer(kLeast), integer(kMost), integer(kMost)}, {{5}}, {1}).size(), 1u);
  EXPECT_EQ(dispatches("slice", {integer(0), integer(2), integer(kMost), integer(1)}, {{5}}, {3}).size(), 1u);
  EXPECT_EQ(dispatches("slice_scatter", {integer(0), integer(kLeast), integer(kMost), integer(kMost)}, {{5}, {1}}, {5})
                .size(),
            1u);
  const auto code = [](const char* op, std::vector<Arg> args, const std::vector<Shape>& in, const Shape& out,
                       DType dtype = DType::f32) {
    return error_of([&] { dispatches(op, std::move(args), in, out, dtype); }).code();
  };
  EXPECT_EQ(code("pad", {ints({kMost, kMost}), real(0)}, {{5}}, {3}), Code::LimitExceeded);
  EXPECT_EQ(code("repeat", {ints({kMost / 2 + 1})}, {{4}}, {0}), Code::LimitExceeded);
  EXPECT_EQ(code("adaptive_avg_pool", {ints({kMost, 1})}, {{4, 4}}, {1, 1}), Code::LimitExceeded);
  EXPECT_EQ(code("arange", {integer(kMost), integer(kMost), integer(3)}, {}, {3}, DType::i64), Code::LimitExceeded);
  EXPECT_EQ(code("full", {real(0), ints({0, kMost, kMost})}, {}, {0, kMost, kMost}), Code::LimitExceeded);
  EXPECT_EQ(code("permute", {ints({0, 2, 1})}, {{0, 1 << 30, 1 << 30}}, {0, 1 << 30, 1 << 30}), Code::LimitExceeded);
}

TEST(Limits, OneDispatchTakesAsManyInvocationsAs32BitsCount) {
  const Graph graph;
  Features features = baseline_features();
  const auto over = [&](uint64_t groups, uint32_t size) {
    Launch launch(features, graph);
    launch.over_groups(groups, size);
    EXPECT_GE(uint64_t{launch.groups[0]} * launch.groups[1], groups);
    return launch.groups;
  };
  EXPECT_EQ(over(0, 64)[0], 0u);
  EXPECT_EQ(over(65'535, 64), (std::array<uint32_t, 3>{65'535, 1, 1}));
  EXPECT_EQ(over(65'536, 64), (std::array<uint32_t, 3>{32'768, 2, 1}));
  over((uint64_t{1} << 32) / 128 - 512, 128);
  EXPECT_EQ(error_of([&] { over((uint64_t{1} << 32) / 128 + 1, 128); }).code(), Code::LimitExceeded);
  EXPECT_EQ(error_of([&] { over(~uint64_t{0}, 1); }).code(), Code::LimitExceeded);
  features.max_groups[0] = std::numeric_limits<int32_t>::max();  // as many discrete GPUs have it
  EXPECT_EQ(error_of([&] { over(uint64_t{1} << 33, 1); }).code(), Code::LimitExceeded);
}

}  // namespace
}  // namespace pumice::engine::test
