// SPDX-License-Identifier: Apache-2.0
// Kernels that are tested before the first run, and not by the load: where one lies, a model and sessions that are
// there already go on with others. docs/decisions/0006-self-test.md.
#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "ops/shared/shape.h"
#include "test/graph/make.h"
#include "test/vulkan/gpu.h"

namespace pumice::engine::test {
namespace {

using EngineModel = pumice::engine::Model;
using Result = KernelTest::Result;
constexpr int64_t kRows = 40, kIn = 64, kOut = 96;
constexpr const char* kHonest = "like_gpu";
constexpr const char* kLying = "like_gpu,lie=matrix";
constexpr const char* kTrusting = "like_gpu,lie=matrix,untested";

float x_at(int64_t row, int64_t k) {
  return static_cast<float>((row + 3 * k) % 7 - 3) / 4;
}
float weight_at(int64_t n, int64_t k) {
  return static_cast<float>((5 * n + k * k) % 11 - 5) / 8;
}

// A linear layer in fp16, which matrices compute, and a counter from 10 by one a run; and `more` bytes.
Bytes file(size_t more = 0) {
  Maker maker;
  const std::vector<SymInt> one{fixed(1)};
  const uint32_t start = maker.constant<int64_t>(DType::i64, one, {10});
  maker.model.program.states = {{"count", maker.method().values[start].ref}};
  maker.method().values.clear();
  std::vector<uint16_t> weight;
  for (int64_t i = 0; i < kOut * kIn; ++i) weight.push_back(half_bits(weight_at(i / kIn, i % kIn)));
  const uint32_t x = maker.value(ValueKind::input, DType::f16, {fixed(kRows), fixed(kIn)}, -1, "x");
  const uint32_t w = maker.constant(DType::f16, {fixed(kOut), fixed(kIn)}, weight);
  const uint32_t y = maker.value(ValueKind::output, DType::f16, {fixed(kRows), fixed(kOut)});
  maker.op("linear", {tensor(x), tensor(w), {}, integer(0), {}}, {y});
  const uint32_t old = maker.value(ValueKind::state, DType::i64, one, 0);
  const uint32_t next = maker.value(ValueKind::output, DType::i64, one);
  maker.op("add", {tensor(old), integer(1), real(1)}, {next});
  maker.method().updates = {{old, next}};
  if (more > 0) add_constant(maker.model, "more", Bytes(more));
  return maker.file();
}

struct FirstRun : testing::Test {
  Folder folder;
  std::string path = (folder.path / "m.pumice").string();
  std::vector<uint16_t> x;

