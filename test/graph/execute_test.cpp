// SPDX-License-Identifier: Apache-2.0
// Sessions on a device: conversions of dtypes, changing shapes, state, bad inputs.
#include <random>
#include <thread>

#include "test/graph/make.h"

namespace pumice::engine::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Inputs and outputs in both ways: in place where the host can map device memory, and through staging buffers.
struct Execute : testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, Execute, testing::Bool(), [](const auto& test) { return test.param ? "staged" : "direct"; });

struct Loaded {
  explicit Loaded(const Maker& maker) {
    const Bytes file = maker.file();
    const auto open = [] { return open_device_with(Execute::GetParam() ? "staged" : ""); };
    model = pumice::engine::Model::load(open, file);  // the file's bytes are freed after this
    session = make();
  }
  std::unique_ptr<Session> make() const { return model->session(); }
  std::shared_ptr<const pumice::engine::Model> model;
  std::unique_ptr<Session> session;
};

std::vector<float> run_adds(Session& session, int64_t rows, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<size_t>(rows) * 3);
  for (float& value : x) value = static_cast<float>(random() % 1000) / 8;
  session.run(0, std::vector{view(DType::f32, x, {rows, 3})});
  std::vector<float> z = output<float>(session, 0);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(z[i], x[i] + x[i] + 1);
  return z;
}

TEST_P(Execute, EqualsAFreshSessionForEveryShape) {  // R05
  Loaded loaded(adds());
  std::mt19937 random(1);
  for (uint32_t step = 0; step < 60; ++step) {
    const int64_t rows = step % 7 == 0 ? 1000 : 1 + random() % 40;
    EXPECT_EQ(run_adds(*loaded.session, rows, step), run_adds(*loaded.make(), rows, step));
  }
}

TEST_P(Execute, LastShapesReplay) {
  Loaded loaded(adds());
  // The largest shape comes first, because a growing arena discards the recorded command buffers.
  for (int64_t rows : {100, 8, 7, 6, 5, 4, 3, 2, 1}) run_adds(*loaded.session, rows, 0);
  const uint64_t encodings = loaded.session->encodings();
  for (int64_t rows : {1, 8, 5, 5, 2, 7}) run_adds(*loaded.session, rows, 0);
  EXPECT_EQ(loaded.session->encodings(), encodings);
  run_adds(*loaded.session, 9, 0);  // drops the recording of 6, the least recently used
  run_adds(*loaded.session, 8, 0);
  EXPECT_EQ(loaded.session->encodings(), encodings + 1);
  run_adds(*loaded.session, 6, 0);
  EXPECT_EQ(loaded.session->encodings(), encodings + 2);
}

TEST_P(Execute, I64IsRangeChecked) {
  Loaded loaded(adds(DType::i64));
  const std::vector<int64_t> good{1, -2, 3}, bad{1, 2, int64_t{1} << 31};
  loaded.session->run(0, std::vector{view(DType::i64, good, {1, 3})});
  EXPECT_THAT(output<int64_t>(*loaded.session, 0), ElementsAre(3, -3, 7));
  const Error error = error_of([&] { loaded.session->run(0, std::vector{view(DType::i64, bad, {1, 3})}); });
  EXPECT_EQ(error.code(), Code::InvalidArgument);
  EXPECT_EQ(error.path(), "input 'x'");
  EXPECT_STREQ(error.what(), "2147483648 at position 2 does not fit 32 bits");
  EXPECT_EQ(error_of([&] { loaded.session->output(0); }).code(), Code::WrongState);
}

TEST_P(Execute, InputsAreChecked) {  // R01, R02
  Loaded loaded(adds());
  const std::vector<float> x(12);
  const auto refused = [&](std::vector<InputView> inputs) {
    const Error error = error_of([&] { loaded.session->run(0, inputs); });
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    EXPECT_EQ(error.stage(), Stage::input);
    return error.path() + ": " + error.what();
  };
  const std::vector<int64_t> right{4, 3}, flat{12}, wide{3, 4}, many{1001, 3}, none{0, 3}, negative{-4, 3};
  EXPECT_THAT(refused({}), HasSubstr("0 inputs given, the method 'forward' takes 1"));
  EXPECT_THAT(refused({{DType::f16, right, x.data(), 24}}), HasSubstr("input 'x': dtype is f16, expected f32"));
  EXPECT_THAT(refused({{DType::f32, flat, x.data(), 48}}), HasSubstr("rank is 1, expected 2"));
  EXPECT_THAT(refused({{DType::f32, wide, x.data(), 48}}), HasSubstr("dimension 1 is 4, expected 3"));
  EXPECT_THAT(refused({{DType::f32, many, x.data(), 12012}}),
              HasSubstr("dimension 0 ('s') is 1001, allowed are 1 to 1000"));
  EXPECT_THAT(refused({{DType::f32, none, x.data(), 0}}), HasSubstr("dimension 0 ('s') is 0"));
  EXPECT_THAT(refused({{DType::f32, negative, x.data(), 48}}), HasSubstr("dimension 0 ('s') is -4"));
  EXPECT_THAT(refused({{DType::f32, right, x.data(), 47}}), HasSubstr("has 47 bytes, its shape needs 48"));
  EXPECT_THAT(refused({{DType::f32, right, nullptr, 48}}), HasSubstr("has no data"));
  EXPECT_EQ(error_of([&] { loaded.session->run(1, {}); }).code(), Code::InvalidArgument);
  run_adds(*loaded.session, 4, 1);
}

