// SPDX-License-Identifier: Apache-2.0
// A device as a file: what its driver says of it, so that selection can be asked about a device that is not here.
#pragma once

#include <string>

#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

// JSON. Without what names one machine (its UUID), and before known bugs of the driver are taken off.
std::string profile_text(const Device& device);
// A file, or the name of one of the checkout's test/profiles. Throws IoError, or BadSchema with the key for what is no
// profile or says less than Vulkan 1.1 promises.
DeviceInfo read_profile(const std::string& file_or_name);
// The same of its text; `path` is for errors.
DeviceInfo parse_profile(std::string_view text, const std::string& path);
// What selection gets: without what known bugs and `switches`, as for apply(), take away.
Features features_of(const DeviceInfo& info, const std::string& switches);

}  // namespace pumice::engine::kernel_bench
