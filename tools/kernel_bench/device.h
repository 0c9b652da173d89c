// SPDX-License-Identifier: Apache-2.0
// What kernel_bench's commands share; kernel_bench.cpp turns their errors into kernel_bench::Failure.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tools/kernel_bench/kernel_bench.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

std::shared_ptr<Device> open(const Options& options);
std::string device_text(const Device& device);  // JSON
void must_be_one_of(const char* what, std::string_view got, std::span<const std::string_view> known);

std::string run_list(const Options& options);
uint32_t run_test(const Options& options, const Report& report);
uint32_t run_bench(const Options& options, const Report& report);

}  // namespace pumice::engine::kernel_bench
