// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "test/vulkan/faults.h"

namespace pumice::engine {
namespace {

using test::error_of;
using test::whole;
using testing::HasSubstr;

// Buffers of words in every kind of device memory, written and read by copies.
struct Words {
  Words(std::shared_ptr<Device> the_device, uint32_t the_count)
      : device(std::move(the_device)),
        count(the_count),
        buffer(device->memory().buffer(count * 4, MemoryKind::device, "words")) {}
  void set(const std::vector<uint32_t>& words) {
    Uploader uploader(device, 1 << 16, 2);
    uploader.put(std::as_bytes(std::span(words)), whole(buffer));
    uploader.flush();
  }
  std::vector<uint32_t> get() {
    Buffer out = device->memory().buffer(count * 4, MemoryKind::download, "answer");
    Commands commands(device);
    commands.begin();
    commands.copy(whole(buffer), whole(out));
    commands.host_barrier();
    commands.end();
    device->run(commands);
    std::vector<uint32_t> words(count);
    std::memcpy(words.data(), out.mapped(), count * 4);
    return words;
  }
  std::shared_ptr<Device> device;
  uint32_t count;
  Buffer buffer;
};

std::vector<uint32_t> iota(uint32_t count, uint32_t first = 0) {
  std::vector<uint32_t> words(count);
  std::iota(words.begin(), words.end(), first);
  return words;
}

TEST(Commands, DispatchesInOrderAndAgain) {
  const auto device = test::open();
  Words a(device, 1000), b(device, 1000);
  a.set(iota(1000));
  Commands commands(device);
  commands.begin();
  test::add(commands, *device, whole(b.buffer), whole(a.buffer), 1000, 5);
  commands.barrier();
  test::add(commands, *device, whole(a.buffer), whole(b.buffer), 1000, 7);
  commands.end();
  for (uint32_t run = 1; run <= 3; ++run) {
    device->run(commands);
    EXPECT_EQ(a.get(), iota(1000, 12 * run));
  }
}

TEST(Commands, RecordsAgainWithMoreThanItsFirstPool) {
  const auto device = test::open();
  const uint64_t step = std::max<uint64_t>(device->features().storage_alignment, 256);
  const Buffer buffer = device->memory().buffer(step * 300, MemoryKind::device, "many");
  Commands commands(device);
  for (int round = 0; round < 2; ++round) {
    commands.begin();
    commands.fill(whole(buffer), 0);
    commands.barrier();
    for (uint32_t i = 0; i + 1 < 300; ++i) {
      for (int twice = 0; twice < 2; ++twice) {
        test::add(commands, *device, {buffer.handle(), (i + 1) * step, 16}, {buffer.handle(), i * step, 16}, 4, 1);
        commands.barrier();
      }
    }
    commands.end();
    device->run(commands);
    Buffer out = device->memory().buffer(16, MemoryKind::download, "answer");
    Commands read(device);
    read.begin();
    read.copy({buffer.handle(), 299 * step, 16}, whole(out));
    read.host_barrier();
    read.end();
    device->run(read);
    uint32_t last = 0;
    std::memcpy(&last, out.mapped(), 4);
    EXPECT_EQ(last, 299u);
  }
}

TEST(Commands, FillAndPartCopies) {
  const auto device = test::open();
  Words words(device, 16);
  Commands commands(device);
  commands.begin();
  commands.fill(whole(words.buffer), 3);
  commands.barrier();
  commands.fill({words.buffer.handle(), 16, 16}, 9);
  commands.fill({words.buffer.handle(), 0, 0}, 1);
  commands.end();
  device->run(commands);
  EXPECT_EQ(words.get(), (std::vector<uint32_t>{3, 3, 3, 3, 9, 9, 9, 9, 3, 3, 3, 3, 3, 3, 3, 3}));
}

TEST(Commands, Timestamps) {
  const auto device = test::open();
  Words words(device, 4096);
  Commands commands(device);
  commands.begin(3);
  commands.timestamp(0);
  test::add(commands, *device, whole(words.buffer), whole(words.buffer), 4096, 1);
  commands.timestamp(1);
  commands.barrier();
  commands.timestamp(2);
  EXPECT_EQ(error_of([&] { commands.timestamp(3); }).code(), Code::Internal);
  commands.end();
  device->run(commands);
  const std::vector<double> times = commands.timestamps_us();
  ASSERT_EQ(times.size(), 3u);
  EXPECT_EQ(times[0], 0);
  EXPECT_GE(times[1], 0);
  EXPECT_GE(times[2], times[1]);
  EXPECT_LT(times[2], 10e6);
}

TEST(Commands, RefusesWhatWouldGoWrong) {
  const auto device = test::open();
  const Features& features = device->features();
  Words words(device, 64);
  Commands commands(device);
  EXPECT_EQ(error_of([&] { commands.barrier(); }).code(), Code::WrongState);
  EXPECT_EQ(error_of([&] { device->run(commands); }).code(), Code::WrongState);
  commands.begin();
  EXPECT_EQ(error_of([&] { device->run(commands); }).code(), Code::WrongState);
  const Pipeline& pipeline = device->pipelines().get({&test::kAdd, {64}, 0});
  const Slice one = whole(words.buffer);
  const Slice slices[] = {one, one};
  const test::AddParams params{64, 1};
  const auto dispatch = [&](std::span<const Slice> with, std::array<uint32_t, 3> groups) {
    return error_of([&] { commands.dispatch(pipeline, with, test::bytes(params), groups); });
  };
  EXPECT_EQ(dispatch({slices, 1}, {1, 1, 1}).code(), Code::Internal);
  EXPECT_EQ(dispatch(slices, {0, 1, 1}).code(), Code::LimitExceeded);
  if (features.max_groups[1] < ~0u) {
    const Error error = dispatch(slices, {1, features.max_groups[1] + 1, 1});
    EXPECT_EQ(error.code(), Code::LimitExceeded);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(features.max_groups[1])));
    EXPECT_EQ(error.path(), "test_add");
  }
  const Slice big[] = {one, {words.buffer.handle(), 0, features.max_storage_bytes + 1}};
  EXPECT_EQ(dispatch(big, {1, 1, 1}).code(), Code::LimitExceeded);
  const Slice odd[] = {one, {words.buffer.handle(), 4, 16}};
  EXPECT_EQ(dispatch(odd, {1, 1, 1}).code(), Code::Internal);
}

