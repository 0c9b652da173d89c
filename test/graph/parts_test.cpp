// SPDX-License-Identifier: Apache-2.0
// Where a recording is cut, and sessions whose runs are cut and stopped: R08 and D09 of the list of bad inputs.
#include "graph/parts.h"

#include <atomic>
#include <numeric>
#include <optional>
#include <thread>

#include "graph/execute.h"
#include "test/graph/make.h"

namespace pumice::engine::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Pace kPace{.bytes_per_ns = 1, .flops_per_ns = 1, .dispatch_ns = 0, .matrix_flops_per_ns = 20};
constexpr Shader kPlain{}, kMatrix{.features = bit(Feature::coopmat)};

// A graph of dispatches with these workgroups and as many operations.
struct Dispatches {
  explicit Dispatches(const std::vector<std::array<uint32_t, 3>>& all, const Shader& shader = kPlain) {
    for (const auto& groups : all) {
      Node node{.kind = NodeKind::dispatch};
      node.dispatches.push_back(
          {.shader = &shader, .groups = groups, .operations = uint64_t{groups[0]} * groups[1] * groups[2]});
      graph.nodes.push_back(std::move(node));
      steps.push_back({.kind = StepKind::dispatch, .node = static_cast<uint32_t>(steps.size())});
    }
  }
  std::vector<Part> cut(uint64_t submit_ns, const std::vector<double>& factors = {}) const {
    return parts(graph, steps, kPace, submit_ns, factors);
  }
  Graph::Impl graph;
  std::vector<Step> steps;
};

TEST(Parts, AShortRunIsOnePart) {
  const auto all = Dispatches({{10, 1, 1}, {20, 1, 1}}).cut(30);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].pieces.size(), 2u);
  EXPECT_FALSE(all[0].pieces[0].is_cut);
}

TEST(Parts, EveryWorkgroupIsInOnePiece) {
  for (const std::array<uint32_t, 3>& groups :
       {std::array<uint32_t, 3>{1, 1, 1}, {1000, 1, 1}, {7, 5, 1}, {3, 1, 11}, {3, 4, 5}, {100000, 1, 1}}) {
    const Dispatches dispatches({{4, 1, 1}, groups, {6, 1, 1}});
    for (const uint64_t submit_ns : {1ull, 7ull, 50ull, 1000000ull}) {
      uint64_t count = 0, next = 0;
      for (const Part& part : dispatches.cut(submit_ns)) {
        for (const Piece& piece : part.pieces) {
          if (piece.step != 1) continue;
          const size_t axis = groups[2] > 1 ? 2 : groups[1] > 1 ? 1 : 0;
          EXPECT_EQ(piece.first[axis], next);
          next += piece.groups[axis];
          count += uint64_t{piece.groups[0]} * piece.groups[1] * piece.groups[2];
          // The number of a workgroup is that of the whole dispatch: y * (workgroups along x) + x.
          if (groups[1] > 1) {
            EXPECT_EQ(piece.groups[0], groups[0]);
          }
        }
      }
      EXPECT_EQ(count, uint64_t{groups[0]} * groups[1] * groups[2]);
    }
  }
}

TEST(Parts, KernelsWithMatricesAreFaster) {
  const std::vector<std::array<uint32_t, 3>> groups = {{100, 1, 1}, {100, 1, 1}};
  EXPECT_EQ(Dispatches(groups).cut(10).size(), 20u);
  EXPECT_EQ(Dispatches(groups, kMatrix).cut(10).size(), 1u);
}

TEST(Parts, NoneIsPlannedLonger) {
  for (const Part& part : Dispatches({{70, 1, 1}, {500, 1, 1}, {20, 1, 1}, {90, 1, 1}}).cut(100))
    EXPECT_LE(part.ns, 100);
}

TEST(Parts, WhatWasMeasuredDecidesTheNextTime) {
  const Dispatches dispatches({{100, 1, 1}, {100, 1, 1}});
  std::vector<Part> all = dispatches.cut(100);
  ASSERT_EQ(all.size(), 2u);
  all[0].measured_ns = 10;
  all[1].measured_ns = 1000;
  EXPECT_FALSE(fit_badly(all, 0, 100));
  EXPECT_FALSE(fit_badly(all, 1, 100)) << "it may have compiled kernels";
  EXPECT_TRUE(fit_badly(all, 2, 100));
  const std::vector<double> factors = measured_factors(all, {}, 2);
  EXPECT_THAT(factors, ElementsAre(0.1, 10));
  all = dispatches.cut(100, factors);
  EXPECT_EQ(all.size(), 11u);
  for (Part& part : all) part.measured_ns = static_cast<uint64_t>(part.ns);
  EXPECT_FALSE(fit_badly(all, 2, 100));
  EXPECT_THAT(measured_factors(all, factors, 2),
              ElementsAre(testing::DoubleNear(0.1, 1e-9), testing::DoubleNear(10, 1e-9)));
  for (Part& part : all) part.measured_ns = 5;
  EXPECT_FALSE(fit_badly(all, 3, 100)) << "it may not run so often that a new recording pays";
  EXPECT_TRUE(fit_badly(all, 4, 100)) << "one part would do";
}