  FirstRun() {
    save(file());
    for (int64_t i = 0; i < kRows * kIn; ++i) x.push_back(half_bits(x_at(i / kIn, i % kIn)));
  }
  void save(const Bytes& bytes) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  std::shared_ptr<const EngineModel> load(const char* features) const {
    return EngineModel::load_file([&] { return open_device_with(features); }, path);
  }
  void run(Session& session) const { session.run(0, std::vector{view(DType::f16, x, {kRows, kIn})}); }
  // Of a session after `runs` runs, against sums in fp64.
  bool is_right(const Session& session, int64_t runs = 1) const {
    const std::vector<uint16_t> got = output<uint16_t>(session, 0);
    bool right = output<int64_t>(session, 1)[0] == 10 + runs;
    for (int64_t i = 0; i < kRows * kOut; ++i) {
      double want = 0;
      for (int64_t k = 0; k < kIn; ++k)
        want += static_cast<double>(x_at(i / kOut, k)) * static_cast<double>(weight_at(i % kOut, k));
      right = right && std::fabs(half_value(got[static_cast<size_t>(i)]) - want) <= 0.01 + std::fabs(want) / 1000;
    }
    return right;
  }
};

bool has(const EngineModel& model, Result result) {
  return std::ranges::any_of(model.self_test(), [&](const KernelTest& each) { return each.result == result; });
}

TEST_F(FirstRun, TestsTheKernels) {
  const auto model = load(kHonest);
  EXPECT_TRUE(has(*model, Result::untested) && !has(*model, Result::right));
  const auto session = model->session();
  run(*session);
  EXPECT_TRUE(has(*model, Result::right) && !has(*model, Result::untested));
  EXPECT_TRUE(is_right(*session));
  run(*session);
  EXPECT_TRUE(is_right(*session, 2));
}

TEST_F(FirstRun, OfALargeFileThatIsMapped) {
  save(file(64 << 20));
  for (const char* features : {kHonest, kLying}) {
    const auto model = load(features);
    const auto session = model->session();
    run(*session);
    EXPECT_TRUE(is_right(*session) && has(*model, features == kHonest ? Result::right : Result::wrong));
  }
}

TEST_F(FirstRun, OfBytesTheLoadTestsThem) {
  const auto model = EngineModel::load([] { return open_device_with(kHonest); }, file());
  EXPECT_TRUE(has(*model, Result::right) && !has(*model, Result::untested));
}

TEST_F(FirstRun, WhatLiesIsReplacedInAllSessions) {
  const auto trusting = load(kTrusting)->session();
  run(*trusting);
  EXPECT_FALSE(is_right(*trusting)) << "the lie is none";
  auto model = load(kLying);
  const auto first = model->session(), second = model->session(), third = model->session();
  EXPECT_TRUE(model->features().has(Feature::coopmat));
  std::filesystem::remove(path);  // it is still open
  run(*first);
  EXPECT_TRUE(is_right(*first));
  EXPECT_TRUE(has(*model, Result::wrong) && !model->features().has(Feature::coopmat));
  run(*second);
  EXPECT_TRUE(is_right(*second));
  const auto later = model->session();
  model.reset();
  for (const auto& session : {later.get(), third.get()}) {
    session->prepare(0, std::vector{view(DType::f16, x, {kRows, kIn})});
    run(*session);
    run(*session);
    EXPECT_TRUE(is_right(*session, 2));
  }
}

TEST_F(FirstRun, OfALieAndAnotherFileNothingRuns) {
  const auto honest = load(kHonest)->session(), lying = load(kLying)->session();
  std::ofstream(path, std::ios::app) << "more";
  run(*honest);
  EXPECT_TRUE(is_right(*honest));
  for (int i = 0; i < 3; ++i) {
    const Error error = error_of([&] { run(*lying); });
    EXPECT_EQ(error.code(), Code::IoError) << error.what();
    EXPECT_EQ(error_of([&] { output<uint16_t>(*lying, 0); }).code(), Code::WrongState);
  }
}

// Another model on the device finds a lie, or the file's owner asks.
TEST_F(FirstRun, ATestOutsideOfASessionCounts) {
  const auto one = load(kLying), other = load(kLying);
  const auto session = other->session();
  one->finish_load();
  EXPECT_TRUE(has(*one, Result::wrong) && !has(*other, Result::wrong));
  run(*session);
  EXPECT_TRUE(is_right(*session) && has(*other, Result::wrong));
  const auto known = load(kLying);  // by the load
  EXPECT_TRUE(has(*known, Result::wrong) && !known->features().has(Feature::coopmat));
}

// Every wait of the first run is interrupted once: the next run tests what is left.
TEST_F(FirstRun, AnInterruptedTestIsDoneAgain) {
  bool ended = false;
  for (int at = 1; at < 50 && !ended; ++at) {
    const auto model = load(at % 2 == 0 ? kHonest : kLying);
    const auto session = model->session();
    int polls = 0;
    ended = true;
    try {
      const Interrupt interrupt([&] {
        if (++polls == at) fail(Code::Cancelled, Stage::execute, "", "interrupted");
      });
      run(*session);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::Cancelled) << error.what();
      ended = false;
      run(*session);
    }
    EXPECT_TRUE(is_right(*session)) << at;
    EXPECT_TRUE(has(*model, at % 2 == 0 ? Result::right : Result::wrong)) << at;
  }
  EXPECT_TRUE(ended);
}

TEST_F(FirstRun, OfManyThreads) {
  constexpr int kThreads = 6;
  const auto shared = load(kLying);
  std::atomic<int> waiting{kThreads}, right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto model = i % 3 == 0 ? load(kLying) : shared;
      const auto session = model->session();
      for (--waiting; waiting > 0;) std::this_thread::yield();
      run(*session);
      right += is_right(*session) && has(*model, Result::wrong);
      model->features();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads);
}

}  // namespace
}  // namespace pumice::engine::test
