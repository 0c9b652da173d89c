// SPDX-License-Identifier: Apache-2.0
// Pipelines that several threads want: none waits for what it does not need, and none is made twice.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "test/vulkan/gpu.h"

namespace pumice::engine {
namespace {

using std::chrono::seconds;
using test::error_of;

// Pipelines with this local size wait, in the driver's call, until they are let go.
constexpr uint32_t kSlow = 32;

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0, made = 0;
  bool open = false, fails = false;
  PFN_vkCreateComputePipelines real = nullptr;

  VkResult pass() {
    std::unique_lock lock(mutex);
    ++waiting;
    changed.notify_all();
    changed.wait_for(lock, seconds(60), [&] { return open; });
    ++made;
    return fails ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_SUCCESS;
  }
  bool await(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, seconds(60), [&] { return waiting >= count; });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};
Gate* gate = nullptr;

struct PipelinesOfThreads : testing::Test {
  Gate mine;
  const test::Hook hook{[](Vk& vk) {
    if (!vk.CreateComputePipelines) return;
    gate->real = vk.CreateComputePipelines.pointer;
    vk.CreateComputePipelines.pointer = [](VkDevice device, VkPipelineCache cache, uint32_t count,
                                           const VkComputePipelineCreateInfo* infos,
                                           const VkAllocationCallbacks* callbacks, VkPipeline* out) {
      const auto* spec = infos->stage.pSpecializationInfo;
      if (spec != nullptr && spec->dataSize >= 4 && *static_cast<const uint32_t*>(spec->pData) == kSlow) {
        if (const VkResult result = gate->pass(); result != VK_SUCCESS) return result;
      }
      return gate->real(device, cache, count, infos, callbacks, out);
    };
  }};
  PipelinesOfThreads() { gate = &mine; }
};

TEST_F(PipelinesOfThreads, ARunGoesOnWhileAnotherThreadCompiles) {
  const auto device = test::open();
  std::thread other([&] { device->pipelines().get({&test::kAdd, {kSlow}, 0}); });
  ASSERT_TRUE(mine.await(1));
  test::run_two(device, true);  // makes a pipeline of its own, submits and waits
  EXPECT_EQ(mine.made, 0);
  mine.let_go();
  other.join();
  EXPECT_EQ(mine.made, 1);
}

TEST_F(PipelinesOfThreads, TwoThatWantTheSameMakeItOnce) {
  const auto device = test::open();
  const Pipeline* found[2] = {};
  std::thread first([&] { found[0] = &device->pipelines().get({&test::kAdd, {kSlow}, 0}); });
  ASSERT_TRUE(mine.await(1));
  std::thread second([&] { found[1] = &device->pipelines().get({&test::kAdd, {kSlow}, 0}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  mine.let_go();
  first.join();
  second.join();
  EXPECT_EQ(mine.made, 1);
  EXPECT_EQ(found[0], found[1]);
}

TEST_F(PipelinesOfThreads, WhatFailsForOneIsTriedAgainByTheOther) {
  const auto device = test::open();
  mine.fails = true;
  std::thread first([&] {
    EXPECT_EQ(error_of([&] { device->pipelines().get({&test::kAdd, {kSlow}, 0}); }).code(), Code::OutOfHostMemory);
  });
  ASSERT_TRUE(mine.await(1));
  std::thread second([&] {
    EXPECT_EQ(error_of([&] { device->pipelines().get({&test::kAdd, {kSlow}, 0}); }).code(), Code::OutOfHostMemory);
  });
  mine.let_go();
  first.join();
  second.join();
  EXPECT_EQ(mine.made, 2);
}

TEST_F(PipelinesOfThreads, NobodyWaitsForOthersBeyondTheDeadline) {
  const auto device = test::open();
  std::thread other([&] { device->pipelines().get({&test::kAdd, {kSlow}, 0}); });
  ASSERT_TRUE(mine.await(1));
  const PipelineKey slow{&test::kAdd, {kSlow}, 0};
  const Error error = error_of([&] { device->pipelines().prepare({&slow, 1}, Deadline(0.05)); });
  EXPECT_EQ(error.code(), Code::Timeout);
  EXPECT_FALSE(device->is_lost());
  mine.let_go();
  other.join();
}

TEST_F(PipelinesOfThreads, BegunOnesAreThereOneByOne) {
  const auto device = test::open();
  const PipelineKey slow{&test::kAdd, {kSlow}, 0}, other{&test::kAdd, {2 * kSlow}, 0};
  device->pipelines().begin({slow, other});
  ASSERT_TRUE(mine.await(1));
  device->pipelines().prepare({&other, 1}, Deadline(60));  // though the slow one is not made yet
  EXPECT_EQ(mine.made, 0);
  mine.let_go();
  device->pipelines().get(slow);
  EXPECT_EQ(mine.made, 1);
  EXPECT_EQ(device->pipelines().created(), 2u);
}

TEST_F(PipelinesOfThreads, WhatFailsIsSaidWhereItIsNeeded) {
  const auto device = test::open();
  mine.fails = true;
  device->pipelines().begin({{&test::kAdd, {kSlow}, 0}});
  ASSERT_TRUE(mine.await(1));
  mine.let_go();
  EXPECT_EQ(error_of([&] { device->pipelines().get({&test::kAdd, {kSlow}, 0}); }).code(), Code::OutOfHostMemory);
}

TEST_F(PipelinesOfThreads, ADeviceWaitsForThem) {
  auto device = test::open();
  device->pipelines().begin({{&test::kAdd, {kSlow}, 0}});
  ASSERT_TRUE(mine.await(1));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    mine.let_go();
  });
  device.reset();
  EXPECT_EQ(mine.made, 1);
  later.join();
}

// Within a minute, on other threads.
bool will_have_created(Device& device, uint32_t count) {
  for (int i = 0; i < 60'000 && device.pipelines().created() != count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return device.pipelines().created() == count;
}

TEST_F(PipelinesOfThreads, IdleOnesAreMadeOnceAndHoldNobodyUp) {
  const auto device = test::open();
  const PipelineKey slow{&test::kAdd, {kSlow}, 0}, other{&test::kAdd, {2 * kSlow}, 0};
  device->pipelines().begin_idle([&](const Deadline&) { return std::vector{slow, slow, other, slow}; });
  ASSERT_TRUE(mine.await(1));
  device->pipelines().prepare({&other, 1}, Deadline(60));  // whoever makes it
  EXPECT_EQ(mine.made, 0);
  mine.let_go();
  device->pipelines().get(slow);
  EXPECT_EQ(mine.made, 1);
  EXPECT_EQ(device->pipelines().created(), 2u);
}

TEST_F(PipelinesOfThreads, IdleOnesWaitForACore) {
  const auto device = test::open();
  std::vector<PipelineKey> busy;  // one for each core
  for (uint32_t i = 0; i < std::max(std::thread::hardware_concurrency(), 1u); ++i)
    busy.push_back({&test::kAdd, {kSlow}, 0, i % 2 == 1});
  if (busy.size() > 2) GTEST_SKIP() << "there are only two slow pipelines";
  device->pipelines().begin(busy);
  ASSERT_TRUE(mine.await(static_cast<int>(busy.size())));
  const PipelineKey other{&test::kAdd, {2 * kSlow}, 0};
  device->pipelines().begin_idle([&](const Deadline&) { return std::vector{other}; });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(device->pipelines().created(), 0u);
  mine.let_go();
  EXPECT_TRUE(will_have_created(*device, static_cast<uint32_t>(busy.size()) + 1));
}

TEST_F(PipelinesOfThreads, WhatFailsAheadIsMadeWhereItIsNeeded) {
  const auto device = test::open();
  mine.fails = true;
  device->pipelines().begin_idle([](const Deadline&) {
    return std::vector<PipelineKey>{{&test::kAdd, {kSlow}, 0}, {&test::kAdd, {~0u}, 0}, {&test::kAdd, {2 * kSlow}, 0}};
  });
  ASSERT_TRUE(mine.await(1));
  mine.let_go();
  EXPECT_TRUE(will_have_created(*device, 1));
  mine.fails = false;
  device->pipelines().get({&test::kAdd, {kSlow}, 0});
  EXPECT_EQ(device->pipelines().created(), 2u);
}

TEST(Pipelines, ADeadlineStopsBetweenTwo) {
  const auto device = test::open("-int_dot");
  std::vector<PipelineKey> keys;
  for (uint32_t size = 1; size <= 128; ++size) keys.push_back({&test::kAdd, {size}, 0});
  EXPECT_EQ(error_of([&] { device->pipelines().prepare(keys, Deadline(1e-9)); }).code(), Code::Timeout);
  EXPECT_LT(device->pipelines().created(), 128u);
  device->pipelines().prepare(keys, Deadline(3600));
  EXPECT_GE(device->pipelines().created(), 128u);
}

}  // namespace
}  // namespace pumice::engine
