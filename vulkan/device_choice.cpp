// SPDX-License-Identifier: Apache-2.0
#include "vulkan/device_choice.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/log.h"

namespace pumice::engine {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Of several devices that match, the one with the lowest rank is taken.
int rank(const Physical& physical) {
  if (physical.problem != nullptr) return 5;
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
    if (each.problem != nullptr) {
      text +=
          format("\n  [%u] %s, left out: its driver fails: %s", info.index, info.name.c_str(), each.problem->what());
      continue;
    }
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
  if (physical.problem != nullptr) throw Error(*physical.problem);
  if (info.api_version < VK_API_VERSION_1_1) {
    fail(Code::DeviceUnsupported, Stage::device, "device", "%s (driver %s) has Vulkan %s; 1.1 is needed",
         info.name.c_str(), info.driver_version.c_str(), version(info.api_version).c_str());
  }
  if (physical.queue_family == ~0u) {
    fail(Code::DeviceUnsupported, Stage::device, "device", "%s (driver %s %s) has no compute queue", info.name.c_str(),
         info.driver.c_str(), info.driver_version.c_str());
  }
}

}  // namespace

std::vector<DeviceInfo> list_devices(std::string* why) {
  std::string reason;
  std::vector<DeviceInfo> result;
  if (const auto instance = get_instance(&reason)) {
    const std::vector<Physical> found = list_physical(*instance);
    for (const Physical& each : found) {
      if (each.problem == nullptr)
        result.push_back(each.info);
      else
        log(LogLevel::warning, "device %u, %s, is left out: its driver fails: %s", each.info.index,
            each.info.name.c_str(), each.problem->what());
    }
    if (result.empty()) {
      reason = table(found);
      forget_instance();  // a driver installed later is found by the next call
    }
  }
  if (why != nullptr) *why = result.empty() ? reason : "";
  return result;
}

const Physical& choose_device(const std::vector<Physical>& found, const std::string& wanted) {
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
  for (const Physical& each : found) {
    if (each.problem != nullptr && each.type != VK_PHYSICAL_DEVICE_TYPE_CPU) require_usable(each);
  }
  const std::string& name = found.front().info.name;
  fail(Code::DeviceUnsupported, Stage::device, "device",
       "no GPU; a CPU driver is used only when named, by device= or as in PUMICE_DEVICE=%s; %s",
       name.substr(0, name.find(' ')).c_str(), table(found).c_str());
}

}  // namespace pumice::engine
