// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <random>
#include <stdexcept>

#include "test/vulkan/gpu.h"

namespace pumice::engine {
namespace {

using test::error_of;
using test::whole;
using testing::HasSubstr;

TEST(Memory, CountsAndGivesBack) {
  const auto device = test::open("-int64");
  Memory& memory = device->memory();
  const uint64_t before = memory.use().device_bytes;
  {
    const Buffer a = memory.buffer(1, MemoryKind::device, "a");
    EXPECT_EQ(a.bytes(), 16u);
    Buffer b = memory.buffer(100, MemoryKind::device, "b");
    EXPECT_EQ(memory.use().device_bytes - before, 16u + 112u);
    b = memory.buffer(0, MemoryKind::device, "c");
    EXPECT_EQ(memory.use().device_bytes - before, 16u + 16u);
    EXPECT_EQ(a.mapped() != nullptr, memory.unified());
    const Buffer up = memory.buffer(64, MemoryKind::upload, "up"),
                 down = memory.buffer(64, MemoryKind::download, "down");
    EXPECT_NE(up.mapped(), nullptr);
    EXPECT_NE(down.mapped(), nullptr);
    EXPECT_EQ(memory.use().upload_bytes, 64u);
    EXPECT_EQ(memory.use().download_bytes, 64u);
  }
  EXPECT_EQ(memory.use().device_bytes, before);
  EXPECT_EQ(memory.use().upload_bytes, 0u);
}

TEST(Memory, ABufferOutlivesItsDevice) {
  Buffer buffer;
  {
    const auto device = test::open("-int64,-int16");
    buffer = device->memory().buffer(1 << 20, MemoryKind::upload, "late");
  }
  std::memset(buffer.mapped(), 1, 1 << 20);
  Buffer moved = std::move(buffer);
  EXPECT_FALSE(buffer);
  EXPECT_EQ(moved.bytes(), 1u << 20);
}

TEST(Memory, TooMuchNamesTheThingAndTheLimit) {
  const auto device = test::open();
  for (const uint64_t bytes : {device->features().max_allocation_bytes + 1, ~uint64_t{0}}) {
    const Error error = error_of([&] { device->memory().buffer(bytes, MemoryKind::device, "tensor 'w'"); });
    EXPECT_EQ(error.code(), Code::LimitExceeded);
    EXPECT_EQ(error.path(), "tensor 'w'");
    EXPECT_THAT(error.what(), HasSubstr("tensor 'w' takes " + std::to_string(bytes)));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(device->features().max_allocation_bytes)));
  }
}

std::vector<std::byte> download(const std::shared_ptr<Device>& device, const Buffer& buffer, size_t bytes) {
  const Buffer out = device->memory().buffer(bytes, MemoryKind::download, "answer");
  Commands commands(device);
  commands.begin();
  commands.copy(whole(buffer), {out.handle(), 0, bytes});
  commands.host_barrier();
  commands.end();
  device->run(commands);
  return {out.mapped(), out.mapped() + bytes};
}

std::vector<std::byte> noise(size_t bytes) {
  std::mt19937 random(7);
  std::vector<std::byte> data(bytes);
  for (auto& each : data) each = static_cast<std::byte>(random());
  return data;
}

// With and without mapped device memory: the hook can hide the memory types that the host can map.
class Upload : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) return;
    set_vulkan_hook([](Vk& vk) {
      if (!vk.GetPhysicalDeviceMemoryProperties || !vk.CreateFence) return;
      static PFN_vkGetPhysicalDeviceMemoryProperties real;
      static PFN_vkGetPhysicalDeviceMemoryProperties2 real2;
      real = vk.GetPhysicalDeviceMemoryProperties.pointer;
      real2 = vk.GetPhysicalDeviceMemoryProperties2.pointer;
      vk.GetPhysicalDeviceMemoryProperties.pointer = [](VkPhysicalDevice device,
                                                        VkPhysicalDeviceMemoryProperties* out) {
        real(device, out);
        hide(*out);
      };
      vk.GetPhysicalDeviceMemoryProperties2.pointer = [](VkPhysicalDevice device,
                                                         VkPhysicalDeviceMemoryProperties2* out) {
        real2(device, out);
        hide(out->memoryProperties);
      };
    });
  }
  void TearDown() override {
    if (!GetParam()) set_vulkan_hook({});
  }
  static void hide(VkPhysicalDeviceMemoryProperties& memory) {
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      memory.memoryTypes[i].propertyFlags &= ~static_cast<VkMemoryPropertyFlags>(VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    }
  }
};

