// SPDX-License-Identifier: Apache-2.0
// The table of Vulkan functions, and the engine when a Vulkan call fails.
#include "test/vulkan/faults.h"

#include <cctype>
#include <fstream>
#include <set>
#include <string_view>

#include "test/support/validation.h"
#include "vulkan/core.h"
#include "vulkan/queue.h"

namespace pumice::engine {
namespace {

using test::error_of;
using test::Hook;
using test::whole;
using testing::HasSubstr;

// Opens a device, makes a pipeline, allocates, uploads, runs and reads back. Returns the first word of the result.
uint32_t scenario(const std::string& cache_dir = "off") {
  const auto device = test::open("", cache_dir);
  const Buffer a = device->memory().buffer(1 << 16, MemoryKind::device, "a");
  const Buffer out = device->memory().buffer(1 << 16, MemoryKind::download, "out");
  const std::vector<uint32_t> words(1 << 14, 40);
  Uploader uploader(device, 1 << 14, 2);
  uploader.put(std::as_bytes(std::span(words)), whole(a));
  uploader.fill_zero({a.handle(), 1 << 15, 1 << 15});
  uploader.flush();
  Commands commands(device);
  commands.begin(2);
  commands.timestamp(0);
  test::add(commands, *device, whole(a), whole(a), 1 << 14, 2);
  commands.barrier();
  commands.copy(whole(a), whole(out));
  commands.host_barrier();
  commands.timestamp(1);
  commands.end();
  device->run(commands);
  commands.timestamps_us();
  uint32_t answer = 0;
  std::memcpy(&answer, out.mapped(), 4);
  return answer;
}

// Each Vulkan call of scenario() fails once with each error. The engine throws a typed error that names the call and
// the error, or goes on where it can; nothing leaks; the next attempt succeeds.
TEST(Faults, EveryCallFailsOnce) {
  test::Folder folder;
  const std::string cache = (folder.path / "cache").string();
  const test::FaultHook hook;
  test::faults().reset();
  ASSERT_EQ(scenario(cache), 42u);
  set_vulkan_hook(test::install_faults);  // destroys the instance, so that this is counted, too
  ASSERT_THAT(test::faults().alive(), testing::IsEmpty());
  const size_t calls = test::faults().calls;
  ASSERT_GT(calls, 30u);
  for (const VkResult result : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST,
                                VK_ERROR_UNKNOWN, static_cast<VkResult>(-777)}) {
    const bool thorough = result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
    for (size_t i = thorough ? 0 : static_cast<size_t>(-result) % 3; i < calls; i += thorough ? 1 : 3) {
      test::Messages quiet;
      test::faults().reset();
      test::faults().fail_call = i;
      test::faults().result = result;
      std::string failed;
      try {
        EXPECT_EQ(scenario(cache), 42u);
      } catch (const Error& error) {
        failed = error.what();
        EXPECT_NE(error.code(), Code::Internal) << failed;
        EXPECT_THAT(failed, testing::ContainsRegex("(vk|vma)[A-Z]")) << "the call is named";
      }
      set_vulkan_hook(test::install_faults);
      ASSERT_THAT(test::faults().alive(), testing::IsEmpty())
          << "call " << i << " " << test::faults().failed << " " << name(result) << ": " << failed;
    }
  }
  test::faults().reset();
  EXPECT_EQ(scenario(cache), 42u);
}

struct Case {
  const char* call;
  VkResult result;
  Code code;
  const char* object;
};

TEST(Faults, ErrorsNameCallObjectResultAndDevice) {  // D10
  const std::string device = test::open()->info().name;
  const Case cases[] = {
      {"vkCreateInstance", VK_ERROR_OUT_OF_HOST_MEMORY, Code::OutOfHostMemory, "instance"},
      {"vkCreateDevice", VK_ERROR_INITIALIZATION_FAILED, Code::DeviceUnsupported, "device"},
      {"vkCreateComputePipelines", VK_ERROR_OUT_OF_DEVICE_MEMORY, Code::OutOfDeviceMemory, "test_add"},
      {"vkCreateComputePipelines", VK_INCOMPLETE, Code::DeviceUnsupported, "test_add"},
      {"vkAllocateMemory", VK_ERROR_OUT_OF_DEVICE_MEMORY, Code::OutOfDeviceMemory, "a"},
      {"vkQueueSubmit", VK_ERROR_DEVICE_LOST, Code::DeviceLost, "commands"},
      {"vkWaitForFences", VK_ERROR_DEVICE_LOST, Code::DeviceLost, "commands"},
  };
  const test::FaultHook hook;
  for (const Case& each : cases) {
    test::faults().reset();
    test::faults().fail_function = each.call;
    test::faults().result = each.result;
    const Error error = error_of([] { scenario(); });
    EXPECT_EQ(error.code(), each.code) << each.call;
    EXPECT_EQ(error.path(), each.object) << each.call;
    const bool allocation = std::string(each.call) == "vkAllocateMemory";
    EXPECT_THAT(error.what(), HasSubstr(allocation ? "vmaCreateBuffer" : each.call));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(each.result)));
    if (std::string(each.call) != "vkCreateInstance") {
      EXPECT_THAT(error.what(), HasSubstr(device)) << each.call;
    }
    set_vulkan_hook(test::install_faults);
    EXPECT_THAT(test::faults().alive(), testing::IsEmpty()) << each.call;
  }
}

