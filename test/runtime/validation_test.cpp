// SPDX-License-Identifier: Apache-2.0
// The runtime under the validation layer: nothing is said of right use, and something of wrong use.
#include "test/runtime/gpu.h"

namespace pumice {
namespace {

using test::whole;

struct Validation : testing::Test {
  void SetUp() override {
    setenv("PUMICE_VALIDATE", "1", 1);
    set_vulkan_hook({});
    try {
      device = test::open();
    } catch (const Error& error) {
      if (std::string(error.what()).find("VK_LAYER_KHRONOS_validation") != std::string::npos)
        GTEST_SKIP() << error.what();
      throw;
    }
    before = validation_messages();
  }
  void TearDown() override {
    device.reset();
    unsetenv("PUMICE_VALIDATE");
    set_vulkan_hook({});
  }
  uint64_t said() const { return validation_messages() - before; }

  // Two dependent dispatches, with or without the barrier between them.
  void run(bool barrier) {
    const Buffer a = device->memory().buffer(4096, MemoryKind::device, "a");
    const Buffer b = device->memory().buffer(4096, MemoryKind::device, "b");
    Commands commands(device);
    commands.begin(2);
    commands.timestamp(0);
    commands.fill(whole(a), 1);
    commands.barrier();
    test::add(commands, *device, whole(b), whole(a), 1024, 1);
    if (barrier) commands.barrier();
    test::add(commands, *device, whole(a), whole(b), 1024, 1);
    commands.timestamp(1);
    commands.end();
    device->run(commands);
    commands.timestamps_us();
  }

  std::shared_ptr<Device> device;
  uint64_t before = 0;
};

TEST_F(Validation, RightUseIsSilent) {
  test::Messages messages;
  run(true);
  run(true);
  const Buffer target = device->memory().buffer(1 << 20, MemoryKind::device, "target");
  Uploader uploader(device, 1 << 16, 2);
  const std::vector<std::byte> data(1 << 20);
  uploader.fill_zero(whole(target));
  uploader.put(data, whole(target));
  uploader.flush();
  device.reset();
  EXPECT_EQ(said(), 0u) << testing::PrintToString(messages.texts);
}

TEST_F(Validation, AllFeaturesAndNoneAreSilent) {
  test::Messages messages;
  for (const char* features : {"none", "-memory_model,-coopmat", "-storage16,-storage8"}) {
    device = test::open(features);
    run(true);
  }
  if (device->info().features.has(Feature::subgroup_size_control)) {
    device->pipelines().get({&test::kAdd, {64}, device->info().features.max_subgroup_size});
  }
  EXPECT_EQ(said(), 0u) << testing::PrintToString(messages.texts);
}

// The controls: a layer that says nothing of these would prove nothing above.
TEST_F(Validation, AMissingBarrierIsReported) {
  test::Messages messages;
  run(false);
  EXPECT_GT(said(), 0u);
  ASSERT_FALSE(messages.texts.empty());
  EXPECT_THAT(messages.texts[0], testing::HasSubstr("SYNC-HAZARD"));
}

TEST_F(Validation, WrongUsageIsReported) {
  test::Messages messages;
  const Buffer a = device->memory().buffer(64, MemoryKind::device, "a");
  Commands commands(device);
  commands.begin();
  commands.copy({a.handle(), 0, 1024}, {a.handle(), 64, 1024});  // past the end
  EXPECT_GT(said(), 0u);
}

}  // namespace
}  // namespace pumice
