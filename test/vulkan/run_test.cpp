// SPDX-License-Identifier: Apache-2.0
// Runs in several submits: order, how many, and how they end early.
#include <cstring>
#include <set>

#include "test/vulkan/gpu.h"
#include "vulkan/queue.h"

namespace pumice::engine {
namespace {

using test::error_of;
using test::whole;
using testing::HasSubstr;
using OneRun = Run;  // a test has a function of that name

// Counts submits and the command buffers in them; a fence in `stuck` never comes.
struct Submits {
  static inline std::vector<uint32_t> buffers;
  static inline bool stuck = false;
  static inline PFN_vkQueueSubmit submit = nullptr;
  static inline PFN_vkWaitForFences wait = nullptr;
  static VkResult VKAPI_CALL count(VkQueue queue, uint32_t number, const VkSubmitInfo* infos, VkFence fence) {
    if (number > 0) buffers.push_back(infos[0].commandBufferCount);
    return submit(queue, number, infos, fence);
  }
  static VkResult VKAPI_CALL wait_or_not(VkDevice device, uint32_t number, const VkFence* all, VkBool32 every,
                                         uint64_t ns) {
    return stuck ? VK_TIMEOUT : wait(device, number, all, every, ns);
  }
  static void install(Vk& vk) {
    if (!vk.QueueSubmit || vk.QueueSubmit.pointer == &count) return;
    submit = vk.QueueSubmit.pointer;
    wait = vk.WaitForFences.pointer;
    vk.QueueSubmit.pointer = &count;
    vk.WaitForFences.pointer = &wait_or_not;
  }
};

// Words to which each part of the commands adds 1.
struct Parts : testing::Test {
  static constexpr uint32_t kWords = 256;
  Parts() { Submits::stuck = false; }

  Commands record(uint32_t parts, bool repeated = false) {
    Commands commands(device);
    commands.begin(0, repeated);
    for (uint32_t p = 0; p < parts; ++p) {
      if (p > 0) commands.cut();
      commands.barrier();
      test::add(commands, *device, whole(words), whole(words), kWords, 1);
    }
    commands.end();
    return commands;
  }
  // The words, which are all the same; they become 0.
  uint32_t take() {
    const Buffer out = device->memory().buffer(kWords * 4, MemoryKind::download, "answer");
    Commands commands(device);
    commands.begin();
    commands.copy(whole(words), whole(out));
    commands.barrier();
    commands.fill(whole(words), 0);
    commands.host_barrier();
    commands.end();
    device->run(commands);
    std::vector<uint32_t> all(kWords);
    std::memcpy(all.data(), out.mapped(), kWords * 4);
    EXPECT_EQ(std::set<uint32_t>(all.begin(), all.end()).size(), 1u);
    return all[0];
  }
  // Runs, and returns how many command buffers each submit had.
  std::vector<uint32_t> submits(const Commands& commands, OneRun& run) {
    Submits::buffers.clear();
    device->run(commands, run);
    return Submits::buffers;
  }