TEST(Faults, ALostDeviceStaysLostAndANewOneWorks) {
  const test::FaultHook hook;
  test::faults().reset();
  const auto device = test::open();
  Commands commands(device);
  commands.begin();
  commands.end();
  test::faults().fail_function = "vkQueueSubmit";
  test::faults().result = VK_ERROR_DEVICE_LOST;
  test::faults().after = true;
  EXPECT_EQ(error_of([&] { device->run(commands); }).code(), Code::DeviceLost);
  test::faults().reset();
  const Error again = error_of([&] { device->run(commands); });
  EXPECT_EQ(again.code(), Code::DeviceLost);
  EXPECT_THAT(again.what(), HasSubstr("since an earlier call"));
  EXPECT_TRUE(device->is_lost());
  EXPECT_NE(test::open(), device);
  EXPECT_EQ(scenario(), 42u);
}

TEST(Faults, ATimeoutLosesTheDevice) {
  const test::FaultHook hook;
  for (const bool forever : {false, true}) {
    const test::LeaksAllowed leaks;  // what the device may still use is not freed
    test::Messages messages;
    test::faults().reset();
    {
      const auto device = test::open();
      Buffer buffer = device->memory().buffer(64, MemoryKind::device, "in use");
      Commands commands(device);
      commands.begin();
      commands.fill(whole(buffer), 1);
      commands.end();
      test::faults().fail_function = "vkWaitForFences";
      test::faults().result = VK_TIMEOUT;
      test::faults().forever = forever;
      device->queue().submit(commands.recorded());
      const Error error = error_of([&] { device->queue().wait(commands.recorded(), 5'000'000); });
      EXPECT_EQ(error.code(), Code::Timeout);
      EXPECT_THAT(error.what(), HasSubstr("within 5 ms"));
      EXPECT_EQ(error_of([&] { device->run(commands); }).code(), Code::DeviceLost);
    }
    set_vulkan_hook(test::install_faults);
    EXPECT_EQ(test::faults().alive().empty(), !forever);
    EXPECT_EQ(messages.texts.size(), forever ? 1u : 0u);
  }
  test::faults().reset();
  EXPECT_EQ(scenario(), 42u);
}

// A CPU driver compiles within a run: kernels made for GPUs take it 50 s where processors are slow.
TEST(Faults, LikeGpuHasTheTimeOfTheDriver) {
  EXPECT_EQ(test::open("like_gpu")->queue().timeout(0), test::open()->queue().timeout(0));
}

// The fences that never come, and how often vkWaitForFences was asked for them.
struct Stuck {
  static inline std::set<VkFence> fences;
  static inline PFN_vkWaitForFences real = nullptr;
  static VkResult VKAPI_CALL wait(VkDevice device, uint32_t count, const VkFence* all, VkBool32 every, uint64_t ns) {
    for (uint32_t i = 0; i < count; ++i) {
      if (fences.contains(all[i])) return VK_TIMEOUT;
    }
    return real(device, count, all, every, ns);
  }
  static void install(Vk& vk) {
    if (!vk.WaitForFences || vk.WaitForFences.pointer == &wait) return;
    real = vk.WaitForFences.pointer;
    vk.WaitForFences.pointer = &wait;
  }
};

