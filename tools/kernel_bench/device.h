// SPDX-License-Identifier: Apache-2.0
// The device that the options name.
#pragma once

#include <memory>
#include <string>

#include "tools/kernel_bench/kernel_bench.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

std::shared_ptr<Device> open(const Options& options);
std::string device_text(const DeviceInfo& info, const Features& features);  // JSON
// The event with which a command begins; `rows`: how many will follow.
std::string device_event(const Device& device, uint64_t rows, uint64_t seed);

}  // namespace pumice::engine::kernel_bench