TEST_P(Execute, StateStaysAndResets) {
  Loaded loaded(counter());
  const auto second = loaded.make();
  const auto step = [](Session& session) {
    session.run(0, std::vector{view<int64_t>(DType::i64, {1, 2}, {2})});
    return output<int64_t>(session, 0);
  };
  EXPECT_THAT(step(*loaded.session), ElementsAre(11, 22));
  EXPECT_THAT(step(*loaded.session), ElementsAre(12, 24));
  EXPECT_THAT(step(*second), ElementsAre(11, 22));
  loaded.session->reset();
  EXPECT_THAT(step(*loaded.session), ElementsAre(11, 22));
}

TEST_P(Execute, BadIndexIsNamed) {  // R04
  Loaded loaded(lookup());
  loaded.session->run(0, std::vector{view<int64_t>(DType::i64, {4, 0}, {2})});
  EXPECT_THAT(output<float>(*loaded.session, 0), ElementsAre(8, 9, 0, 1));
  for (const int64_t bad : {5, -1, 1 << 30}) {
    const Error error =
        error_of([&] { loaded.session->run(0, std::vector{view<int64_t>(DType::i64, {1, 1, bad}, {3})}); });
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    EXPECT_EQ(error.path(), "methods[0].ops[0] (embedding)");
    EXPECT_EQ(error.what(), format("embedding: index %d at position 2 is outside 0..4", static_cast<int>(bad)));
  }
  loaded.session->run(0, std::vector{view<int64_t>(DType::i64, {2}, {1})});
  EXPECT_THAT(output<float>(*loaded.session, 0), ElementsAre(4, 5));
}

