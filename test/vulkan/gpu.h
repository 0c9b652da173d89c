// SPDX-License-Identifier: Apache-2.0
// Shared by these tests: a device, a tiny shader, a hook that replaces Vulkan functions.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "test/support/error_of.h"
#include "vulkan/command.h"
#include "vulkan/device.h"
#include "vulkan/device_choice.h"
#include "vulkan/functions.h"
#include "vulkan/instance.h"
#include "vulkan/memory.h"
#include "vulkan/physical.h"
#include "vulkan/pipeline.h"
#include "vulkan/upload.h"

namespace pumice::engine::test {

// The device under test: PUMICE_DEVICE, else the CPU driver of a checkout.
inline DeviceOptions options(std::string features = "", std::string cache_dir = "off") {
  const char* device = std::getenv("PUMICE_DEVICE");
  return {device != nullptr && *device != 0 ? device : "llvmpipe", std::move(features), std::move(cache_dir)};
}

inline std::shared_ptr<Device> open(std::string features = "", std::string cache_dir = "off") {
  return Device::open(options(std::move(features), std::move(cache_dir)));
}

// What a file of the cache is for.
inline Physical some_device() {
  Physical physical;
  physical.info.vendor_id = 0x10de;
  physical.info.device_id = 0x2335;
  physical.info.driver_number = 42;
  for (int i = 0; i < 16; ++i) physical.cache_uuid[i] = static_cast<uint8_t>(i * 3);
  return physical;
}

// Collects the log during its lifetime.
struct Messages {
  explicit Messages(LogLevel threshold = LogLevel::warning) {
    set_log([this](LogLevel, const std::string& text) { texts.push_back(text); }, threshold);
  }
  ~Messages() { set_log({}); }
  std::vector<std::string> texts;
};

// Replaces functions of the Vulkan table during its lifetime; devices opened meanwhile use them.
struct Hook {
  explicit Hook(std::function<void(Vk&)> function) { set_vulkan_hook(std::move(function)); }
  ~Hook() { set_vulkan_hook({}); }
};

// A new empty folder, removed at the end.
struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pumice-test-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

// Made by glslang -V --target-env vulkan1.1 -Os -g0 from
//   #version 460
//   layout(local_size_x_id = 0) in;
//   layout(set = 0, binding = 0) buffer Out { uint out_words[]; };
//   layout(set = 0, binding = 1) readonly buffer In { uint in_words[]; };
//   layout(push_constant) uniform Params { uint count; uint add; };
//   void main() {
//     uint i = gl_GlobalInvocationID.x;
//     if (i < count) out_words[i] = in_words[i] + add;
//   }
inline constexpr uint32_t kAddWords[] = {
    0x07230203, 0x00010300, 0x0008000b, 0x00000032, 0x00000000, 0x00020011, 0x00000001, 0x0006000b, 0x00000001,
    0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001, 0x0006000f, 0x00000005,
    0x00000004, 0x6e69616d, 0x00000000, 0x0000000b, 0x00060010, 0x00000004, 0x00000011, 0x00000001, 0x00000001,
    0x00000001, 0x00040047, 0x0000000b, 0x0000000b, 0x0000001c, 0x00030047, 0x00000011, 0x00000002, 0x00050048,
    0x00000011, 0x00000000, 0x00000023, 0x00000000, 0x00050048, 0x00000011, 0x00000001, 0x00000023, 0x00000004,
    0x00040047, 0x0000001d, 0x00000006, 0x00000004, 0x00030047, 0x0000001e, 0x00000002, 0x00050048, 0x0000001e,
    0x00000000, 0x00000023, 0x00000000, 0x00040047, 0x00000020, 0x00000021, 0x00000000, 0x00040047, 0x00000020,
    0x00000022, 0x00000000, 0x00040047, 0x00000022, 0x00000006, 0x00000004, 0x00030047, 0x00000023, 0x00000002,
    0x00040048, 0x00000023, 0x00000000, 0x00000018, 0x00050048, 0x00000023, 0x00000000, 0x00000023, 0x00000000,
    0x00030047, 0x00000025, 0x00000018, 0x00040047, 0x00000025, 0x00000021, 0x00000001, 0x00040047, 0x00000025,
    0x00000022, 0x00000000, 0x00040047, 0x0000002f, 0x00000001, 0x00000000, 0x00040047, 0x00000031, 0x0000000b,
    0x00000019, 0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002, 0x00040015, 0x00000006, 0x00000020,
    0x00000000, 0x00040017, 0x00000009, 0x00000006, 0x00000003, 0x00040020, 0x0000000a, 0x00000001, 0x00000009,
    0x0004003b, 0x0000000a, 0x0000000b, 0x00000001, 0x0004002b, 0x00000006, 0x0000000c, 0x00000000, 0x00040020,
    0x0000000d, 0x00000001, 0x00000006, 0x0004001e, 0x00000011, 0x00000006, 0x00000006, 0x00040020, 0x00000012,
    0x00000009, 0x00000011, 0x0004003b, 0x00000012, 0x00000013, 0x00000009, 0x00040015, 0x00000014, 0x00000020,
    0x00000001, 0x0004002b, 0x00000014, 0x00000015, 0x00000000, 0x00040020, 0x00000016, 0x00000009, 0x00000006,
    0x00020014, 0x00000019, 0x0003001d, 0x0000001d, 0x00000006, 0x0003001e, 0x0000001e, 0x0000001d, 0x00040020,
    0x0000001f, 0x0000000c, 0x0000001e, 0x0004003b, 0x0000001f, 0x00000020, 0x0000000c, 0x0003001d, 0x00000022,
    0x00000006, 0x0003001e, 0x00000023, 0x00000022, 0x00040020, 0x00000024, 0x0000000c, 0x00000023, 0x0004003b,
    0x00000024, 0x00000025, 0x0000000c, 0x00040020, 0x00000027, 0x0000000c, 0x00000006, 0x0004002b, 0x00000014,
    0x0000002a, 0x00000001, 0x00040032, 0x00000006, 0x0000002f, 0x00000001, 0x0004002b, 0x00000006, 0x00000030,
    0x00000001, 0x00060033, 0x00000009, 0x00000031, 0x0000002f, 0x00000030, 0x00000030, 0x00050036, 0x00000002,
    0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x00050041, 0x0000000d, 0x0000000e, 0x0000000b,
    0x0000000c, 0x0004003d, 0x00000006, 0x0000000f, 0x0000000e, 0x00050041, 0x00000016, 0x00000017, 0x00000013,
    0x00000015, 0x0004003d, 0x00000006, 0x00000018, 0x00000017, 0x000500b0, 0x00000019, 0x0000001a, 0x0000000f,
    0x00000018, 0x000300f7, 0x0000001c, 0x00000000, 0x000400fa, 0x0000001a, 0x0000001b, 0x0000001c, 0x000200f8,
    0x0000001b, 0x00060041, 0x00000027, 0x00000028, 0x00000025, 0x00000015, 0x0000000f, 0x0004003d, 0x00000006,
    0x00000029, 0x00000028, 0x00050041, 0x00000016, 0x0000002b, 0x00000013, 0x0000002a, 0x0004003d, 0x00000006,
    0x0000002c, 0x0000002b, 0x00050080, 0x00000006, 0x0000002d, 0x00000029, 0x0000002c, 0x00060041, 0x00000027,
    0x0000002e, 0x00000020, 0x00000015, 0x0000000f, 0x0003003e, 0x0000002e, 0x0000002d, 0x000200f9, 0x0000001c,
    0x000200f8, 0x0000001c, 0x000100fd, 0x00010038,
};
inline constexpr Spirv kAddBlock{kAddWords, std::end(kAddWords), std::size(kAddWords)};
inline constexpr Shader kAdd{"test_add", &kAddBlock, 0, std::size(kAddWords), 2, 8, 1, 0};

struct AddParams {
  uint32_t count, add;
};

inline std::span<const std::byte> bytes(const auto& value) {
  return std::as_bytes(std::span(&value, 1));
}

inline Slice whole(const Buffer& buffer) {
  return {buffer.handle(), 0, buffer.bytes()};
}

// out = in + add, for two buffers of `count` words.
inline void add(Commands& commands, Device& device, Slice out, Slice in, uint32_t count, uint32_t add) {
  const Pipeline& pipeline = device.pipelines().get({&kAdd, {64}, 0});
  const Slice slices[] = {out, in};
  const AddParams params{count, add};
  commands.dispatch(pipeline, slices, bytes(params), {(count + 63) / 64, 1, 1});
}

// Two dispatches; the second reads what the first writes. Without a barrier between them they race.
inline void run_two(const std::shared_ptr<Device>& device, bool barrier) {
  const Buffer a = device->memory().buffer(4096, MemoryKind::device, "a");
  const Buffer b = device->memory().buffer(4096, MemoryKind::device, "b");
  Commands commands(device);
  commands.begin(2);
  commands.timestamp(0);
  commands.fill(whole(a), 1);
  commands.barrier();
  add(commands, *device, whole(b), whole(a), 1024, 1);
  if (barrier) commands.barrier();
  add(commands, *device, whole(a), whole(b), 1024, 1);
  commands.timestamp(1);
  commands.end();
  device->run(commands);
  commands.timestamps_us();
}

}  // namespace pumice::engine::test