  const test::Hook hook{Submits::install};
  std::shared_ptr<Device> device = test::open();
  Buffer words = [this] {
    Buffer buffer = device->memory().buffer(kWords * 4, MemoryKind::device, "words");
    Commands commands(device);
    commands.begin();
    commands.fill(whole(buffer), 0);
    commands.end();
    device->run(commands);
    return buffer;
  }();
};

TEST_F(Parts, RunInOrderOneSubmitEach) {
  const Commands commands = record(5);
  for (int again = 0; again < 2; ++again) {
    OneRun run;
    EXPECT_THAT(submits(commands, run), testing::ElementsAre(1, 1, 1, 1, 1));
    EXPECT_EQ(take(), 5u);
    EXPECT_THAT(run.part_ns, testing::Each(testing::Lt(uint64_t{10'000'000'000})));
    EXPECT_EQ(run.part_ns.size(), 5u);
  }
}

TEST_F(Parts, AShortRunIsOneSubmit) {
  const Commands one = record(1, true), first = record(1);
  OneRun run{.times = 7, .first = &first};
  EXPECT_THAT(submits(one, run), testing::ElementsAre(8));
  EXPECT_EQ(take(), 8u);
}

TEST_F(Parts, TimesAreSplit) {
  const Commands one = record(1, true), three = record(3, true), first = record(1);
  OneRun several{.times = 7, .times_a_submit = 3, .first = &first};
  EXPECT_THAT(submits(one, several), testing::ElementsAre(4, 3, 1));
  EXPECT_EQ(take(), 8u);
  OneRun parts{.times = 2, .times_a_submit = 3, .first = &first};
  EXPECT_THAT(submits(three, parts), testing::ElementsAre(2, 1, 1, 1, 1, 1));
  EXPECT_EQ(take(), 7u);
}

TEST_F(Parts, APollThatThrowsStopsBetweenSubmits) {
  const Commands commands = record(9);
  int calls = 0;
  OneRun run{.poll = [&] {
    if (++calls == 4) fail(Code::Cancelled, Stage::execute, "", "enough");
  }};
  EXPECT_EQ(error_of([&] { device->run(commands, run); }).code(), Code::Cancelled);
  EXPECT_TRUE(run.began);
  EXPECT_EQ(take(), 4u) << "what was submitted has come to its end";
  OneRun again;
  device->run(commands, again);
  EXPECT_EQ(take(), 9u);
}

TEST_F(Parts, ATimeoutBetweenSubmitsKeepsTheDevice) {
  const Commands commands = record(9);
  OneRun run{.timeout_ns = 1};
  const Error error = error_of([&] { device->run(commands, run); });
  EXPECT_EQ(error.code(), Code::Timeout);
  EXPECT_THAT(error.what(), HasSubstr("can go on"));
  EXPECT_FALSE(device->is_lost());
  EXPECT_LT(take(), 9u);
  device->run(commands);
  EXPECT_EQ(take(), 9u);
}

TEST_F(Parts, ASubmitThatDoesNotEndLosesTheDevice) {
  const test::Messages quiet;
  const Commands commands = record(2);
  Submits::stuck = true;
  OneRun run{.timeout_ns = 1'000'000};
  const Error error = error_of([&] { device->run(commands, run); });
  EXPECT_EQ(error.code(), Code::Timeout);
  EXPECT_THAT(error.what(), HasSubstr("counts as lost"));
  EXPECT_TRUE(device->is_lost());
  Submits::stuck = false;
}

TEST_F(Parts, AFailedSubmitEndsWhatIsUnderWay) {
  const Commands commands = record(3), busy = record(1);
  device->queue().submit(busy.recorded());
  OneRun run{.first = &busy};  // is not recorded as repeated, but runs after itself
  Submits::buffers.clear();
  EXPECT_EQ(error_of([&] { device->run(busy, run); }).code(), Code::Busy);
  EXPECT_FALSE(run.began);
  device->queue().wait(busy.recorded());
  EXPECT_EQ(take(), 1u);
}

TEST_F(Parts, ADispatchInPieces) {
  const Pipeline& pipeline = device->pipelines().get({&test::kAdd, {64}, 0, true});
  const Slice slices[] = {whole(words), whole(words)};
  const test::AddParams params{kWords, 1};
  Commands commands(device);
  commands.begin();
  for (const auto& [first, count] : {std::pair{0u, 1u}, {1u, 2u}, {3u, 1u}}) {
    if (first > 0) commands.cut();
    commands.barrier();
    commands.dispatch(pipeline, slices, test::bytes(params), {count, 1, 1}, {first, 0, 0});
  }
  const uint32_t most = device->features().max_groups[0];
  EXPECT_EQ(
      error_of([&] { commands.dispatch(pipeline, slices, test::bytes(params), {2, 1, 1}, {most - 1, 0, 0}); }).code(),
      Code::LimitExceeded);
  commands.end();
  device->run(commands);
  EXPECT_EQ(take(), 1u) << "each word is in one piece";
}

}  // namespace
}  // namespace pumice::engine