TEST_P(Upload, ArrivesWholeThroughASmallRing) {
  const auto device = test::open();
  if (!GetParam()) {
    EXPECT_FALSE(device->memory().unified());
  }
  const std::vector<std::byte> data = noise(3'000'017);
  const Buffer buffer = device->memory().buffer(data.size() + 4096, MemoryKind::device, "target");
  Uploader uploader(device, 100'000, 3);
  uploader.fill_zero(whole(buffer));
  uploader.put({data.data(), 1001}, {buffer.handle(), 0, 1001});
  uploader.put(std::span(data).subspan(1001), {buffer.handle(), 1001, data.size() - 1001});
  uploader.put({}, {buffer.handle(), 0, 0});
  uploader.flush();
  std::vector<std::byte> wanted = data;
  wanted.resize(data.size() + 4096);
  EXPECT_EQ(download(device, buffer, wanted.size()), wanted);
}

TEST_P(Upload, ArrivesWholeWhereLessWasExpected) {
  const auto device = test::open();
  const std::vector<std::byte> data = noise(300'001);
  const Buffer buffer = device->memory().buffer(data.size() + 3, MemoryKind::device, "target");
  Uploader uploader(device);
  uploader.expect(1);  // a ring of the least chunks
  uploader.put(data, whole(buffer));
  uploader.flush();
  EXPECT_EQ(download(device, buffer, data.size()), data);
}

TEST_P(Upload, ALaterRunSeesWhatWasSubmitted) {
  const auto device = test::open();
  const std::vector<std::byte> data = noise(1 << 16);
  const Buffer buffer = device->memory().buffer(data.size(), MemoryKind::device, "target");
  Uploader uploader(device, 1 << 15, 2);
  uploader.put(data, whole(buffer));
  uploader.submit();
  EXPECT_EQ(download(device, buffer, data.size()), data);
}

TEST_P(Upload, ConvertsOnTheWay) {
  const auto device = test::open();
  std::vector<int64_t> in(700'001);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int64_t>(i) - 350'000;
  const Buffer buffer = device->memory().buffer(in.size() * 4, MemoryKind::device, "target");
  Uploader uploader(device, 100'000, 2);
  const Uploader::Conversion narrow{8, 4, [](std::byte* out, const std::byte* from, size_t count) {
                                      for (size_t i = 0; i < count; ++i) {
                                        int64_t wide = 0;
                                        std::memcpy(&wide, from + i * 8, 8);
                                        if (wide == 7) throw std::out_of_range("seven");
                                        const auto word = static_cast<int32_t>(wide);
                                        std::memcpy(out + i * 4, &word, 4);
                                      }
                                    }};
  EXPECT_THROW(uploader.put(std::as_bytes(std::span(in)), whole(buffer), narrow), std::out_of_range);
  in[350'007] = 0;
  uploader.put(std::as_bytes(std::span(in)), whole(buffer), narrow);
  uploader.flush();
  const std::vector<std::byte> bytes = download(device, buffer, in.size() * 4);
  for (size_t i = 0; i < in.size(); ++i) {
    int32_t got = 0;
    std::memcpy(&got, bytes.data() + i * 4, 4);
    ASSERT_EQ(got, in[i]) << i;
  }
}

TEST_P(Upload, TooLongForItsTarget) {
  const auto device = test::open();
  const Buffer buffer = device->memory().buffer(64, MemoryKind::device, "target");
  Uploader uploader(device);
  const std::vector<std::byte> data(65);
  EXPECT_EQ(error_of([&] { uploader.put(data, whole(buffer)); }).code(), Code::Internal);
}

INSTANTIATE_TEST_SUITE_P(Memory, Upload, testing::Bool(),
                         [](const auto& each) { return each.param ? "AsIs" : "Staged"; });

}  // namespace
}  // namespace pumice::engine