// What the first of two runs uses is not given back because the second one came to its end.
TEST(Faults, TwoRunsThatTimeOutAreBothWaitedFor) {
  const test::LeaksAllowed leaks;
  const test::Messages quiet;
  const Hook hook(Stuck::install);
  const auto device = test::open();
  Commands first(device), second(device);
  for (Commands* each : {&first, &second}) {
    each->begin();
    each->end();
    device->queue().submit(each->recorded());
    Stuck::fences.insert(each->recorded().submits[0].fence);
  }
  for (Commands* each : {&first, &second})
    EXPECT_EQ(error_of([&] { device->queue().wait(each->recorded(), 1'000'000); }).code(), Code::Timeout);
  Stuck::fences.erase(second.recorded().submits[0].fence);
  EXPECT_TRUE(device->core().must_leak()) << "the first one still runs";
  Stuck::fences.clear();
}

TEST(Faults, TwoRunsThatTimeOutAndComeLaterAreGivenBack) {
  const test::FaultHook hook;
  test::faults().reset();
  {
    const auto device = test::open();
    const Buffer buffer = device->memory().buffer(64, MemoryKind::device, "in use");
    Commands first(device), second(device);
    for (Commands* each : {&first, &second}) {
      each->begin();
      each->fill(whole(buffer), 1);
      each->end();
      device->queue().submit(each->recorded());
    }
    test::faults().fail_function = "vkWaitForFences";
    test::faults().result = VK_TIMEOUT;
    test::faults().forever = true;
    for (Commands* each : {&first, &second})
      EXPECT_EQ(error_of([&] { device->queue().wait(each->recorded(), 1'000'000); }).code(), Code::Timeout);
    test::faults().reset();
    EXPECT_FALSE(device->core().must_leak());
  }
  set_vulkan_hook(test::install_faults);
  EXPECT_THAT(test::faults().alive(), testing::IsEmpty());
}

// After a loss nothing waits without a limit: all waits go through fences, and those that do not come are given up.
TEST(Faults, ALostDeviceThatHangsIsGivenUp) {
  const test::FaultHook hook;
  for (const char* call : {"vkQueueSubmit", "vkWaitForFences"}) {
    const test::LeaksAllowed leaks;
    const test::Provoked in_use;  // the layer sees no wait, as the driver is not asked
    const test::Messages messages;
    test::faults().reset();
    {
      const auto device = test::open();
      Commands commands(device);
      commands.begin();
      commands.end();
      test::faults().fail_function = call;
      test::faults().result = VK_ERROR_DEVICE_LOST;
      test::faults().forever = true;
      // The CPU driver, which is not lost, must be done with a fence before it is destroyed.
      test::faults().after = std::string_view(call) == "vkWaitForFences";
      EXPECT_EQ(error_of([&] { device->run(commands); }).code(), Code::DeviceLost);
      EXPECT_TRUE(device->is_lost());
      test::faults().reset();
    }
    set_vulkan_hook(test::install_faults);
    EXPECT_THAT(test::faults().alive(), testing::IsEmpty()) << call;
  }
}

