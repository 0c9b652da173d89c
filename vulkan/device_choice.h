// SPDX-License-Identifier: Apache-2.0
// Which devices there are, and which one is opened.
#pragma once

#include <string>
#include <vector>

#include "vulkan/physical.h"

namespace pumice::engine {

// Every device that the loader lists, CPU drivers included. With no loader or driver the list is empty, and `why` tells
// what was looked for.
std::vector<DeviceInfo> list_devices(std::string* why = nullptr);

// `wanted`: as DeviceOptions::device, after PUMICE_DEVICE was read. Throws DeviceUnsupported with the list of devices.
const Physical& choose_device(const std::vector<Physical>& found, const std::string& wanted);

}  // namespace pumice::engine
