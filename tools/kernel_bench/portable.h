// SPDX-License-Identifier: Apache-2.0
// Results to compare with, for operators without an fp64 reference: the same call with the same numbers, run in f32 on
// buffers as on a device without any optional feature.
#pragma once

#include <memory>

#include "tools/kernel_bench/bench_op.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

// The case's data, complete: with results where they must be run for.
std::unique_ptr<CaseData> make_data(const std::shared_ptr<Device>& device, const BenchOp& op, const Case& c,
                                    uint64_t seed);

}  // namespace pumice::engine::kernel_bench
