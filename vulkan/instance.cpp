// SPDX-License-Identifier: Apache-2.0
#include "vulkan/instance.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/append_line.h"
#include "base/log.h"
#include "base/process_end.h"

namespace pumice::engine {
namespace {

constexpr const char* kValidation = "VK_LAYER_KHRONOS_validation";
std::atomic<uint64_t> messages{0};

// A line in the file PUMICE_VALIDATE_LOG for each instance and each message.
void note(const std::string& what) {
  append_line("PUMICE_VALIDATE_LOG", format("%d %s", getpid(), what.c_str()));
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  ++messages;
  const bool is_error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
  const char* id = data->pMessageIdName != nullptr ? data->pMessageIdName : "";
  note(format("message %s", id));
  log(is_error ? LogLevel::error : LogLevel::warning, "validation: %s: %s", id, data->pMessage);
  return VK_FALSE;
}

// Of PUMICE_VALIDATE. bounds: the layer changes every shader to check each access against its binding (GPU-assisted
// validation), and looks at nothing else.
enum class Validation : uint8_t { none, usage, bounds };

Validation wanted_validation() {
  const char* text = std::getenv("PUMICE_VALIDATE");
  const std::string_view word = text != nullptr ? text : "";
  return word.empty() || word == "0" ? Validation::none : word == "bounds" ? Validation::bounds : Validation::usage;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(Validation validation) {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  if (validation == Validation::usage) info.messageSeverity |= VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  return info;
}

void require_layer(const Vk& vk) {
  uint32_t count = 0;
  VK(vk, Stage::device, "layers", EnumerateInstanceLayerProperties, &count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  VK(vk, Stage::device, "layers", EnumerateInstanceLayerProperties, &count, layers.data());
  for (uint32_t i = 0; i < count; ++i) {
    if (std::strcmp(layers[i].layerName, kValidation) == 0) return;
  }
  fail(Code::DeviceUnsupported, Stage::device, "PUMICE_VALIDATE",
       "PUMICE_VALIDATE is set and there is no %s among %u layers; VK_ADD_LAYER_PATH names the folder of its manifest",
       kValidation, count);
}

uint32_t loader_version(const Vk& vk) {
  uint32_t version = VK_API_VERSION_1_0;
  if (vk.EnumerateInstanceVersion) VK(vk, Stage::device, "loader", EnumerateInstanceVersion, &version);
  if (version < VK_API_VERSION_1_1) {
    fail(Code::DeviceUnsupported, Stage::device, "loader", "the Vulkan loader is version 1.0; 1.1 is needed");
  }
  return std::min<uint32_t>(version, VK_API_VERSION_1_3);
}

std::shared_ptr<Instance> make_instance(std::string* why) {
  auto instance = std::make_shared<Instance>();
  instance->vk = load_global(why);
  if (!instance->vk.GetInstanceProcAddr) return nullptr;
  Vk& vk = instance->vk;
  instance->api_version = loader_version(vk);
  instance->process = getpid();

  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pEngineName = "pumice";
  application.apiVersion = instance->api_version;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;

  const Validation validation = wanted_validation();
  const bool validate = validation != Validation::none;
  // Without the heuristic two racing dispatches on one buffer are not reported.
  // The look at races in shared memory knows nothing of subgroupBarrier.
  const VkBool32 usage = validation == Validation::usage, bounds = validation == Validation::bounds, no = VK_FALSE;
  const VkLayerSettingEXT settings[] = {
      {kValidation, "validate_core", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &usage},
      {kValidation, "validate_sync", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &usage},
      {kValidation, "syncval_shader_accesses_heuristic", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &usage},
      {kValidation, "gpuav_enable", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &bounds},
      {kValidation, "gpuav_shared_memory_data_race", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &no},
  };
  VkLayerSettingsCreateInfoEXT layer_settings{};
  layer_settings.sType = VK_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT;
  layer_settings.settingCount = static_cast<uint32_t>(std::size(settings));
  layer_settings.pSettings = settings;
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(validation);
  messenger.pNext = &layer_settings;
  const char* extensions[] = {"VK_EXT_debug_utils", "VK_EXT_layer_settings"};
  if (validate) {
    require_layer(vk);
    info.pNext = &messenger;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidation;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
  }
  const bool said_so = !validate && std::getenv("PUMICE_VALIDATE") != nullptr;
  note(validate ? "instance validated" : said_so ? "instance not validated, as asked" : "instance not validated");
  VkInstance handle = nullptr;
  const VkResult result = vk.CreateInstance(&info, nullptr, &handle);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {  // older loaders with no driver at all
    if (why != nullptr) {
      *why =
          "vkCreateInstance: VK_ERROR_INCOMPATIBLE_DRIVER: the Vulkan loader found no driver; VK_DRIVER_FILES may name "
          "one";
    }
    return nullptr;
  }
  must(result, "vkCreateInstance", "instance", Stage::device, vk);
  wait_at_exit();
  instance->handle = handle;
  load_instance(vk, handle);
  if (validate) {
    messenger.pNext = nullptr;
    VK(vk, Stage::device, "messenger", CreateDebugUtilsMessengerEXT, handle, &messenger, nullptr, &instance->messenger);
  }
  return instance;
}

std::mutex instance_mutex;
// A pointer that is never freed: at exit a driver's own handlers may already have run.
std::shared_ptr<Instance>& cached() {
  static auto* instance = new std::shared_ptr<Instance>;
  return *instance;
}

}  // namespace

Instance::~Instance() {
  if (handle == nullptr || process != getpid()) return;
  if (messenger != VK_NULL_HANDLE) vk.DestroyDebugUtilsMessengerEXT(handle, messenger, nullptr);
  if (vk.DestroyInstance) vk.DestroyInstance(handle, nullptr);
}

std::shared_ptr<Instance> get_instance(std::string* why) {
  std::lock_guard lock(instance_mutex);
  if (cached() == nullptr || cached()->process != getpid()) cached() = make_instance(why);
  return cached();
}

void forget_instance() {
  std::lock_guard lock(instance_mutex);
  cached().reset();
}

uint64_t validation_messages() {
  return messages;
}

}  // namespace pumice::engine
