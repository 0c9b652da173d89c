// SPDX-License-Identifier: Apache-2.0
// Which device: listing, choosing by index, name or UUID, and sharing what is open already.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

#include "vulkan/device.h"
#include "vulkan/physical.h"

namespace pumice::engine {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string or_environment(const std::string& text, const char* variable) {
  if (!text.empty()) return text;
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

// The order in which a device is taken when several would do.
int rank(const Physical& physical) {
  switch (physical.type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

std::string version(uint32_t api) {
  return format("%u.%u", VK_API_VERSION_MAJOR(api), VK_API_VERSION_MINOR(api));
}

std::string table(const std::vector<Physical>& found) {
  if (found.empty()) return "the Vulkan loader shows no device; is a driver installed?";
  std::string text = "found:";
  for (const Physical& each : found) {
    const DeviceInfo& info = each.info;
    text +=
        format("\n  [%u] %s (%s, driver %s %s, Vulkan %s, UUID %s)", info.index, info.name.c_str(), info.kind.c_str(),
               info.driver.c_str(), info.driver_version.c_str(), version(info.api_version).c_str(), info.uuid.c_str());
  }
  return text;
}

bool all_of(const std::string& text, int (*is)(int)) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is(static_cast<unsigned char>(c)); });
}

bool matches(const Physical& physical, const std::string& wanted) {
  const DeviceInfo& info = physical.info;
  if (all_of(wanted, std::isdigit) && wanted.size() <= 4)
    return info.index == static_cast<uint32_t>(std::stoul(wanted));
  std::string uuid = wanted;
  std::erase(uuid, '-');
  if (uuid.size() == 32 && all_of(uuid, std::isxdigit)) return info.uuid == lower(uuid);
  return lower(info.name).find(lower(wanted)) != std::string::npos ||
         lower(info.driver).find(lower(wanted)) != std::string::npos;
}

void require_usable(const Physical& physical) {
  const DeviceInfo& info = physical.info;
  if (info.api_version < VK_API_VERSION_1_1) {
    fail(Code::DeviceUnsupported, Stage::device, "device", "%s (driver %s) has Vulkan %s; 1.1 is needed",
         info.name.c_str(), info.driver_version.c_str(), version(info.api_version).c_str());
  }
  if (physical.queue_family == ~0u) {
    fail(Code::DeviceUnsupported, Stage::device, "device", "%s (driver %s %s) has no compute queue", info.name.c_str(),
         info.driver.c_str(), info.driver_version.c_str());
  }
}

const Physical& choose(const std::vector<Physical>& found, const std::string& wanted) {
  const Physical* best = nullptr;
  for (const Physical& each : found) {
    const bool fits = wanted.empty() ? each.type != VK_PHYSICAL_DEVICE_TYPE_CPU : matches(each, wanted);
    if (fits && (best == nullptr || rank(each) < rank(*best))) best = &each;
  }
  if (best != nullptr) {
    require_usable(*best);
    return *best;
  }
  if (!wanted.empty()) {
    fail(Code::DeviceUnsupported, Stage::device, "device", "no device '%s' (an index, part of a name, or a UUID); %s",
         printable(wanted).c_str(), table(found).c_str());
  }
  if (found.empty()) fail(Code::DeviceUnsupported, Stage::device, "device", "no GPU: %s", table(found).c_str());
  const std::string& name = found.front().info.name;
  fail(Code::DeviceUnsupported, Stage::device, "device",
       "no GPU; a CPU driver is used only when named, by device= or as in PUMICE_DEVICE=%s; %s",
       name.substr(0, name.find(' ')).c_str(), table(found).c_str());
}

// PUMICE_KERNEL=NAME is kernel=NAME; what was said comes after it and wins.
std::string with_kernel(const std::string& features) {
  const std::string kernel = or_environment("", "PUMICE_KERNEL");
  return kernel.empty() ? features : "kernel=" + kernel + "," + features;
}

using OpenKey = std::tuple<std::string, std::string, std::string>;

struct Open {
  std::mutex mutex;
  std::map<OpenKey, std::weak_ptr<Device>> devices;
  std::weak_ptr<Instance> instance;  // the one they were made from: another one begins afresh
};

Open& open_devices() {
  static Open* open = new Open;
  return *open;
}

}  // namespace

std::vector<DeviceInfo> list_devices(std::string* why) {
  std::string reason;
  std::vector<DeviceInfo> result;
  if (const auto instance = get_instance(&reason)) {
    for (Physical& each : list_physical(*instance)) result.push_back(std::move(each.info));
    if (result.empty()) {
      reason = table({});
      forget_instance();  // a driver installed later is found by the next call
    }
  }
  if (why != nullptr) *why = result.empty() ? reason : "";
  return result;
}

std::shared_ptr<Device> Device::open(const DeviceOptions& options) {
  const OpenKey key{or_environment(options.device, "PUMICE_DEVICE"),
                    with_kernel(or_environment(options.features, "PUMICE_FEATURES")),
                    or_environment(options.cache_dir, "PUMICE_CACHE_DIR")};
  Open& open = open_devices();
  std::lock_guard lock(open.mutex);
  std::string why;
  const auto instance = get_instance(&why);
  if (instance == nullptr) fail(Code::DeviceUnsupported, Stage::device, "device", "%s", why.c_str());
  if (open.instance.lock() != instance) open.devices.clear();
  open.instance = instance;
  std::erase_if(open.devices, [](const auto& each) { return each.second.expired(); });
  if (const auto known = open.devices.find(key); known != open.devices.end()) {
    if (auto device = known->second.lock(); device != nullptr && !device->is_lost()) return device;
  }
  const std::vector<Physical> found = list_physical(*instance);
  if (found.empty()) forget_instance();
  const Physical& physical = choose(found, std::get<0>(key));
  auto device = create(instance, physical, std::get<1>(key), std::get<2>(key));
  open.devices[key] = device;
  return device;
}

}  // namespace pumice::engine