// One broken driver does not hide the other devices, and the list says why it is not there.
TEST(Faults, ADriverThatFailsIsLeftOutAndNamed) {
  static uint32_t asked;
  static PFN_vkEnumerateDeviceExtensionProperties real_extensions;
  static PFN_vkEnumeratePhysicalDevices real_devices;
  asked = 0;
  const Hook hook([](Vk& vk) {
    if (!vk.EnumeratePhysicalDevices || asked != 0) return;
    asked = 1;
    real_extensions = vk.EnumerateDeviceExtensionProperties.pointer;
    real_devices = vk.EnumeratePhysicalDevices.pointer;
    // The same device twice; the driver of the first one fails.
    vk.EnumeratePhysicalDevices.pointer = [](VkInstance instance, uint32_t* count, VkPhysicalDevice* out) {
      uint32_t one = 1;
      std::vector<VkPhysicalDevice> found(1);
      const VkResult result = real_devices(instance, &one, found.data());
      if (out != nullptr) out[0] = out[1] = found[0];
      *count = 2;
      return result == VK_INCOMPLETE ? VK_SUCCESS : result;
    };
    vk.EnumerateDeviceExtensionProperties.pointer = [](VkPhysicalDevice device, const char* layer, uint32_t* count,
                                                       VkExtensionProperties* out) {
      return asked++ == 1 ? VK_ERROR_INITIALIZATION_FAILED : real_extensions(device, layer, count, out);
    };
  });
  const test::Messages messages;
  const std::vector<DeviceInfo> found = list_devices(nullptr);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, 1u);
  ASSERT_EQ(messages.texts.size(), 1u);
  EXPECT_THAT(messages.texts[0], HasSubstr("device 0, " + found[0].name + ", is left out: its driver fails"));
  asked = 1;
  EXPECT_EQ(Device::open({found[0].name.substr(0, 8), "", "off"})->info().index, 1u);
  asked = 1;
  const Error named = error_of([] { Device::open({"0", "", "off"}); });
  EXPECT_EQ(named.code(), Code::DeviceUnsupported);
  EXPECT_THAT(named.what(), HasSubstr("vkEnumerateDeviceExtensionProperties"));
  asked = 1;
  const Error none = error_of([] { Device::open({"nothing of this name", "", "off"}); });
  EXPECT_THAT(none.what(), HasSubstr("left out: its driver fails: vkEnumerateDeviceExtensionProperties"));
}

TEST(VulkanFunctions, ResultsAreNamed) {
  Vk vk;
  vk.device = "some GPU";
  EXPECT_STREQ(name(VK_ERROR_DEVICE_LOST), "VK_ERROR_DEVICE_LOST");
  EXPECT_EQ(describe(VK_ERROR_DEVICE_LOST, "vkQueueSubmit", "commands", vk),
            "vkQueueSubmit failed for commands: VK_ERROR_DEVICE_LOST (-4) on some GPU");
  EXPECT_THAT(describe(static_cast<VkResult>(-777), "vkX", "", vk), HasSubstr("an undocumented result (-777)"));
}

// Whether a line of code calls vkX( or dlopen(, outside of comments and strings.
bool calls_past_the_table(const std::string& line) {
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') in_string = !in_string;
    if (line.compare(i, 2, "//") == 0) return false;
    const auto is_word = [&](size_t at) {
      return at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) || line[at] == '_');
    };
    if (in_string || !is_word(i) || (i > 0 && is_word(i - 1))) continue;
    size_t end = i;
    while (is_word(end)) ++end;
    const std::string word = line.substr(i, end - i);
    const bool vulkan =
        word.size() > 2 && word.compare(0, 2, "vk") == 0 && std::isupper(static_cast<unsigned char>(word[2]));
    if ((vulkan || word == "dlopen") && end < line.size() && line[end] == '(') return true;
  }
  return false;
}

// No source calls Vulkan or opens its loader without the table.
TEST(VulkanFunctions, NobodyCallsPastTheTable) {
  const std::filesystem::path root = std::filesystem::path(PUMICE_TEST_DIR).parent_path();
  EXPECT_TRUE(calls_past_the_table("  vkQueueSubmit(queue, 1, &info, fence);"));
  EXPECT_FALSE(calls_past_the_table("  text(\"vkQueueSubmit(\");  // vkQueueSubmit("));
  size_t files = 0;
  for (const char* folder : {"runtime", "graph", "ops", "serialization", "python"}) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h" && extension != ".hpp") continue;
      ++files;
      std::ifstream file(entry.path());
      const bool is_seam = entry.path().filename() == "vulkan.cpp";
      std::string line;
      for (int number = 1; std::getline(file, line); ++number) {
        EXPECT_TRUE(is_seam || !calls_past_the_table(line)) << entry.path() << ":" << number << ": " << line;
      }
    }
  }
  EXPECT_GT(files, 20u);
}

}  // namespace
}  // namespace pumice::engine
