// SPDX-License-Identifier: Apache-2.0
#include "vulkan/functions.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "vulkan/instance.h"
#include "vulkan/loader.h"

namespace pumice::engine {

namespace {

std::mutex hook_mutex;
std::function<void(Vk&)> the_hook;

void run_hook(Vk& vk) {
  std::lock_guard lock(hook_mutex);
  if (the_hook) the_hook(vk);
}

#ifdef PUMICE_DEV_DRIVER_DIR
bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != 0;
}
#endif

// In a checkout set up by ./dev its private CPU driver (and validation layer) is found with no variable set. Only the
// loader reads these variables, and only while an instance is made.
void offer_dev_driver() {
#ifdef PUMICE_DEV_DRIVER_DIR
  const std::string manifest = PUMICE_DEV_DRIVER_DIR "/lvp_icd.json";
  if (access(manifest.c_str(), R_OK) == 0 && !is_set("VK_DRIVER_FILES") && !is_set("VK_ICD_FILENAMES")) {
    std::string files = is_set("VK_ADD_DRIVER_FILES") ? std::getenv("VK_ADD_DRIVER_FILES") : "";
    if (files.find(manifest) == std::string::npos) {
      files += (files.empty() ? "" : ":") + manifest;
      setenv("VK_ADD_DRIVER_FILES", files.c_str(), 1);
    }
  }
  const std::string layers = PUMICE_DEV_DRIVER_DIR "/../val/layers";
  if (access(layers.c_str(), R_OK) == 0 && !is_set("VK_LAYER_PATH") && !is_set("VK_ADD_LAYER_PATH")) {
    setenv("VK_ADD_LAYER_PATH", layers.c_str(), 1);
  }
#endif
}

PFN_vkGetInstanceProcAddr open_loader(const std::string& path, std::string& tried) {
  // Never closed: threads and exit handlers of drivers may still run its code.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = dlerror();
    tried += (tried.empty() ? "" : "; ") + printable(error != nullptr ? error : path);
    return nullptr;
  }
  auto function = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (function == nullptr) tried += (tried.empty() ? "" : "; ") + printable(path) + " has no vkGetInstanceProcAddr";
  return function;
}

PFN_vkGetInstanceProcAddr find_loader(std::string& tried) {
  const char* path = std::getenv("PUMICE_VULKAN_LOADER");
  if (path != nullptr && *path != 0) return open_loader(path, tried);  // named by the user: no other is tried
  if (auto function = system_vulkan_loader()) return function;
  tried = "libvulkan.so.1 is not installed";
#ifdef PUMICE_DEV_DRIVER_DIR
  const std::string dev = PUMICE_DEV_DRIVER_DIR "/libvulkan.so.1";
  if (access(dev.c_str(), R_OK) == 0) return open_loader(dev, tried);
#endif
  return nullptr;
}

}  // namespace

Vk load_global(std::string* why) {
  offer_dev_driver();
  Vk vk;
  std::string tried;
  vk.GetInstanceProcAddr.pointer = find_loader(tried);
  if (!vk.GetInstanceProcAddr) {
    if (why != nullptr) *why = "no Vulkan loader: " + tried;
    return vk;
  }
#define PUMICE_VK_LOAD(function) \
  vk.function.pointer = reinterpret_cast<PFN_vk##function>(vk.GetInstanceProcAddr(nullptr, "vk" #function));
  PUMICE_VK_GLOBAL(PUMICE_VK_LOAD)
  PUMICE_VK_LOAD(EnumerateInstanceVersion)
#undef PUMICE_VK_LOAD
  run_hook(vk);
  return vk;
}

void load_instance(Vk& vk, VkInstance instance) {
  const char* missing = nullptr;
#define PUMICE_VK_LOAD(function) \
  vk.function.pointer = reinterpret_cast<PFN_vk##function>(vk.GetInstanceProcAddr(instance, "vk" #function));
#define PUMICE_VK_NEED(function) \
  PUMICE_VK_LOAD(function)       \
  if (!vk.function) missing = "vk" #function;
  PUMICE_VK_INSTANCE(PUMICE_VK_NEED)
  PUMICE_VK_OPTIONAL(PUMICE_VK_LOAD)
#undef PUMICE_VK_NEED
#undef PUMICE_VK_LOAD
  if (missing != nullptr)
    fail(Code::DeviceUnsupported, Stage::device, "instance", "the Vulkan loader lacks %s", missing);
  run_hook(vk);
}