// A driver may take long to make one. Those of long recordings, of several parts, go at once.
TEST(Commands, PoolsAreKeptForTheNext) {
  const test::FaultHook hook;
  const auto device = test::open();
  const auto made = [] { return std::ranges::count(test::faults().names, "vkCreateCommandPool"); };
  Words words(device, 64);
  for (uint32_t i = 0; i < 5; ++i) {
    words.set(iota(64, i));
    EXPECT_EQ(words.get(), iota(64, i));
  }
  const auto kept = made();
  EXPECT_EQ(kept, 1);
  for (int i = 0; i < 2; ++i) {
    Commands commands(device);
    commands.begin();
    commands.cut();
    commands.end();
    device->run(commands);
  }
  EXPECT_EQ(made(), 2);
}

TEST(Commands, SessionsOnSeveralThreads) {
  const auto device = test::open();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&device, t] {
      Words words(device, 256);
      words.set(iota(256, t));
      Commands commands(device);
      commands.begin();
      test::add(commands, *device, whole(words.buffer), whole(words.buffer), 256, 1);
      commands.end();
      for (int i = 0; i < 50; ++i) device->run(commands);
      EXPECT_EQ(words.get(), iota(256, t + 50));
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST(Pipelines, AreMadeOnceAndKept) {
  const auto device = test::open("-int_dot");
  const uint32_t before = device->pipelines().created();
  std::vector<PipelineKey> keys;
  for (const uint32_t size : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 64u}) keys.push_back({&test::kAdd, {size}, 0});
  device->pipelines().prepare(keys);
  EXPECT_EQ(device->pipelines().created() - before, 8u);
  const Pipeline& one = device->pipelines().get(keys[3]);
  EXPECT_EQ(&one, &device->pipelines().get(keys[3]));
  EXPECT_EQ(device->pipelines().created() - before, 8u);
  EXPECT_EQ(one.layout, device->pipelines().get(keys[5]).layout);
}

TEST(Pipelines, RefuseWhatTheDeviceCannot) {
  const auto device = test::open("none");
  Shader shader = test::kAdd;
  shader.features = bit(Feature::int_dot) | bit(Feature::float16);
  const Error error = error_of([&] { device->pipelines().get({&shader, {64}, 0}); });
  EXPECT_EQ(error.code(), Code::DeviceUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("test_add needs float16, int_dot"));
  const auto refused = [&](const PipelineKey& key) { return error_of([&] { device->pipelines().get(key); }).code(); };
  EXPECT_EQ(refused({&test::kAdd, {device->features().max_invocations + 1}, 0}), Code::DeviceUnsupported);
  EXPECT_EQ(refused({&test::kAdd, {0}, 0}), Code::DeviceUnsupported);
  EXPECT_EQ(refused({&test::kAdd, {64}, 8}), Code::DeviceUnsupported) << "subgroup_size_control is off";
  EXPECT_EQ(refused({&test::kAdd, {64, 1}, 0}), Code::Internal);
}

TEST(Pipelines, RequiredSubgroupSize) {
  const auto device = test::open();
  if (!device->features().has(Feature::subgroup_size_control)) GTEST_SKIP() << "no subgroup_size_control";
  EXPECT_NO_THROW(device->pipelines().get({&test::kAdd, {64}, device->features().max_subgroup_size}));
}

}  // namespace
}  // namespace pumice::engine
