// SPDX-License-Identifier: Apache-2.0
// The engine under the validation layer: no message for correct use, and one for wrong use.
#include <string_view>

#include "test/support/validation.h"
#include "test/vulkan/gpu.h"

namespace pumice::engine {
namespace {

using test::whole;

struct Validation : testing::Test {
  void SetUp() override {
    const char* on = std::getenv("PUMICE_VALIDATE");
    if (on == nullptr || std::string_view(on) == "0") GTEST_SKIP() << "runs with the validation layer only";
    device = test::open();
  }
  std::shared_ptr<Device> device;
};

// test/support/main.cpp checks that there was no message.
TEST_F(Validation, RightUseIsSilent) {
  test::run_two(device, true);
  test::run_two(device, true);
  const Buffer target = device->memory().buffer(1 << 20, MemoryKind::device, "target");
  Uploader uploader(device, 1 << 16, 2);
  const std::vector<std::byte> data(1 << 20);
  uploader.fill_zero(whole(target));
  uploader.put(data, whole(target));
  uploader.flush();
}

TEST_F(Validation, AllFeaturesAndNoneAreSilent) {
  for (const char* features : {"none", "-memory_model,-coopmat", "-storage16,-storage8"}) {
    device = test::open(features);
    test::run_two(device, true);
  }
  if (device->info().features.has(Feature::subgroup_size_control)) {
    device->pipelines().get({&test::kAdd, {64}, device->info().features.max_subgroup_size});
  }
}

// Wrong use must be reported: with a layer that reports nothing, the tests above could not fail.
TEST_F(Validation, AMissingBarrierIsReported) {
  const test::Messages messages;
  const test::Provoked mistake;
  test::run_two(device, false);
  EXPECT_GT(mistake.count(), 0u);
  ASSERT_FALSE(messages.texts.empty());
  EXPECT_THAT(messages.texts[0], testing::HasSubstr("SYNC-HAZARD"));
}

TEST_F(Validation, WrongUsageIsReported) {
  const test::Messages messages;
  const test::Provoked mistake;
  const Buffer a = device->memory().buffer(64, MemoryKind::device, "a");
  Commands commands(device);
  commands.begin();
  commands.copy({a.handle(), 0, 1024}, {a.handle(), 64, 1024});  // beyond the end of the buffer
  EXPECT_GT(mistake.count(), 0u);
}

}  // namespace
}  // namespace pumice::engine
