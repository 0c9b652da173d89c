// SPDX-License-Identifier: Apache-2.0
// Threads on one model, on one session and on sessions of their own: answers, and for `./dev test --tsan` no race.
#include <atomic>
#include <functional>
#include <thread>

#include "test/graph/make.h"

namespace pumice::engine::test {
namespace {

constexpr int kThreads = 6;
#if defined(PUMICE_SANITIZED)
constexpr int kCalls = 40;
#else
constexpr int kCalls = 200;
#endif

// Runs work(0), work(1), ... in threads that begin at once.
void together(const std::function<void(int)>& work) {
  std::atomic<int> waiting{kThreads};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      try {
        work(i);
      } catch (const Error& error) {
        ADD_FAILURE() << error.path() << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// z = 2 * x + 1 of an adds() session, for rows that are this thread's.
void call(Session& session, int thread, int index) {
  const int64_t rows = 1 + thread;
  const std::vector<float> x(static_cast<size_t>(rows) * 3, static_cast<float>(thread * kCalls + index));
  std::vector<float> z(x.size());
  session.call(0, std::vector{view(DType::f32, x, {rows, 3})}, [&](uint32_t, const OutputInfo& info) {
    EXPECT_EQ(info.bytes, z.size() * sizeof(float));
    return z.data();
  });
  EXPECT_EQ(z, std::vector<float>(x.size(), 2 * x[0] + 1));
}

TEST(Threads, OneSession) {
  const Bytes file = adds().file();
  const auto model = pumice::engine::Model::load(open_device, file);
  const auto session = model->session();
  together([&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      call(*session, thread, i);
      if (i % 16 == thread) session->reset();
      if (i % 16 == thread + 1) session->memory();
    }
  });
}

TEST(Threads, ASessionEach) {
  const Bytes file = adds().file();
  const auto model = pumice::engine::Model::load(open_device, file);
  together([&](int thread) {
    const auto session = model->session();
    for (int i = 0; i < kCalls; ++i) call(*session, thread, i);
  });
}

// Loads that share weights and pipelines, and end while others begin.
TEST(Threads, LoadsAndEnds) {
  const Bytes files[] = {adds().file(), counter().file(), lookup().file()};
  together([&](int thread) {
    for (int i = 0; i < kCalls / 8; ++i) {
      const auto model = pumice::engine::Model::load(open_device, files[(thread + i) % 3]);
      const auto session = model->session();
      if ((thread + i) % 3 == 0) call(*session, thread, i);
    }
  });
}

TEST(Threads, BadFilesBesideGoodOnes) {
  const Bytes good = adds().file(), bad(good.begin(), good.end() - 1);
  together([&](int thread) {
    for (int i = 0; i < kCalls / 8; ++i) {
      if (thread % 2 == 0) {
        call(*pumice::engine::Model::load(open_device, good)->session(), thread, i);
      } else {
        EXPECT_THROW(pumice::engine::Model::load(open_device, bad), Error);
      }
    }
  });
}

}  // namespace
}  // namespace pumice::engine::test