void load_device(Vk& vk, VkDevice device) {
  const char* missing = nullptr;
#define PUMICE_VK_NEED(function)                                                                          \
  vk.function.pointer = reinterpret_cast<PFN_vk##function>(vk.GetDeviceProcAddr(device, "vk" #function)); \
  if (!vk.function) missing = "vk" #function;
  PUMICE_VK_DEVICE(PUMICE_VK_NEED)
#undef PUMICE_VK_NEED
#define PUMICE_VK_LOAD(function)                                                                          \
  vk.function.pointer = reinterpret_cast<PFN_vk##function>(vk.GetDeviceProcAddr(device, "vk" #function)); \
  if (!vk.function)                                                                                       \
    vk.function.pointer = reinterpret_cast<PFN_vk##function>(vk.GetDeviceProcAddr(device, "vk" #function "KHR"));
  PUMICE_VK_DEVICE_OPTIONAL(PUMICE_VK_LOAD)
#undef PUMICE_VK_LOAD
  if (missing != nullptr) {
    fail(Code::DeviceUnsupported, Stage::device, "device", "%s lacks %s", vk.device.c_str(), missing);
  }
  run_hook(vk);
}

void set_vulkan_hook(std::function<void(Vk&)> hook) {
  {
    std::lock_guard lock(hook_mutex);
    the_hook = std::move(hook);
  }
  forget_instance();
}

const char* name(VkResult result) {
  switch (result) {
#define PUMICE_CASE(value) \
  case value:              \
    return #value;
    PUMICE_CASE(VK_SUCCESS)
    PUMICE_CASE(VK_NOT_READY)
    PUMICE_CASE(VK_TIMEOUT)
    PUMICE_CASE(VK_INCOMPLETE)
    PUMICE_CASE(VK_ERROR_OUT_OF_HOST_MEMORY)
    PUMICE_CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    PUMICE_CASE(VK_ERROR_INITIALIZATION_FAILED)
    PUMICE_CASE(VK_ERROR_DEVICE_LOST)
    PUMICE_CASE(VK_ERROR_MEMORY_MAP_FAILED)
    PUMICE_CASE(VK_ERROR_LAYER_NOT_PRESENT)
    PUMICE_CASE(VK_ERROR_EXTENSION_NOT_PRESENT)
    PUMICE_CASE(VK_ERROR_FEATURE_NOT_PRESENT)
    PUMICE_CASE(VK_ERROR_INCOMPATIBLE_DRIVER)
    PUMICE_CASE(VK_ERROR_TOO_MANY_OBJECTS)
    PUMICE_CASE(VK_ERROR_FRAGMENTED_POOL)
    PUMICE_CASE(VK_ERROR_OUT_OF_POOL_MEMORY)
    PUMICE_CASE(VK_ERROR_INVALID_SHADER_NV)
    PUMICE_CASE(VK_ERROR_UNKNOWN)
#undef PUMICE_CASE
    default:
      return "an undocumented result";
  }
}

Code code_of(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return Code::Ok;
    case VK_NOT_READY:
      return Code::WrongState;  // results were read before a run
    case VK_TIMEOUT:
      return Code::Timeout;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return Code::OutOfHostMemory;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return Code::OutOfDeviceMemory;
    case VK_ERROR_DEVICE_LOST:
      return Code::DeviceLost;
    default:
      return Code::DeviceUnsupported;  // the driver cannot do what every device must, or gives no reason
  }
}

std::string describe(VkResult result, const char* call, const std::string& object, const Vk& vk) {
  std::string text = std::string(call) + " failed";
  if (!object.empty()) text += " for " + object;
  text += format(": %s (%d)", name(result), static_cast<int>(result));
  if (!vk.device.empty()) text += " on " + vk.device;
  return text;
}

}  // namespace pumice::engine