TEST(Parts, NewRecordingsArePlannedByWhatOthersTook) {
  const auto took = [](double planned_ns, uint64_t measured_ns) {
    return std::vector<Part>{{.pieces = {{.step = 0, .ns = planned_ns}}, .ns = planned_ns, .measured_ns = measured_ns}};
  };
  const std::vector<double> one = {1.0}, half = {0.5};
  MeasuredPace pace;
  EXPECT_EQ(pace.factor(), 1);
  pace.note(took(1e8, 1'000'000), one, 1);
  EXPECT_EQ(pace.factor(), 1) << "kernels were compiled";
  pace.note(took(1e5, 100), one, 2);
  EXPECT_EQ(pace.factor(), 1) << "too short";
  pace.note(took(1e8, 1'000'000), one, 2);
  EXPECT_DOUBLE_EQ(pace.factor(), 0.04);
  pace.note(took(1e8, 100'000), one, 2);
  EXPECT_DOUBLE_EQ(pace.factor(), 0.04) << "the slowest decides";
  pace.note(took(1e8, 5'000'000), half, 2);
  EXPECT_DOUBLE_EQ(pace.factor(), 0.1) << "planned by half of what was reckoned";
  pace.note(took(1e8, 900'000'000), one, 2);
  EXPECT_EQ(pace.factor(), 1);
}

struct Loaded {
  Loaded(const Maker& maker, const char* features, uint64_t timeout_ns = 0) {
    const Bytes file = maker.file();
    model = pumice::engine::Model::load([&] { return open_device_with(features); }, file);
    session = model->session({.timeout_ns = timeout_ns});
  }
  std::shared_ptr<const pumice::engine::Model> model;
  std::unique_ptr<Session> session;
};

// state += x, and `products` matrix products of 512 x 512 after it. No kernel of it reports errors.
Maker long_counter(uint32_t products, int64_t size) {
  Maker maker;
  const std::vector<SymInt> dims{fixed(size)}, square{fixed(512), fixed(512)};
  const uint32_t start = maker.constant<float>(DType::f32, dims, std::vector<float>(static_cast<size_t>(size), 10));
  maker.model.program.states = {{"count", maker.method().values[start].ref}};
  maker.method().values.clear();
  const uint32_t x = maker.value(ValueKind::input, DType::f32, dims, -1, "x");
  const uint32_t first = maker.value(ValueKind::input, DType::f32, square, -1, "y");
  uint32_t y = first;
  const uint32_t old = maker.value(ValueKind::state, DType::f32, dims, 0);
  const uint32_t next = maker.value(ValueKind::scratch, DType::f32, dims);  // in the memory of the state
  const uint32_t shown = maker.value(ValueKind::output, DType::f32, dims);
  const uint32_t sum = maker.value(ValueKind::scratch, DType::f32, dims);
  maker.op("add", {tensor(old), tensor(x), real(1)}, {sum});
  maker.op("slice_scatter", {tensor(old), tensor(sum), integer(0), integer(0), integer(size), integer(1)}, {next});
  maker.op("add", {tensor(next), real(0), real(1)}, {shown});
  for (uint32_t p = 0; p < products; ++p) {
    const uint32_t z = maker.value(p + 1 == products ? ValueKind::output : ValueKind::scratch, DType::f32, square);
    const Arg as_it_is{.kind = ArgKind::ints};
    maker.op("matmul", {tensor(y), tensor(first), Arg{}, as_it_is, as_it_is, integer(0)}, {z});
    y = z;
  }
  maker.method().updates = {{old, next}};
  return maker;
}

struct LongRun : Loaded {
  LongRun(const char* features, uint32_t products, int64_t size, uint64_t timeout_ns = 0)
      : Loaded(long_counter(products, size), features, timeout_ns), x(static_cast<size_t>(size), 1), y(512 * 512) {
    for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i * 7919 % 1000) / 270000;
  }
  float run(uint32_t steps = 1) {
    const std::vector<int64_t> dims{static_cast<int64_t>(x.size())}, square{512, 512};
    session->run(0, std::vector{view(DType::f32, x, dims), view(DType::f32, y, square)}, steps);
    return output<float>(*session, 0).back();
  }
  // Runs, and another thread cancels after `delay`; the time in seconds from then until the run returned.
  double cancelled(uint32_t steps, std::chrono::milliseconds delay = std::chrono::milliseconds(100)) {
    std::atomic<std::chrono::steady_clock::time_point> at;
    std::thread other([&] {
      std::this_thread::sleep_for(delay);
      at = std::chrono::steady_clock::now();
      session->cancel();
    });
    const Error error = error_of([&] { run(steps); });
    const auto end = std::chrono::steady_clock::now();
    other.join();
    EXPECT_EQ(error.code(), Code::Cancelled) << error.what();
    return std::chrono::duration<double>(end - at.load()).count();
  }
  // The least of three tries, where one is not below two seconds: a machine that others use may stall.
  double soonest_cancelled(uint32_t steps) {
    double least = cancelled(steps);
    for (int i = 0; i < 2 && least >= 2; ++i) least = std::min(least, cancelled(steps));
    return least;
  }
  std::vector<float> x;
  std::vector<float> y;
};

TEST(Cancel, EndsALongRunAndLeavesTheStateAsItWas) {
  LongRun one("", 200, 2);
  for (const uint32_t steps : {1u, 50u}) {
    EXPECT_LT(one.soonest_cancelled(steps), 2);
    EXPECT_FALSE(one.session->device().is_lost());
  }
  LongRun fresh("", 200, 2);
  EXPECT_EQ(one.run(), fresh.run());
  EXPECT_EQ(output<float>(*one.session, 1), output<float>(*fresh.session, 1));
}

TEST(Cancel, StepsOfAShortMethodAreSubmittedApart) {
  LongRun one("", 1, 2);
  EXPECT_LT(one.soonest_cancelled(4096), 2);
  EXPECT_EQ(one.run(3), 13);
}

TEST(Cancel, ALargeStateThatIsHalfUpdatedIsNotGoneOnWith) {
  LongRun one("", 200, (1 << 18) + 4);
  std::optional<Error> error;
  for (const int delay : {100, 400, 1600}) {  // a busy machine may need longer to get to the update
    one.cancelled(1, std::chrono::milliseconds(delay));
    try {
      one.run();
    } catch (const Error& caught) {
      error = caught;
      break;
    }
  }
  ASSERT_TRUE(error) << "the state was never half updated";
  EXPECT_EQ(error->code(), Code::WrongState);
  EXPECT_THAT(error->what(), HasSubstr("reset()"));
  one.session->reset();
  EXPECT_EQ(one.run(), 11);
}

TEST(Cancel, WithoutARunDoesNothing) {
  LongRun one("", 1, 2);
  one.session->cancel();
  EXPECT_EQ(one.run(), 11);
}

TEST(Cancel, ATimeLimitIsKeptBetweenSubmits) {
  LongRun one("", 200, 2, 200'000'000);
  const auto begin = std::chrono::steady_clock::now();
  const Error error = error_of([&] { one.run(); });
  EXPECT_EQ(error.code(), Code::Timeout);
  EXPECT_THAT(error.what(), HasSubstr("within 200 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_FALSE(one.session->device().is_lost());
  LongRun fresh("", 1, 2);
  EXPECT_EQ(fresh.run(), 11);
}

TEST(Cancel, AShortRunDoesNotWaitForALongOne) {
  LongRun slow("", 400, 2), quick("", 1, 2);
  EXPECT_EQ(quick.run(), 11);
  std::atomic<bool> ended = false;
  std::thread other([&] {
    error_of([&] { slow.run(); });
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(quick.run(), 12);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_FALSE(ended) << "the long run was not long";
  slow.session->cancel();
  other.join();
}

// The sums of index_add take longer than planned: a step of its search is more than one operation.
TEST(Cancel, PartsThatFitBadlyAreRecordedAgain) {
  constexpr int64_t kRows = 8192, kPositions = 60000;
  Maker maker;
  const uint32_t x = maker.value(ValueKind::input, DType::f32, {fixed(kRows)}, -1, "x");
  const uint32_t index = maker.value(ValueKind::input, DType::i32, {fixed(kPositions)}, -1, "index");
  const uint32_t values = maker.value(ValueKind::input, DType::f32, {fixed(kPositions)}, -1, "values");
  const uint32_t out = maker.value(ValueKind::output, DType::f32, {fixed(kRows)});
  maker.op("index_add", {tensor(x), tensor(index), tensor(values), integer(0)}, {out});
  const Loaded one(maker, "");
  std::vector<float> start(kRows), all(kPositions);
  std::vector<int32_t> rows(kPositions);
  std::iota(start.begin(), start.end(), 0.25f);
  for (size_t p = 0; p < kPositions; ++p) {
    rows[p] = static_cast<int32_t>(p * 31 % kRows);
    all[p] = 1 / static_cast<float>(p + 1);
  }
  const auto run = [&] {
    one.session->run(0, std::vector{view(DType::f32, start, {kRows}), view(DType::i32, rows, {kPositions}),
                                    view(DType::f32, all, {kPositions})});
    return output<float>(*one.session, 0);
  };
  const std::vector<float> want = run();
  for (int again = 0; again < 6; ++again) EXPECT_EQ(run(), want);
  EXPECT_GT(one.session->encodings(), 1u) << "or this machine is fast: then take more positions";
  EXPECT_LE(one.session->encodings(), 4u);
}

}  // namespace
}  // namespace pumice::engine::test
