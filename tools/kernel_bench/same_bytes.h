// SPDX-License-Identifier: Apache-2.0
// Whether later runs give the same bytes, compared on the device: many runs share a submit.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "tools/kernel_bench/transfers.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

// Does what `run` records `count` times, in one submit; the number of the first time, from 0, after which a slice of
// `outputs` has other bytes than before the call.
std::optional<uint32_t> first_other(Device& device, Transfers& transfers, std::span<const Slice> outputs,
                                    uint32_t count, const std::function<void(Commands&)>& run);

}  // namespace pumice::engine::kernel_bench
