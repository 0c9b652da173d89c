// SPDX-License-Identifier: Apache-2.0
// Bugs of drivers that were reported in public, and what is switched off for them when a device is opened. A row needs
// a link that shows the bug, and a line in test/kernel_bench/profile_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vulkan/device.h"

namespace pumice::engine {

// A row holds where everything that it says is true. `first` and `end` count as the driver does (DeviceInfo):
// first <= version < end, and `end` 0 where no version is known to be right.
struct DriverBug {
  std::string_view off;        // as apply() takes it
  std::string_view why;        // what goes wrong, for people
  std::string_view link;       // the report
  uint32_t driver;             // a VkDriverId
  uint32_t first, end;         // versions of the driver
  std::string_view kind;       // as DeviceInfo::kind; "": any
  std::string_view name;       // a part of the device's name; "": any
  uint32_t vendor;             // of the device; 0: any
  bool crashes_asked = false;  // the driver ends the process when it is asked for details of what is off
};

std::span<const DriverBug> driver_bugs();
// Those of a device.
std::vector<DriverBug> bugs_of(const DeviceInfo& info);
// What they switch off, to stand before what the user says, who may give it back: apply() takes both.
std::string off_for_bugs(const DeviceInfo& info);
// Whether the driver may be asked for details of a feature.
bool may_ask(const DeviceInfo& info, Feature feature);

}  // namespace pumice::engine