TEST_P(Execute, ThreadsWaitForOneAnother) {  // R07
  Loaded loaded(adds());
  std::atomic<int> good{0};
  const auto work = [&](int thread) {
    for (int i = 0; i < 100; ++i) {
      const std::vector<float> x(300, static_cast<float>(1000 * thread + i));
      std::vector<float> z(300);
      loaded.session->call(0, std::vector{view(DType::f32, x, {100, 3})}, [&](uint32_t, const OutputInfo& output) {
        EXPECT_EQ(output.bytes, z.size() * sizeof(float));
        return z.data();
      });
      good += z == std::vector<float>(300, 2 * x[0] + 1);
      if (i % 10 != thread) continue;
      loaded.session->reset();
      EXPECT_GT(loaded.session->memory().io, 0u);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 800);
}

TEST_P(Execute, ACallInsideOfACallIsBusy) {
  Loaded loaded(adds());
  const std::vector<float> x(3);
  const auto run = [&](const Session::OutputDestination& destination) {
    loaded.session->call(0, std::vector{view(DType::f32, x, {1, 3})}, destination);
  };
  const auto inner = [&](uint32_t, const OutputInfo&) -> void* {
    loaded.session->reset();
    return nullptr;
  };
  EXPECT_EQ(error_of([&] { run(inner); }).code(), Code::Busy);
  run([](uint32_t, const OutputInfo&) { return nullptr; });
  EXPECT_THAT(output<float>(*loaded.session, 0), ElementsAre(1, 1, 1));
}

TEST_P(Execute, SessionsRunSideBySide) {
  Loaded loaded(adds());
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&loaded, t] {
      const auto session = loaded.make();
      for (uint32_t i = 0; i < 10; ++i) run_adds(*session, 1 + 100 * t + i, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Execute, ProfileHasARowForEveryKernel) {
  Loaded loaded(adds());
  const std::vector<float> x(12);
  const auto rows = loaded.session->profile(0, std::vector{view(DType::f32, x, {4, 3})});
  std::vector<std::string> names;
  for (const ProfileRow& row : rows) {
    EXPECT_GE(row.us, 0);
    EXPECT_GT(row.bytes, 0u);
    if (row.kernel != "copy")
      names.push_back(row.op + " " + row.kernel.substr(0, 6) + " " + row.shapes + " " + row.source);
  }
  EXPECT_THAT(names, ElementsAre("add binary f32[4,3] f32[4,3] -> f32[4,3] model.py:1",
                                 "add binary f32[4,3] f32[4,3] -> f32[4,3] model.py:1"));
}

TEST_P(Execute, AProfileIsARun) {
  Loaded loaded(adds());
  const std::vector<float> x{1, 2, 3};
  run_adds(*loaded.session, 2, 0);  // the largest shape comes first
  for (int again = 0; again < 2; ++again) {
    loaded.session->profile(0, std::vector{view(DType::f32, x, {1, 3})});
    EXPECT_THAT(output<float>(*loaded.session, 0), ElementsAre(3, 5, 7));
    run_adds(*loaded.session, 2, 0);  // the graph now has other shapes
  }
  const uint64_t encodings = loaded.session->encodings();
  EXPECT_EQ(encodings, 2u);
  const auto rows = loaded.session->profile(0, std::vector{view(DType::f32, x, {1, 3})});
  EXPECT_EQ(loaded.session->encodings(), encodings);
  std::vector<uint32_t> calls;
  double end = 0;
  for (const ProfileRow& row : rows) {
    EXPECT_GE(row.start_us, end - 1e-6);
    end = row.start_us + row.us;
    if (row.kernel == "copy") continue;
    calls.push_back(row.call);
    EXPECT_THAT(row.shapes, HasSubstr("f32[1,3]"));
  }
  EXPECT_THAT(calls, ElementsAre(0u, 1u));
  EXPECT_THAT(output<float>(*loaded.session, 0), ElementsAre(3, 5, 7));
}

TEST_P(Execute, MemoryIsReportedByKind) {
  Loaded loaded(lookup());
  loaded.session->run(0, std::vector{view<int64_t>(DType::i64, {4, 3}, {2})});
  const SessionMemory memory = loaded.session->memory();
  EXPECT_GE(memory.weights, 40u);
  EXPECT_GE(memory.arena, 16u);
  EXPECT_EQ(memory.state, 0u);
  EXPECT_GE(memory.io, 16u);
}

TEST(Load, ConstantsWithoutAFormOnTheDeviceAreRefused) {
  Maker maker;
  const uint32_t c = maker.constant<int64_t>(DType::i64, {fixed(2)}, {7, int64_t{1} << 40});
  const uint32_t out = maker.value(ValueKind::output, DType::i64, {fixed(2)});
  maker.op("add", {tensor(c), integer(1), real(1)}, {out});
  const Bytes file = maker.file();
  const Error error = error_of([&] { pumice::engine::Model::load(open_device, file); });
  EXPECT_EQ(error.path(), "constants[0]");
  EXPECT_THAT(error.what(), HasSubstr("element 1 has no form on the device: 1099511627776"));
}

TEST_P(Execute, AFailedRunLeavesTheStateAsItWas) {
  Loaded loaded(failing_counter(2));
  const std::vector<int64_t> x{1, 2};
  const auto run = [&](int64_t id, uint32_t steps) {
    const std::vector<int64_t> ids{id};
    loaded.session->run(0, std::vector{view(DType::i64, x, {2}), view(DType::i64, ids, {1})}, steps);
    return output<int64_t>(*loaded.session, 0);
  };
  EXPECT_THAT(run(4, 1), ElementsAre(11, 12));
  for (const uint32_t steps : {1u, 3u}) {
    const Error error = error_of([&] { run(5, steps); });
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("index 5 at position 0 is outside 0..4"));
  }
  EXPECT_THAT(run(0, 1), ElementsAre(12, 14));
  EXPECT_THAT(run(0, 2), ElementsAre(14, 18));
  loaded.session->reset();
  EXPECT_THAT(run(0, 1), ElementsAre(11, 12));
}

TEST_P(Execute, ALargeStateThatIsHalfUpdatedIsNotGoneOnWith) {
  constexpr int64_t kSize = (1 << 18) + 4;  // of 4 bytes on the device: more than StateUndo keeps
  Loaded loaded(failing_counter(kSize));
  const std::vector<int64_t> x(kSize, 1);
  const auto run = [&](int64_t id) {
    const std::vector<int64_t> ids{id};
    loaded.session->run(0, std::vector{view(DType::i64, x, {kSize}), view(DType::i64, ids, {1})});
    return output<int64_t>(*loaded.session, 0)[kSize - 1];
  };
  EXPECT_EQ(run(0), 11);
  EXPECT_EQ(error_of([&] { run(-6); }).code(), Code::InvalidArgument);
  const Error error = error_of([&] { run(0); });
  EXPECT_EQ(error.code(), Code::WrongState);
  EXPECT_THAT(error.what(), HasSubstr("reset()"));
  loaded.session->reset();
  EXPECT_EQ(run(0), 11);
}

}  // namespace
}  // namespace pumice::engine::test
