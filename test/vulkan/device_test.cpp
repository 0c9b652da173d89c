// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "test/vulkan/gpu.h"

namespace pumice::engine {
namespace {

using test::error_of;
using test::Hook;
using testing::HasSubstr;

// Sets an environment variable during its lifetime.
struct Variable {
  Variable(const char* the_name, const char* value) : name(the_name) {
    if (const char* before = std::getenv(name)) old = before;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { old ? setenv(name, old->c_str(), 1) : unsetenv(name); }
  const char* name;
  std::optional<std::string> old;
};

DeviceInfo the_device() {
  return test::open()->info();
}

TEST(Device, ListsWhatIsThere) {
  std::string why;
  const std::vector<DeviceInfo> devices = list_devices(&why);
  ASSERT_FALSE(devices.empty()) << why;
  for (const DeviceInfo& each : devices) {
    EXPECT_FALSE(each.name.empty());
    EXPECT_EQ(each.uuid.size(), 32u);
    EXPECT_GE(each.api_version, VK_API_VERSION_1_1);
    EXPECT_GT(each.heap_bytes, 0u);
    EXPECT_LE(each.heap_bytes, each.memory_bytes);
    EXPECT_LT(each.memory_bytes, 1ull << 42);  // more than any device has: addresses in place of sizes are
    EXPECT_GE(each.features.max_invocations, 128u);
    EXPECT_GE(each.features.max_storage_bytes, 1ull << 27);
    EXPECT_GE(each.features.max_subgroup_size, each.features.subgroup_size);
  }
}

TEST(Device, IsFoundByIndexNameAndUuid) {
  const DeviceInfo info = the_device();
  std::string part = info.name.substr(0, 6), dashed = info.uuid;
  std::transform(part.begin(), part.end(), part.begin(), [](unsigned char c) { return std::toupper(c); });
  dashed.insert(8, "-");
  for (const std::string& text : {std::to_string(info.index), part, info.uuid, dashed}) {
    EXPECT_EQ(Device::open({text, "", "off"})->info().uuid, info.uuid) << text;
  }
}

TEST(Device, EqualOptionsShareOne) {
  const auto device = test::open();
  EXPECT_EQ(test::open(), device);
  EXPECT_NE(test::open("none"), device);
}

TEST(Device, UnknownNameListsWhatWasFound) {
  for (const char* text : {"no such device", "999", "00000000000000000000000000000000"}) {
    const Error error = error_of([&] { Device::open({text, "", "off"}); });
    EXPECT_EQ(error.code(), Code::DeviceUnsupported);
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_THAT(error.what(), HasSubstr(the_device().name));
  }
}

TEST(Device, CpuDriverOnlyWhenNamed) {
  if (the_device().kind != "cpu") GTEST_SKIP() << "there is a GPU";
  const Variable unset("PUMICE_DEVICE", nullptr);
  const Error error = error_of([] { Device::open({"", "", "off"}); });
  EXPECT_EQ(error.code(), Code::DeviceUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("only when named"));
  EXPECT_THAT(error.what(), HasSubstr("llvmpipe"));
  const Variable set("PUMICE_DEVICE", "llvmpipe");
  EXPECT_EQ(Device::open({"", "", "off"})->info().kind, "cpu");
}

TEST(Device, GpusGoBeforeCpus) {
  static PFN_vkGetPhysicalDeviceProperties real;
  static VkPhysicalDeviceType type;
  const Hook hook([](Vk& vk) {
    if (!vk.GetPhysicalDeviceProperties || vk.CreateFence) return;
    real = vk.GetPhysicalDeviceProperties.pointer;
    vk.GetPhysicalDeviceProperties.pointer = [](VkPhysicalDevice device, VkPhysicalDeviceProperties* out) {
      real(device, out);
      out->deviceType = type;
    };
  });
  const Variable unset("PUMICE_DEVICE", nullptr);
  for (const auto each : {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
                          VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU}) {
    type = each;
    EXPECT_NO_THROW(Device::open({"", "", "off"}));
  }
}

TEST(Device, NoLoader) {
  const Variable loader("PUMICE_VULKAN_LOADER", "/nowhere/libvulkan.so.1");
  const Hook fresh({});
  std::string why;
  EXPECT_TRUE(list_devices(&why).empty());
  EXPECT_THAT(why, HasSubstr("/nowhere/libvulkan.so.1"));
  const Error error = error_of([] { test::open(); });
  EXPECT_EQ(error.code(), Code::DeviceUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("no Vulkan loader"));
}

TEST(Device, NoDeviceAtAll) {
  const Hook hook([](Vk& vk) {
    vk.EnumeratePhysicalDevices.pointer = [](VkInstance, uint32_t* count, VkPhysicalDevice*) {
      *count = 0;
      return VK_SUCCESS;
    };
  });
  std::string why;
  EXPECT_TRUE(list_devices(&why).empty());
  EXPECT_THAT(why, HasSubstr("no device"));
  EXPECT_EQ(error_of([] { test::open(); }).code(), Code::DeviceUnsupported);
}

TEST(Device, OldAndQueuelessDevicesAreRefused) {
  static PFN_vkGetPhysicalDeviceProperties real;
  {
    const Hook hook([](Vk& vk) {
      if (!vk.GetPhysicalDeviceProperties || vk.CreateFence) return;
      real = vk.GetPhysicalDeviceProperties.pointer;
      vk.GetPhysicalDeviceProperties.pointer = [](VkPhysicalDevice device, VkPhysicalDeviceProperties* out) {
        real(device, out);
        out->apiVersion = VK_API_VERSION_1_0;
      };
    });
    EXPECT_THAT(error_of([] { test::open(); }).what(), HasSubstr("1.1 is needed"));
  }
  const Hook hook([](Vk& vk) {
    vk.GetPhysicalDeviceQueueFamilyProperties.pointer = [](VkPhysicalDevice, uint32_t* count,
                                                           VkQueueFamilyProperties*) { *count = 0; };
  });
  EXPECT_THAT(error_of([] { test::open(); }).what(), HasSubstr("no compute queue"));
}

TEST(Device, FeaturesAreSwitchedOffAndRefusedByName) {
  EXPECT_EQ(test::open("none")->features().bits, 0u);
  EXPECT_NE(test::open()->info().features.bits, 0u);
  const Error error = error_of([] { test::open("-flot16"); });
  EXPECT_EQ(error.code(), Code::InvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("float16"));
}

TEST(Device, FeaturesFromTheEnvironment) {
  const Variable features("PUMICE_FEATURES", "none");
  EXPECT_EQ(test::open()->features().bits, 0u);
}

TEST(Device, AForkedChildIsTold) {
  const auto device = test::open();
  Commands commands(device);
  commands.begin();
  commands.end();
  const pid_t child = fork();
  if (child == 0) {
    try {
      device->run(commands);
    } catch (const Error& error) {
      _exit(error.code() == Code::WrongState ? 0 : 1);
    }
    _exit(2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NO_THROW(device->run(commands));
}

}  // namespace
}  // namespace pumice::engine
