// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace pumice::engine::kernel_bench {
namespace {

using Say = std::function<void(const std::string&)>;

TEST(Workers, EveryPieceOnceAndItsWordsOnTheCallersThread) {
  const auto caller = std::this_thread::get_id();
  std::vector<int> said;
  std::atomic<uint32_t> largest = 0;
  in_threads(
      3, 200,
      [&](uint32_t thread, size_t i, const Say& say) {
        uint32_t known = largest;
        while (known < thread && !largest.compare_exchange_weak(known, thread)) continue;
        say(std::to_string(i));
      },
      [&](const std::string& text) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        said.push_back(std::stoi(text));
      });
  std::sort(said.begin(), said.end());
  ASSERT_EQ(said.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(said[static_cast<size_t>(i)], i);
  EXPECT_LT(largest, 3u);
}

TEST(Workers, AnExceptionEndsAll) {
  std::atomic<int> called = 0;
  const auto body = [&](uint32_t, size_t i, const Say&) {
    ++called;
    if (i == 1) throw std::runtime_error("one");
  };
  EXPECT_THROW(in_threads(2, 1'000'000, body, [](const std::string&) {}), std::runtime_error);
  EXPECT_LT(called, 1'000'000);
  const auto says = [](uint32_t, size_t, const Say& say) { say("word"); };
  EXPECT_THROW(in_threads(2, 8, says, [](const std::string&) { throw std::runtime_error("two"); }), std::runtime_error);
}

TEST(Workers, NothingToDo) {
  in_threads(4, 0, [](uint32_t, size_t, const Say&) { FAIL(); }, [](const std::string&) { FAIL(); });
}

}  // namespace
}  // namespace pumice::engine::kernel_bench
